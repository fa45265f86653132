"""Writes files of many kinds, each with parts that a person would not see at once."""

from __future__ import annotations

import math
import sqlite3
import struct
import wave
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any


def write_docx(path: Path) -> None:
    """A contract: Ann replaces 100 by 120, Bob adds a text; a comment, a note of hidden text."""
    import docx
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    document = docx.Document()
    document.add_heading("Contract", 1)
    paragraph = document.add_paragraph("The price is ")

    def change(kind: str, author: str, text: str) -> None:
        element, run = OxmlElement(f"w:{kind}"), OxmlElement("w:r")
        element.set(qn("w:author"), author)
        element.set(qn("w:id"), "1")
        content = OxmlElement("w:t" if kind == "ins" else "w:delText")
        content.text = text
        run.append(content)
        element.append(run)
        paragraph._p.append(element)

    change("del", "Ann", "100")
    change("ins", "Ann", "120")
    change("ins", "Bob", " plus tax")
    paragraph.add_run(" secret").font.hidden = True
    document.add_comment(paragraph.runs[:1], text="check this", author="Eve")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["item", "a|b", "lamp\ndesk", "3"], strict=True):
        cell.text = text
    for text, style in (("one", "List Number"), ("two", "List Number"), ("dot", "List Bullet")):
        document.add_paragraph(text, style=style)
    document.sections[0].header.paragraphs[0].text = "Draft 7"
    document.save(str(path))


def write_xlsx(path: Path) -> None:
    """Sales with a hidden row and column, a comment, formulas without values, a hidden sheet."""
    import openpyxl
    from openpyxl.comments import Comment

    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "Sales"
    for row in (["item", "n", "price"], ["a", 1, 2.5], ["b", 2, 3], ["c", 3, 4]):
        sheet.append(row)
    sheet["D2"], sheet["D3"] = "=B2*C2", "=SUM(B2:B4)"
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["C"].hidden = True
    sheet["A2"].comment = Comment("recount", "Eve")
    sheet.merge_cells("A6:B6")
    secret = book.create_sheet("Secret")
    secret["A1"] = "key 99"
    secret.sheet_state = "veryHidden"
    book.save(path)


def write_pptx(path: Path) -> None:
    """A slide with a chart, speaker notes and a text outside it; a hidden slide with a table."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Results"
    slide.placeholders[1].text = "up\ndown"
    slide.notes_slide.notes_text_frame.text = "say it twice"
    data = CategoryChartData()
    data.categories = ["2024", "2025"]
    data.add_series("Sold", (10, 12.5))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, Inches(3), Inches(3), Inches(3), data)
    away = slide.shapes.add_textbox(Inches(-5), 0, Inches(1), Inches(1))
    away.text_frame.text = "off the slide"
    hidden = deck.slides.add_slide(deck.slide_layouts[6])
    hidden._element.set("show", "0")
    table = hidden.shapes.add_table(1, 2, 0, 0, Inches(3), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "x", "y"
    deck.save(str(path))


def write_pdf(path: Path) -> None:
    """A page with white and invisible text and a form field; a table; a page without text."""
    from reportlab.pdfgen import canvas
    from reportlab.platypus import Table

    pdf = canvas.Canvas(str(path))
    pdf.drawString(72, 700, "Invoice total 42")
    pdf.acroForm.textfield(name="payer", value="Ann", x=72, y=500)
    pdf.setFillColorRGB(1, 1, 1)
    pdf.drawString(72, 650, "white words")
    text = pdf.beginText(72, 600)
    text.setTextRenderMode(3)
    text.textOut("unseen words")
    pdf.drawText(text)
    pdf.showPage()
    table = Table([["item", "n"], ["lamp", "3"]], style=[("GRID", (0, 0), (-1, -1), 1, (0, 0, 0))])
    table.wrapOn(pdf, 200, 200)
    table.drawOn(pdf, 72, 600)
    pdf.showPage()
    pdf.rect(10, 10, 50, 50)
    pdf.showPage()
    pdf.save()


def write_eml(path: Path) -> None:
    """An e-mail with plain and HTML text and a CSV attachment."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Order"
    message.set_content("three lamps")
    message.add_alternative("<p>four lamps</p>", subtype="html")
    message.add_attachment(b"item,n\nlamp,3\n", "text", "csv", filename="order.csv")
    path.write_bytes(bytes(message))


