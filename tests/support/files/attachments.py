"""Writes attachments of every kind, each with an answer that depends on its hidden parts."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from ole_files import message_streams, write_ole, write_word_97

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

_CITIES = "Имя;Город\nАнна;Москва\nИван;Казань;лишнее\n"  # noqa: RUF001


def write_lease(path: Path) -> None:
    """A Word document: changes by two authors, a comment, a footnote, a hidden text."""

    def run(text: str, more: str = "") -> str:
        return f"<w:r>{more}<w:t xml:space='preserve'>{text}</w:t></w:r>"

    def change(kind: str, author: str, text: str) -> str:
        inner = run(text) if kind == "ins" else f"<w:r><w:delText>{text}</w:delText></w:r>"
        return f"<w:{kind} w:id='1' w:author='{author}'>{inner}</w:{kind}>"

    body = (
        f"<w:p>{run('The rent is ')}{change('del', 'Ann', '900')}{change('ins', 'Ann', '950')}"
        f"{run(' euros')}{change('ins', 'Bob', ' plus heating')}{run('.')}"
        "<w:r><w:footnoteReference w:id='2'/></w:r><w:r><w:commentReference w:id='0'/></w:r></w:p>"
        f"<w:p>{run('Key 4471', '<w:rPr><w:vanish/></w:rPr>')}</w:p>"
    )
    notes = f"<w:footnote w:id='2'><w:p>{run('Not in July.')}</w:p></w:footnote>"
    comments = f"<w:comment w:id='0' w:author='Eve'><w:p>{run('Too low?')}</w:p></w:comment>"
    relations = "".join(
        f"<Relationship Id='r{n}' Type='{_OFFICE}/{kind}' Target='{kind}.xml'/>"
        for n, kind in enumerate(("footnotes", "comments"))
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", f"<w:document {_W}><w:body>{body}</w:body></w:document>")
        file.writestr("word/footnotes.xml", f"<w:footnotes {_W}>{notes}</w:footnotes>")
        file.writestr("word/comments.xml", f"<w:comments {_W}>{comments}</w:comments>")
        file.writestr(
            "word/_rels/document.xml.rels",
            f"<Relationships xmlns='{_RELATIONS}'>{relations}</Relationships>",
        )


def write_budget(path: Path) -> None:
    """A workbook with macros: hidden row and column, formulas without values, a hidden sheet."""
    import openpyxl
    from openpyxl.comments import Comment

    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "Budget"
    for row in (["item", "n", "each", "sum"], ["desk", 2, 300], ["lamp", 5, 40], ["chair", 4, 90]):
        sheet.append(row)
    for n in (2, 3, 4):
        sheet[f"D{n}"] = f"=B{n}*C{n}"
    sheet["D5"] = "=SUM(D2:D4)"
    sheet["D5"].comment = Comment("without the hidden row: 960", "Eve")
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["C"].hidden = True
    secret = book.create_sheet("Limits")
    secret.append(["limit", 1000])
    secret.sheet_state = "hidden"
    book.save(path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("xl/vbaProject.bin", b"macro")


def write_old_stock(path: Path) -> None:
    """An Excel 97 workbook with a hidden row, a hidden column and a hidden sheet."""
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("Stock")
    for y, row in enumerate((["item", "n", "place"], ["desk", 2, "A1"], ["lamp", 5, "B7"])):
        for x, value in enumerate(row):
            sheet.write(y, x, value)
    sheet.row(2).hidden = True
    sheet.col(2).hidden = True
    book.add_sheet("Codes").write(0, 0, "door 8812")
    book.get_sheet(1).visibility = 1
    book.save(str(path))


def write_open_stock(path: Path) -> None:
    """An OpenDocument spreadsheet with a hidden row, and a hidden sheet."""
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.style import Style, TableProperties
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = OpenDocumentSpreadsheet()
    unseen = Style(name="unseen", family="table")
    unseen.addElement(TableProperties(display=False))
    document.automaticstyles.addElement(unseen)

    def add(name: str, rows: list[list[str]], hidden: int, **more: Any) -> None:
        table = Table(name=name, **more)
        for number, cells in enumerate(rows, 1):
            row = TableRow(visibility="collapse" if number == hidden else "visible")
            for text in cells:
                cell = TableCell(valuetype="string")
                cell.addElement(P(text=text))
                row.addElement(cell)
            table.addElement(row)
        document.spreadsheet.addElement(table)

    add("Stock", [["item", "n"], ["desk", "2"], ["lamp", "5"]], hidden=3)
    add("Codes", [["door 8813"]], hidden=0, stylename=unseen)
    document.save(str(path))


def write_talk(path: Path) -> None:
    """A presentation: speaker notes, a hidden slide, a comment, data of a chart."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.opc.constants import RELATIONSHIP_TYPE
    from pptx.opc.package import Part
    from pptx.opc.packuri import PackURI
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Visitors"
    data = CategoryChartData()
    data.categories = ["May", "June"]
    data.add_series("Visitors", (310, 455))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, Inches(3), Inches(3), Inches(3), data)
    slide.notes_slide.notes_text_frame.text = "June includes 55 school children"
    ns = "http://schemas.openxmlformats.org/presentationml/2006/main"
    for name, kind, body in (
        ("commentAuthors", "commentAuthors", '<p:cmAuthor id="0" name="Eve" initials="E"/>'),
        ("comments/comment1", "comments", '<p:cm authorId="0"><p:text>Count again</p:text></p:cm>'),
    ):
        tag = "cmAuthorLst" if kind == "commentAuthors" else "cmLst"
        xml = f'<p:{tag} xmlns:p="{ns}">{body}</p:{tag}>'.encode()
        part = Part(PackURI(f"/ppt/{name}.xml"), "application/xml", deck.part.package, xml)
        owner = deck.part if kind == "commentAuthors" else slide.part
        owner.relate_to(
            part,
            getattr(
                RELATIONSHIP_TYPE, "COMMENT_AUTHORS" if kind == "commentAuthors" else "COMMENTS"
            ),
        )
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Target: 500"
    hidden._element.set("show", "0")
    deck.save(str(path))


