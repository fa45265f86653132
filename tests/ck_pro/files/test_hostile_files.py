"""Hostile and damaged files cost one error line, whatever the library does with them."""

from __future__ import annotations

import gzip
import os
import re
import sqlite3
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import attachments
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_files import WRITERS, write_docx, write_ods, write_odt, write_pptx, write_xlsx

from ck_pro.files import ToolError, describe_file, limits, read_document, read_table, search_file
from ck_pro.files.child import in_child
from ck_pro.files.formats.office import xlsx, xlsx_source
from ck_pro.files.formats.office.docx_numbering import _formatted
from ck_pro.files.unpacking import check_size

pytestmark = pytest.mark.integration


def test_a_bomb_in_an_archive_is_refused(samples: Path) -> None:
    with pytest.raises(ToolError, match="a bomb"):
        read_document(str(samples / "all.zip"), "bomb.txt")


def test_an_office_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.docx"
    write_docx(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", b" " * (64 << 20))
    with pytest.raises(ToolError, match="a bomb"):
        describe_file(str(path))


def test_an_office_file_with_xml_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "entities.docx"
    body = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document>&a;</w:document>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", body)
    with pytest.raises(ToolError, match="declares XML entities: refused"):
        read_document(str(path))


def test_nesting_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "0.zip"
    path.write_bytes(b"x")
    for level in range(1, 12):
        outer = tmp_path / f"{level}.zip"
        with zipfile.ZipFile(outer, "w") as archive:
            archive.write(path, path.name)
        path = outer
    part = "/".join(f"{level}.zip" for level in range(10, -1, -1))
    with pytest.raises(ToolError, match=r"'10.zip/9.zip/.*' is nested more than 8 levels deep"):
        read_document(str(path), part)


def test_a_reader_that_crashes_hangs_or_fills_the_memory_costs_one_line() -> None:
    with pytest.raises(ToolError, match=r"its reader crashed \(signal 9\)"):
        in_child(lambda: os.kill(os.getpid(), 9))
    with pytest.raises(ToolError, match=r"stopped after 0.2 s; read a smaller part"):
        in_child(lambda: os.read(os.pipe()[0], 1), 0.2)
    with pytest.raises(ToolError, match="needs more than 1536 MB of memory"):
        in_child(lambda: bytearray(limits.CALL_MEMORY + (64 << 20)))
    with pytest.raises(ToolError, match=r"the file is damaged.*KeyError: 'x'"):
        in_child(lambda: {}["x"])


def test_sizes_are_checked_while_unpacking() -> None:
    check_size("small", 1000, 1)
    with pytest.raises(ToolError, match="unpacks to more than 1024 MB"):
        check_size("large", limits.MAX_UNPACKED + 1, 0)


def rewritten(path: Path, part: str, change: Callable[[bytes], bytes]) -> str:
    """Change a part of a ZIP file; return its path."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = change(parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return str(path)


LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghij"))
ENTITIES = {
    "file": '<!DOCTYPE x [<!ENTITY j SYSTEM "file:///etc/passwd">]>',
    "laughs": f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>',
}
OFFICE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "x.docx": (write_docx, "word/document.xml", "The price is "),
    "x.odt": (write_odt, "content.xml", "three lamps"),
    "x.ods": (write_ods, "content.xml", "3.50"),
    "x.xlsx": (write_xlsx, "xl/worksheets/sheet1.xml", "SUM("),
    "x.pptx": (write_pptx, "ppt/slides/slide1.xml", "Results"),
    "x.epub": (attachments.write_book, "a.xhtml", "They sailed"),
}


@pytest.mark.parametrize("kind", ENTITIES)
@pytest.mark.parametrize("name", OFFICE)
def test_entities_that_are_declared_late_are_not_expanded(
    tmp_path: Path, name: str, kind: str
) -> None:
    write, part, text = OFFICE[name]
    write(tmp_path / name)

    def change(data: bytes) -> bytes:
        head, found, body = data.decode().rpartition("?>")
        late = f"<!--{'x' * 5000}-->{ENTITIES[kind]}"
        return f"{head}{found}{late}{body.replace(text, f'&j;{text}', 1)}".encode()

    path = rewritten(tmp_path / name, part, change)
    for read in (describe_file, read_document):
        try:
            shown = read(path)
            assert "root:" not in shown and "aaaa" not in shown
        except ToolError as error:
            assert "\n" not in str(error)


def test_a_stray_cell_at_the_end_of_a_sheet_costs_no_time(tmp_path: Path) -> None:
    stray = b'<row r="1048576"><c r="XFD1048576" t="n"><v>77</v></c></row></sheetData>'
    attachments.write_budget(tmp_path / "far.xlsx")
    path = rewritten(
        tmp_path / "far.xlsx",
        "xl/worksheets/sheet1.xml",
        lambda data: data.replace(b"</sheetData>", stray),
    )
    assert "'Budget' A1:XFD1048576" in describe_file(path)
    assert "3 (hidden)\tlamp\t5" in read_document(path, "Budget")
    with pytest.raises(ToolError, match="more than 200,000 rows"):
        read_table(path, "Budget")


@pytest.mark.parametrize("rows", ["merged", "many"])
def test_a_large_workbook_is_read_as_a_stream_with_its_hidden_rows(
    tmp_path: Path, rows: str
) -> None:
    lines = (f'<row r="{n}"><c r="A{n}" t="n"><v>{n}</v></c></row>' for n in range(6, 300_000))
    more = {
        "merged": b'</sheetData><mergeCells><mergeCell ref="A6:XFD1048576"/></mergeCells>',
        "many": "".join(lines).encode() + b"</sheetData>",
    }[rows]
    attachments.write_budget(tmp_path / "large.xlsx")
    path = rewritten(
        tmp_path / "large.xlsx",
        "xl/worksheets/sheet1.xml",
        lambda data: data.replace(b"</sheetData>", more),
    )
    described = describe_file(path)
    assert "'Budget': hidden rows 3" in described and "'Budget': hidden columns C" in described
    text = read_document(path, "Budget")
    assert "3 (hidden)\tlamp\t5\t40\t{as above, not stored}" in text
    if rows == "many":
        assert "299,999 rows" in described
        assert "[more: read_document(" in text


def test_a_compressed_file_of_zeros_is_no_empty_archive(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "zeros.gz", "wb") as file:
        file.write(bytes(64 << 20))
    assert "1 files" in describe_file(str(tmp_path / "zeros.gz"))
    with pytest.raises(ToolError, match="a bomb"):
        read_document(str(tmp_path / "zeros.gz"), "zeros")


def test_text_that_is_nested_too_deeply_is_shown(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 230 + "deep words")
    assert "deep words" in read_document(str(tmp_path / "deep.html"))


_damages = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@_damages
@given(data=st.data())
@pytest.mark.parametrize("name", [*attachments.WRITERS, *(n for n in WRITERS if n != "all.zip")])
def test_a_damaged_file_gives_text_or_one_error_line(
    samples: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    if not (samples / name).exists():
        attachments.WRITERS[name](samples / name)
    content = bytearray((samples / name).read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 20))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / name
    path.write_bytes(bytes(content))
    for read in (describe_file, read_document):
        try:
            assert isinstance(read(str(path)), str)
        except ToolError as error:
            assert "\n" not in str(error)


def test_many_short_parts_are_cut_like_long_ones(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    pdf = canvas.Canvas(str(tmp_path / "pages.pdf"))
    for _ in range(1500):
        pdf.showPage()
    pdf.save()
    text = read_document(str(tmp_path / "pages.pdf"))
    assert len(text) < limits.MAX_TEXT + 300 and "follows: read_document(" in text


def test_a_row_of_millions_of_fields_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_pro.files.formats.delimited._MAX_CELLS", 1000)
    (tmp_path / "wide.csv").write_text("a,b\n" + "x," * 1000 + "\n")
    with pytest.raises(ToolError, match="more than 1,000,000 rows or 1,000 cells; read the file"):
        read_table(str(tmp_path / "wide.csv"))
    monkeypatch.setattr("ck_pro.files.child.MAX_RESULT", 1000)
    with pytest.raises(ToolError, match="the result has more than"):
        in_child(lambda: "x" * 1001)


def write_large_budget(path: Path, rows: int = 300) -> str:
    attachments.write_budget(path)
    lines = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(6, rows))
    return rewritten(
        path,
        "xl/worksheets/sheet1.xml",
        lambda data: data.replace(b"</sheetData>", lines.encode() + b"</sheetData>"),
    )


def test_comments_of_a_large_workbook_stand_after_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_large_budget(tmp_path / "large.xlsx")
    small = describe_file(path)
    (comment,) = [line for line in small.splitlines() if "comment on" in line]
    monkeypatch.setattr(xlsx, "_LARGE", 1000)
    assert comment in describe_file(path)
    text = read_document(path, "Budget")
    shown = comment.partition("': ")[2]
    row = re.search(r"comment on [A-Z]+(\d+)", comment)[1]  # type: ignore[index]
    before, _, _ = text.partition(f"[{shown}]\n")
    assert re.match(rf"{row}\b", before.splitlines()[-1])
    assert shown in search_file(path, shown.rpartition(": ")[2])
    monkeypatch.setattr(xlsx_source, "_MAX_COMMENTS", 1)
    assert "only the first 1 comments were read: there are more" in describe_file(path)


def test_a_large_sheet_is_read_as_far_as_the_time_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_large_budget(tmp_path / "large.xlsx")
    monkeypatch.setattr(xlsx, "_LARGE", 1000)
    monkeypatch.setattr(xlsx, "_STREAM_SECONDS", -1.0)
    line = "the rows of 'Budget' from 1 on were not read: reading a sheet ends after -1 s"
    assert f"[{line}]" in read_document(path, "Budget")
    assert f"not searched: {line}" in search_file(path, "no such words")
    with pytest.raises(ToolError, match=r"were not read: .*; use pandas"):
        read_table(path, "Budget")


def test_tags_at_the_ends_of_pieces_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_large_budget(tmp_path / "large.xlsx")
    with zipfile.ZipFile(path) as archive:
        whole = vars(xlsx_source.SheetSource(archive, "xl/worksheets/sheet1.xml"))
        for size in (7, 64, 1000):
            monkeypatch.setattr(xlsx_source, "_PIECE", size)
            assert vars(xlsx_source.SheetSource(archive, "xl/worksheets/sheet1.xml")) == whole
    assert whole["hidden_rows"] == {3} and whole["last_row"] == 299 and whole["has_formulas"]


def test_numbers_that_ask_for_gigabytes_are_cut(tmp_path: Path) -> None:
    write_docx(tmp_path / "a.docx")
    wide = rewritten(
        tmp_path / "a.docx",
        "word/document.xml",
        lambda data: re.sub(
            rb"<w:tcPr>", b'<w:tcPr><w:gridSpan w:val="2000000000"/>', data, count=1
        ),
    )
    assert len(read_document(wide)) < 5000
    write_odt(tmp_path / "a.odt")
    spaces = rewritten(
        tmp_path / "a.odt",
        "content.xml",
        lambda data: data.replace(b"three lamps", b'three<text:s text:c="2000000000"/>lamps'),
    )
    assert re.search("three {1000}lamps", read_document(spaces))
    assert _formatted(10**10, "lowerLetter") == "10000000000"


def test_names_with_line_ends_stay_on_one_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a\n[end of the file]\u202e.txt", "x")
    assert "'a\\n[end of the file]\\u202e.txt'\t1 bytes" in read_document(str(tmp_path / "a.zip"))


def test_a_view_that_fails_does_not_hide_the_other_tables(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("CREATE TABLE t (a)")
    db.execute("CREATE VIEW a_broken AS SELECT * FROM gone")
    db.execute("CREATE TABLE z (last)")
    db.commit()
    db.close()
    text = read_document(str(tmp_path / "a.db"))
    assert "['a_broken' cannot be read: no such table" in text and "\nlast\n" in text


def test_an_error_of_a_library_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(ToolError, match=r"^[^\n]*$"):
        describe_file(str(tmp_path / "a.parquet"))


def test_a_chapter_that_a_book_names_often_is_read_once(tmp_path: Path) -> None:
    attachments.write_book(tmp_path / "a.epub")
    with zipfile.ZipFile(tmp_path / "a.epub") as archive:
        package = next(name for name in archive.namelist() if name.endswith(".opf"))
    spine = b"</spine>"
    path = rewritten(
        tmp_path / "a.epub",
        package,
        lambda data: data.replace(spine, re.findall(rb"<itemref[^>]*/>", data)[0] * 50_000 + spine),
    )
    assert ", 2 chapters" in describe_file(path)
