"""Parquet tables; formulas that were copied down, and formulas over whole columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_pro.files import describe_file, read_document, read_table
from ck_pro.files.formats.office import xlsx
from ck_pro.files.sheet import Formulas

pytestmark = pytest.mark.integration


def test_a_parquet_table_is_read_as_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"item": ["lamp", "a\tb", None], "price": [2.5, 3.0, 1e20]})
    parquet.write_table(table, tmp_path / "prices")
    path = str(tmp_path / "prices")
    assert "Parquet table" in describe_file(path)
    assert "3 rows, 2 columns: item (string), price (double)" in describe_file(path)
    assert read_document(path).startswith("item\tprice\nlamp\t2.5\na\\tb\t3\n\t1e+20\n")
    assert read_table(path)[1:3] == [["lamp", "2.5"], ["a\tb", "3"]]


def test_a_formula_that_was_copied_down_is_shown_once() -> None:
    formulas = Formulas()
    shown = [formulas.text(row, 3, f"=A{row}*$B$1&\"A1\"&'Q 1'!B{row - 1}") for row in (2, 3, 4)]
    assert shown == ["=A2*$B$1&\"A1\"&'Q 1'!B1", "as above", "as above"]
    assert formulas.text(6, 3, "=A6*$B$1&\"A1\"&'Q 1'!B5").startswith("=")  # a row between
    assert formulas.text(7, 3, "=A6*$B$1&\"A1\"&'Q 1'!B6").startswith("=")  # another row
    assert formulas.text(8, 3, "=A7*$B$2&\"A1\"&'Q 1'!B7").startswith("=")
    long = [formulas.text(row, 4, f"=LOG10(A{row})") for row in range(1, 90)]
    assert [n for n, text in enumerate(long, 1) if text != "as above"] == [1, 41, 81]


def test_text_in_a_formula_is_no_reference() -> None:
    formulas = Formulas()
    assert [formulas.text(row, 1, f'="A{row}"') for row in (1, 2)] == ['="A1"', '="A2"']


def test_formulas_over_whole_columns_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("formulas")
    book = openpyxl.Workbook()
    book.active.append(["CHF", 3, "=B1*VLOOKUP(A1,Rates!A:B,2,FALSE)"])
    book.create_sheet("Rates").append(["CHF", 0.5])
    path = tmp_path / "sums.xlsx"
    book.save(path)
    log, evaluate = tmp_path / "log", xlsx.evaluate

    def logged(where: Path) -> dict[tuple[str, str], str]:
        log.write_text(log.read_text() + "x" if log.exists() else "x")
        return evaluate(where)

    monkeypatch.setattr(xlsx, "evaluate", logged)
    assert "1.5 {=B1*VLOOKUP(A1,Rates!A:B,2,FALSE), not stored" in read_document(str(path))
    assert read_table(str(path)) == [["CHF", "3", "1.5"]]
    assert log.read_text() == "x"