def write_report(path: Path) -> None:
    """A PDF: two columns stored line by line, a turned page, an attached table."""
    import pypdfium2
    from reportlab.pdfgen import canvas

    data = io.BytesIO()
    pdf = canvas.Canvas(data)
    left = ["The pump in the cellar", "was replaced on Monday", "by Ann, who also found", "a leak."]
    right = [
        "The bill of 480 euros",
        "is not paid, because it",
        "does not name the leak",
        "at all.",
    ]
    for n, (a, b) in enumerate(zip(left, right, strict=True)):
        pdf.drawString(72, 700 - 14 * n, a)
        pdf.drawString(320, 700 - 14 * n, b)
    pdf.showPage()
    pdf.setPageRotation(90)
    pdf.drawString(72, 700, "Turned: meter 60312")
    pdf.save()
    document = pypdfium2.PdfDocument(data.getvalue())
    document.new_attachment("parts.csv").set_data(b"part,price\nseal,12\nvalve,61\n")
    document.save(str(path))


def write_locked(path: Path) -> None:
    """A PDF that needs a password."""
    from reportlab.pdfgen import canvas

    pdf = canvas.Canvas(str(path), encrypt="password")
    pdf.drawString(72, 700, "unseen")
    pdf.save()


def write_page(path: Path) -> None:
    """A web page with a hidden row, a script and a comment."""
    path.write_text(
        "<html><title>Menu</title><!-- soup is from yesterday --><table><tr><th>dish<th>euros"
        '<tr><td>soup<td>4<tr style="display: none"><td>staff meal<td>2</table>'
        "<script>document.write('cake 3')</script><p hidden>closed on Sunday</p></html>"
    )


def write_mail(path: Path) -> None:
    """An e-mail: the HTML form differs, a workbook is attached, and another e-mail."""
    message, inner = EmailMessage(), EmailMessage()
    message["From"], message["To"], message["Bcc"] = (
        "a@example.org",
        "b@example.org",
        "z@example.org",
    )
    message["Subject"] = "Order"
    message.set_content("We order two desks.")
    message.add_alternative("<p>We order <b>three</b> desks.</p>", subtype="html")
    book = path.with_suffix(".tmp")
    write_budget(book)
    message.add_attachment(book.read_bytes(), "application", "xlsx", filename="budget.xlsx")
    book.unlink()
    inner["Subject"] = "Approved up to 1100"
    inner.set_content("Go ahead.")
    message.add_attachment(inner)
    path.write_bytes(bytes(message))


