"""Evaluates the formulas of a workbook that was saved without their values."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from ...sheet import cell_text

_WHOLE_COLUMNS = re.compile(r"([(,;!=+*/<>&-]|^)(\$?[A-Z]{1,3}):(\$?[A-Z]{1,3})(?![A-Z0-9(:$])")
_CELL = re.compile(r"'\[[^]]*\]([^']+)'!([A-Z]+\d+)")


def evaluate(path: Path) -> dict[tuple[str, str], str]:
    """Return the values of all single cells, by sheet (in upper case) and cell.

    Without the library `formulas`, or if it cannot compute the workbook, the result is empty.
    """
    try:
        formulas = importlib.import_module("formulas")
    except ImportError:
        return {}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            model = formulas.ExcelModel().loads(str(_bounded(path))).finish()
            solution = model.calculate()
        except Exception:  # noqa: BLE001 - the library raises anything on unknown functions
            return {}
    found = {}
    for key, ranges in solution.items():
        match = _CELL.fullmatch(str(key))
        if match is not None:
            text = _text(ranges)
            if text is not None:
                found[match[1].upper(), match[2]] = text
    return found


def _bounded(path: Path) -> Path:
    """Return a copy of a workbook whose formulas name no whole columns, such as A:B.

    The library makes a million cells of each whole column. A copy is only made if one occurs.
    """
    openpyxl = importlib.import_module("openpyxl")
    book = openpyxl.load_workbook(path, keep_links=False)
    sheets = list(book.worksheets)
    last = max((sheet.max_row for sheet in sheets), default=1)
    changed = False
    for sheet in sheets:
        for cell in sheet._cells.values():
            if cell.data_type == "f" and isinstance(cell.value, str):
                text = _WHOLE_COLUMNS.sub(rf"\g<1>\g<2>1:\g<3>{last}", cell.value)
                changed, cell.value = changed or text != cell.value, text
    if not changed:
        return path
    copy = Path(tempfile.mkdtemp(prefix="formulas-")) / "copy.xlsx"
    book.save(copy)
    return copy


def _text(ranges: Any) -> str | None:
    try:
        value = ranges.value[0, 0]
    except (AttributeError, IndexError, TypeError):
        return None
    value = value.item() if hasattr(value, "item") else value
    text = cell_text(value)
    return None if text in ("", "empty") or "XlError" in type(value).__name__ else text
