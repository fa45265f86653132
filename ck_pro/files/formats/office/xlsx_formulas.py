"""Evaluates the formulas of a workbook that was saved without their values."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

from ...sheet import cell_text

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
            model = formulas.ExcelModel().loads(str(path)).finish()
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


def _text(ranges: Any) -> str | None:
    try:
        value = ranges.value[0, 0]
    except (AttributeError, IndexError, TypeError):
        return None
    value = value.item() if hasattr(value, "item") else value
    text = cell_text(value)
    return None if text in ("", "empty") or "XlError" in type(value).__name__ else text
