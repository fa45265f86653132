"""Score the answers of runs: with one scorer, or with the one that a task names."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ck_main.scoring.scorer import Case, Check, Score, Scorer
from ck_pro.exceptions import ConfigError

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge

DEFAULT = "em"
FIELD = "scorer"
"""Field of a task that names its scorer, such as "numeric:rel=0.01"."""
_REASON_CHARS = 2000
_NO_JUDGE = "not judged: score the output with python -m ck_main.score --judge-model MODEL"


class Scoring:
    """Score answers.

    Args:
        scorer: "NAME" or "NAME:OPTIONS", for tasks that name no scorer.
        judge: the model for the scorer `judge`.
        field: field of the task that names its scorer; "" ignores it.

    Raises:
        ConfigError: the scorer or its options are unknown.
    """

    def __init__(self, scorer: str = DEFAULT, *, judge: Judge | None = None, field: str = FIELD):
        self.default, self._judge, self._field = scorer, judge, field
        known, options = _known(scorer, from_task=False)
        self._checks: dict[str, Check] = {scorer: known.make(options, judge)}

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Pickle the settings, for runs on other machines; the checks may have processes."""
        return partial(Scoring, self.default, judge=self._judge, field=self._field), ()

    def scorer_of(self, original: Mapping[str, Any]) -> str:
        """Return the scorer of a task: the one that its line names, or the default."""
        return (named_in(original, self._field) if self._field else "") or self.default

    def evaluate(self, case: Case) -> dict[str, Any]:
        """Return the `eval` part of a row: `{pred, gold, corr}`.

        `corr` is 1, 0, a number between them, or None if the answer cannot be scored. `scorer` and
        `reason` are added unless the scorer is `em`.

        Raises:
            ConfigError: the task names an unknown scorer, or one that a task may not name.
            ModelError, LimitReached: the judge's model failed, or its budget is used up.
        """
        name = self.scorer_of(case.original)
        if name not in self._checks:
            self._checks[name] = _check_of_task(name, self._judge)
        score = self._checks[name](case)
        value = score.value
        whole = value is not None and value == int(value)
        corr = int(value) if whole and value is not None else value
        found: dict[str, Any] = {"pred": case.pred, "gold": case.gold, "corr": corr}
        if name != DEFAULT:
            found["scorer"] = name
            if score.reason:
                found["reason"] = score.reason[:_REASON_CHARS]
        return found


@cache
def scorers() -> dict[str, Scorer]:
    """Return all scorers by name, sorted: the `SCORER` of each module in this folder."""
    room = __name__.rpartition(".")[0]
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    found = [getattr(import_module(f"{room}.{one.name}"), "SCORER", None) for one in modules]
    known = (s for s in found if isinstance(s, Scorer))
    return {s.name: s for s in sorted(known, key=lambda s: s.name)}


def named_in(original: Mapping[str, Any], field: str = FIELD) -> str:
    """Return the scorer that a task's line names; "" if it names none."""
    info = original.get("info")
    for place in (original, info if isinstance(info, Mapping) else {}):
        value = place.get(field)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def check_named(text: str) -> None:
    """Check the scorer that a task's line names.

    Raises:
        ConfigError: it is unknown, or a task may not name it.
    """
    _check_of_task(text, None)


@cache
def default_scoring() -> Scoring:
    """Return the scoring of runs that choose no other: `em`, or what the task names."""
    return Scoring()


def _check_of_task(text: str, judge: Judge | None) -> Check:
    scorer, options = _known(text, from_task=True)
    if scorer.name == "judge" and judge is None and not options:
        return lambda case: Score(None, _NO_JUDGE)
    return scorer.make(options, judge)


def _known(text: str, *, from_task: bool) -> tuple[Scorer, str]:
    name, _, options = text.strip().partition(":")
    known = scorers()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        raise ConfigError(f"no scorer {name!r}; {hint}")
    if from_task and not known[name].from_tasks:
        raise ConfigError(f"a task may not name the scorer {name!r}; use --scorer {text}")
    return known[name], options.strip()
