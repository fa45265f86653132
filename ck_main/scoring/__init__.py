"""Scorers: each is one module here with a constant `SCORER`. See docs/analysis.md.

May import: `ck_pro`.
Other rooms use `Scoring`, which scores a run's answer, and `em`.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module

from ck_main.scoring.scorer import Scorer


@functools.cache
def scorers() -> dict[str, Scorer]:
    """Return all scorers by name, sorted: the `SCORER` of each module in this package."""
    names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    found = [getattr(import_module(name), "SCORER", None) for name in names]
    known = (s for s in found if isinstance(s, Scorer))
    return {s.name: s for s in sorted(known, key=lambda s: s.name)}
