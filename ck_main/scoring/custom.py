"""A Python function of the user: `custom:module:function`."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ck_main.scoring.scorer import Case, Check, Score, Scorer
from ck_pro.exceptions import ConfigError

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge


def make(text: str, judge: Judge | None) -> Check:
    """Return the check for `module:function`; the module may be in the current directory.

    The function takes a `Case`. It returns True, False, a number from 0 to 1, None (cannot be
    scored), a pair of one of these and a reason, or a `Score`. An error becomes the reason of an
    answer that cannot be scored.

    Raises:
        ConfigError: there is no such function.
    """
    function = _loaded(text)

    def check(case: Case) -> Score:
        try:
            return as_score(function(case))
        except Exception as e:  # noqa: BLE001 - the function may raise anything
            return Score(None, f"{text}: {type(e).__name__}: {e}")

    return check


def as_score(value: Any) -> Score:
    """Return the score for the result of a function.

    Raises:
        TypeError: the result is not a score.
        ValueError: the number is not from 0 to 1.
    """
    if isinstance(value, Score):
        return Score(as_score(value.value).value, value.reason)
    if isinstance(value, tuple) and len(value) == 2:
        return Score(as_score(value[0]).value, str(value[1]))
    if value is None:
        return Score(None)
    if not isinstance(value, bool | int | float):
        raise TypeError(f"returned {type(value).__name__}, not a score")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"returned {value}, not a number from 0 to 1")
    return Score(float(value))


def _loaded(text: str) -> Callable[[Case], Any]:
    module, _, path = text.partition(":")
    if not module or not path:
        raise ConfigError(f"scorer custom: {text!r} is not module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as e:  # noqa: BLE001 - the user's module may raise anything
        raise ConfigError(f"scorer custom: {text}: {type(e).__name__}: {e}") from None
    if not callable(found):
        raise ConfigError(f"scorer custom: {text} is not a function")
    return found  # type: ignore[no-any-return]


SCORER = Scorer(
    name="custom",
    help="your function: custom:MODULE:FUNCTION; only for --scorer, not for the field of a task",
    make=make,
    from_tasks=False,
)