def write_outlook(path: Path) -> None:
    """An Outlook message: a hidden recipient, an HTML form, a table, an attached message."""
    names = {"subject": 0x37, "body": 0x1000, "sender": 0x0C1A, "name": 0x3001, "address": 0x39FE}
    inner = message_streams({names["subject"]: "Visit", names["body"]: "gate 9"}, header=24)
    people = (
        {names["name"]: "Bob", names["address"]: "b@example.org", 0x0C15: 1},
        {names["name"]: "Zoe", names["address"]: "z@example.org", 0x0C15: 3},
    )
    table = {0x3707: "order.csv", 0x3701: b"item,n\nlamp,3\ndesk,4\n" + b"pad,0\n" * 1000}
    main = {names["subject"]: "Order", names["body"]: "See table.", names["sender"]: "Ann"}
    html = {0x1013: b"<p>See table. <b>Urgent</b></p>"}
    write_ole(path, message_streams({**main, **html}, people, (table, inner)))


def write_memo(path: Path) -> None:
    """An RTF document with changes by two authors, a comment, a hidden text and Cyrillic."""
    path.write_bytes(
        rb"{\rtf1\ansi\ansicpg1252\uc1{\fonttbl{\f0 Arial;}{\f1\fnil\fcharset204 Times;}}"
        rb"{\*\revtbl{Unknown;}{Ann;}{Bob;}}\pard Ship on {\deleted\revauthdel1 Monday}"
        rb"{\revised\revauth1 Friday}{\revised\revauth2  at noon}.\par"
        rb"{\v Dock 12}\par Driver: {\f1\'cf\'b8\'f2\'f0} \u233?{\*\atnauthor Eve}"
        rb"{\*\annotation late!}\par\trowd\cellx10\cellx20\intbl box\cell 7\cell\row\pard end\par}"
    )


def write_book(path: Path) -> None:
    """A book whose reading order is not that of its files, with a hidden note."""
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Isle</dc:title>'
        '</metadata><manifest><item id="x" href="a.xhtml"/><item id="y" href="b.xhtml"/></manifest>'
        '<spine><itemref idref="y"/><itemref idref="x"/></spine></package>'
    )
    pages = {"a": "They sailed home.", "b": 'They landed.<span hidden="">Map: page 6</span>'}
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        root = '<container><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>'
        book.writestr("META-INF/container.xml", root)
        book.writestr("p.opf", package)
        for name, text in pages.items():
            book.writestr(f"{name}.xhtml", f"<html><body><p>{text}</p></body></html>")


def write_box(path: Path) -> None:
    """An archive in an archive, whose innermost file is a workbook."""
    book, inner = path.with_suffix(".tmp"), io.BytesIO()
    write_budget(book)
    with zipfile.ZipFile(inner, "w") as archive:
        archive.write(book, "2024/budget.xlsx")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("old.zip", inner.getvalue())
    book.unlink()


def write_shop(path: Path) -> None:
    """A database with a view and a trigger."""
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE sale (item TEXT, euros REAL); CREATE TABLE log (what TEXT);"
        "INSERT INTO sale VALUES ('lamp', 40.5), ('desk', 300), ('lamp', 39.5);"
        "CREATE VIEW total AS SELECT item, sum(euros) AS euros FROM sale GROUP BY item;"
        "CREATE TRIGGER watch AFTER INSERT ON sale BEGIN INSERT INTO log VALUES ('sale'); END;"
    )
    db.close()


def write_events(path: Path) -> None:
    """20,000 JSON lines, one of which differs."""
    with path.open("w") as file:
        for number in range(20_000):
            state = "failed" if number == 17_031 else "ok"
            file.write(json.dumps({"number": number, "state": state}) + "\n")


def write_cities(path: Path) -> None:
    """A table in Windows-1251, with a row that is too long."""
    path.write_bytes(_CITIES.encode("cp1251"))


def write_photo(path: Path) -> None:
    """A photo that is stored turned by 90 degrees, with a place in its metadata."""
    from PIL import Image

    picture = Image.new("RGB", (30, 10), "blue")
    facts = picture.getexif()
    facts[0x0112], facts[0x010E] = 6, "Harbour, pier 3"
    picture.save(path, exif=facts)


WRITERS: dict[str, Callable[[Path], None]] = {
    "lease.docx": write_lease,
    "budget.xlsm": write_budget,
    "stock.xls": write_old_stock,
    "stock.ods": write_open_stock,
    "cities.csv": write_cities,
    "talk.pptx": write_talk,
    "report.pdf": write_report,
    "locked.pdf": write_locked,
    "menu.html": write_page,
    "order.eml": write_mail,
    "order.msg": write_outlook,
    "memo.rtf": write_memo,
    "memo.doc": write_word_97,
    "isle.epub": write_book,
    "box.zip": write_box,
    "shop.db": write_shop,
    "events.jsonl": write_events,
    "photo.jpg": write_photo,
}
"""Name of the file -> the function that writes it."""