def write_zip(path: Path) -> None:
    """An archive in an archive, a name that leads outside, and a bomb."""
    inner = path.with_name("inner.zip")
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("d/order.csv", "item,n\nlamp,3\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(inner, "inner.zip")
        archive.writestr("../outside.txt", "still read")
        archive.writestr("bomb.txt", b"0" * (64 << 20))
    inner.unlink()


def write_sqlite(path: Path) -> None:
    """A database with one table and a trigger."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE stock (item TEXT, n INTEGER)")
    db.executemany("INSERT INTO stock VALUES (?, ?)", [("lamp", 3), ("desk", None)])
    db.execute("CREATE TRIGGER watch AFTER INSERT ON stock BEGIN SELECT 1; END")
    db.commit()
    db.close()


def write_html(path: Path) -> None:
    """A page with a hidden element, a script, a table and preformatted text."""
    path.write_text(
        "<title>Shop</title><h1>Lamps</h1><p>price <b>12</b>.50</p>"
        '<p style="display:none">only 2 left</p><script>x</script>'
        "<table><tr><th>item<th>n<tr><td>lamp<td>3</table><pre>a\n  b</pre>"
        '<img src="x.png" alt="a red lamp"><a href="/u">more</a>'
    )


def write_odt(path: Path) -> None:
    """An OpenDocument text."""
    from odf.opendocument import OpenDocumentText
    from odf.text import H, P

    document = OpenDocumentText()
    document.text.addElement(H(outlinelevel=1, text="Report"))
    document.text.addElement(P(text="three lamps"))
    document.save(str(path))


def write_ods(path: Path) -> None:
    """An OpenDocument spreadsheet with a hidden row and a formula."""
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = OpenDocumentSpreadsheet()
    table = Table(name="Sums")
    row = TableRow(visibility="collapse")
    cell = TableCell(valuetype="float", value="3.5", formula="of:=1+2.5")
    cell.addElement(P(text="3.50"))
    row.addElement(cell)
    table.addElement(row)
    document.spreadsheet.addElement(table)
    document.save(str(path))


def write_epub(path: Path) -> None:
    """A book with two chapters, whose reading order differs from that of the files."""
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="O/p.opf"/></rootfiles></container>',
        )
        book.writestr(
            "O/p.opf",
            '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Lamps'
            '</dc:title></metadata><manifest><item id="a" href="1.xhtml"/>'
            '<item id="b" href="2.xhtml"/></manifest><spine><itemref idref="b"/>'
            '<itemref idref="a"/></spine></package>',
        )
        book.writestr("O/1.xhtml", "<html><body><p>the end</p></body></html>")
        book.writestr("O/2.xhtml", "<html><body><p>the start</p></body></html>")


def write_wav(path: Path, seconds: float = 1.0, rate: int = 8000) -> None:
    """A tone."""
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, rate, 0, "NONE", ""))
        count = int(seconds * rate)
        tone = (int(9000 * math.sin(index / 5)) for index in range(count))
        sound.writeframes(b"".join(struct.pack("<h", one) for one in tone))


def write_png(path: Path) -> None:
    """A picture with a comment in its metadata."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Comment", "taken in Oslo")
    Image.new("RGB", (40, 20), (255, 0, 0)).save(path, pnginfo=info)


WRITERS = {
    "contract.docx": write_docx,
    "sales.xlsx": write_xlsx,
    "deck.pptx": write_pptx,
    "invoice.pdf": write_pdf,
    "order.eml": write_eml,
    "all.zip": write_zip,
    "stock.db": write_sqlite,
    "shop.html": write_html,
    "report.odt": write_odt,
    "sums.ods": write_ods,
    "book.epub": write_epub,
    "tone.wav": write_wav,
    "red.png": write_png,
}
"""Name of the file -> the function that writes it."""
