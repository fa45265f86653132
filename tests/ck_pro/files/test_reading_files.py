"""What the readers show of each kind of file, and what they say is hidden in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_pro.files import ToolError, describe_file, read_document, read_table, search_file
from ck_pro.files.kinds import kind_of

pytestmark = pytest.mark.integration

HIDDEN = {
    "contract.docx": (
        *("tracked changes by 'Ann': 1 insertions", "tracked changes by 'Bob': 1 insertions"),
        *("tracked changes by 'Ann': 1 deletions", "1 comment by Eve", "1 runs of hidden text"),
    ),
    "sales.xlsx": (
        *("'Sales': hidden rows 3", "'Sales': hidden columns C", "sheet 'Secret' is very hidden"),
        *("comment on A2 by Eve: recount", "merged cells: A6:B6"),
    ),
    "deck.pptx": ("slide 1 has speaker notes", "1 shapes outside", "slide 2 is hidden"),
    "invoice.pdf": ("page 1: 1 pieces of invisible text", "page 1: 2 pieces of white text"),
    "order.eml": ("attachment 'order.csv'", "the text exists twice"),
    "all.zip": ("'../outside.txt' leads outside its folder",),
    "stock.db": ("trigger 'watch'",),
    "shop.html": ("1 scripts, which are not run", "1 hidden elements"),
    "sums.ods": ("sheet 'Sums': hidden rows 1",),
    "red.png": ("metadata Comment: taken in Oslo",),
}
SHOWN = {
    "notes.txt": ("first line\nTotal: 7\n",),
    "table.csv": ('lamp;3\n"a;b";4',),
    "letter.rtf": ("Dear Ann\nthree lamps",),
    "contract.docx": (
        *("# Contract\n", "[-Ann: 100-][+Ann: 120+][+Bob:  plus tax+]", "[hidden:  secret]"),
        *("[comment by Eve: check this]", "| lamp / desk | 3 |", "| item | a\\|b |"),
        *("1. one\n2. two\n- dot", "Draft 7"),
    ),
    "sales.xlsx": (
        *("row\tA\tB\tC (hidden)\tD", "3 (hidden)\tb\t2\t3\t6 {=SUM(B2:B4), not stored, computed"),
        *("2\ta\t1\t2.5\t2.5 {=B2*C2", "== sheet 'Secret' (very hidden) ==", "key 99"),
    ),
    "deck.pptx": (
        *("Results\nup\ndown", "| 2025 | 12.5 |", "[speaker notes: say it twice]"),
        *("[outside the slide] off the slide", "== slide 2 (hidden) ==", "| x | y |"),
    ),
    "invoice.pdf": (
        *("Invoice total 42", "white words", "unseen words", "[form field 'payer': 'Ann']"),
        "[the page has no text: it is a picture; look(",
    ),
    "order.eml": ("From: a@example.org", "three lamps", "2 files inside"),
    "stock.db": ("CREATE TABLE stock", "lamp\t3\ndesk\tNULL"),
    "shop.html": (
        *("# Lamps\nprice 12.50", "[hidden: only 2 left]", "| lamp | 3 |", "a\n  b"),
        *("[image: a red lamp]", "more (/u)"),
    ),
    "report.odt": ("# Report\nthree lamps",),
    "sums.ods": ("1 (hidden)\t3.5 {=1+2.5}",),
    "book.epub": ("== chapter 1 ==\nthe start", "== chapter 2 ==\nthe end"),
    "tone.wav": ("a sound file; transcribe(",),
}
TABLES = {
    "table.csv": [["item", "n"], ["lamp", "3"], ["a;b", "4"]],
    "contract.docx": [["item", "a|b"], ["lamp\ndesk", "3"]],
    "deck.pptx": [["", "Sold"], ["2024", "10"], ["2025", "12.5"]],
    "invoice.pdf": [["item", "n"], ["lamp", "3"]],
    "stock.db": [["item", "n"], ["lamp", "3"], ["desk", ""]],
    "shop.html": [["item", "n"], ["lamp", "3"]],
    "sums.ods": [["3.5"]],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_the_description_lists_what_is_hidden(samples: Path, name: str) -> None:
    described = describe_file(str(samples / name))
    for line in HIDDEN[name]:
        assert line in described


@pytest.mark.parametrize("name", SHOWN)
def test_the_text_shows_everything_in_order(samples: Path, name: str) -> None:
    text = read_document(str(samples / name))
    for piece in SHOWN[name]:
        assert piece in text
    assert text.rstrip().endswith("]")


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_rows_of_texts(samples: Path, name: str) -> None:
    assert read_table(str(samples / name)) == TABLES[name]


def test_changes_of_one_author_can_be_accepted_or_rejected(samples: Path) -> None:
    path = str(samples / "contract.docx")
    both = read_document(path, changes="accept")
    assert "120 plus tax" in both and "100" not in both
    none = read_document(path, changes="reject")
    assert "100" in none and "120" not in none and "plus tax" not in none
    ann = read_document(path, changes="accept", authors=["Ann"])
    assert "120[+Bob:  plus tax+]" in ann


def test_hidden_parts_can_be_omitted(samples: Path) -> None:
    sales = read_document(str(samples / "sales.xlsx"), hidden="omit")
    assert "key 99" not in sales and "\nb" not in sales and "hidden" not in sales
    assert "row\tA\tB\tC\tD\n1\titem\tn\n2\ta\t1\t\t2.5 {" in sales
    assert "secret" not in read_document(str(samples / "contract.docx"), hidden="omit")
    deck = read_document(str(samples / "deck.pptx"), hidden="omit")
    assert "slide 2" not in deck and "off the slide" not in deck


def test_files_inside_files_are_parts(samples: Path) -> None:
    path = str(samples / "all.zip")
    assert read_table(path, "inner.zip/d/order.csv") == [["item", "n"], ["lamp", "3"]]
    assert "still read" in read_document(path, "../outside.txt")
    assert "inner.zip\t" in read_document(path)
    assert "lamp,3" in read_document(str(samples / "order.eml"), "order.csv")
    assert "four lamps" in read_document(str(samples / "order.eml"), "html")
    embedded = "ppt/embeddings/Microsoft_Excel_Sheet1.xlsx"
    assert "12.5" in read_document(str(samples / "deck.pptx"), embedded)


def test_a_path_can_lead_into_a_file(samples: Path) -> None:
    inner = str(samples / "all.zip" / "inner.zip")
    assert "ZIP archive" in describe_file(inner)
    assert read_table(f"{inner}/d/order.csv") == [["item", "n"], ["lamp", "3"]]
    assert "lamp,3" in search_file(f"{inner}/d/order.csv", "lamp")
    assert read_document(inner, "d/order.csv").startswith("item,n")
    with pytest.raises(ToolError, match=r"there is no file 'none' in .*all\.zip"):
        describe_file(str(samples / "all.zip" / "none"))
    with pytest.raises(ToolError, match=r"no part 'none'"):
        read_document(str(samples / "all.zip" / "none"))


def test_a_long_text_is_read_by_the_calls_that_each_result_ends_with(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"line {number}\r\n" for number in range(9000)), newline="")
    pieces, text = [], read_document(str(path))
    while "[more: " in text:
        body, _, call = text.rpartition("\n[more: ")
        pieces.append(body.partition(" ==\n")[2])
        text = eval(call.rstrip("]"), {"read_document": read_document})
    pieces.append(text.rpartition("\n[end of the file]")[0].partition(" ==\n")[2])
    assert len(pieces) > 3
    assert "".join(pieces) == path.read_bytes().decode()


def test_a_part_can_be_given_by_number_or_name(samples: Path) -> None:
    assert read_document(str(samples / "invoice.pdf"), 2).startswith("== page 2 ==")
    with pytest.raises(ToolError, match=r"no part '7' in this file \(PDF\); it has 1 to 3"):
        read_document(str(samples / "invoice.pdf"), 7)
    with pytest.raises(ToolError, match=r"no part 'sale' .* it has 'Sales', 'Secret'"):
        read_document(str(samples / "sales.xlsx"), "sale")
    assert read_document(str(samples / "invoice.pdf"), "Page 2").startswith("== page 2 ==")
    assert "lamp" not in read_document(str(samples / "sales.xlsx"), "secret")


def test_a_text_is_found_with_the_part_it_is_in(samples: Path) -> None:
    assert "Secret: 1 key 99" in search_file(str(samples / "sales.xlsx"), "KEY  99")
    assert "1: Invoice total 42" in search_file(str(samples / "invoice.pdf"), "total")
    missing = search_file(str(samples / "all.zip"), "lamp")
    assert "does not occur" in missing and "not searched: 3 files inside" in missing


def test_the_content_decides_the_kind_not_the_name(samples: Path, tmp_path: Path) -> None:
    disguised = tmp_path / "picture.txt"
    disguised.write_bytes((samples / "contract.docx").read_bytes())
    assert kind_of(disguised).name == "Word document"
    (tmp_path / "empty").write_bytes(b"")
    assert "0 bytes" in describe_file(str(tmp_path / "empty"))
    (tmp_path / "x.bin").write_bytes(bytes(range(256)))
    assert "no reader opens it" in describe_file(str(tmp_path / "x.bin"))
    with pytest.raises(ToolError, match="does not exist"):
        describe_file(str(tmp_path / "nothing"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_texts_of_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Größe: 5 €\n", encoding=encoding)
    assert read_document(str(path)).startswith("Größe: 5 €\n")
