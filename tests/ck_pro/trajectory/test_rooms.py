"""The direction of imports inside `ck_pro.trajectory`."""

from __future__ import annotations

import re

from paths import ROOT

import ck_pro.trajectory

FOLDER = ROOT / "ck_pro" / "trajectory"


def test_a_room_imports_only_rooms_listed_before_it() -> None:
    _, _, listed = (ck_pro.trajectory.__doc__ or "").partition("may import all:")
    order = re.findall(r"^ {4}(\w+) ", listed, re.MULTILINE)
    assert set(order) == {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    wrong = []
    for n, room in enumerate(order):
        for path in (FOLDER / room).glob("*.py"):
            imported = re.findall(r"from ck_pro\.trajectory\.(\w+)", path.read_text())
            wrong += [f"{path.name}: {name}" for name in imported if name not in order[: n + 1]]
    assert wrong == []
