"""What all scorers share: `Case`, `Score`, `Scorer`, and the options in a scorer's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ck_pro.exceptions import ConfigError

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge


@dataclass(frozen=True)
class Case:
    """One answer to score.

    Args:
        pred: answer of the run.
        gold: the right answer; None if unknown.
        question: the task.
        log: the agent's report on how it found the answer.
        original: the task's line of the task file.
    """

    pred: str
    gold: str | None = None
    question: str = ""
    log: str = ""
    original: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """The score of one answer.

    Args:
        value: from 0 (wrong) to 1 (right); None if the answer cannot be scored.
        reason: why, if the scorer gives reasons.
    """

    value: float | None
    reason: str = ""


Check = Callable[[Case], Score]
"""Scores one answer."""


@dataclass(frozen=True)
class Scorer:
    """A kind of scorer.

    Args:
        name: its name in `--scorer NAME`.
        help: one line for `--help` and the docs.
        make: returns the check for the text after "NAME:" and the judge, if there is one. Raises
            ConfigError if the text is invalid.
        from_tasks: whether a line of a task file may select it.
    """

    name: str
    help: str
    make: Callable[[str, Judge | None], Check]
    from_tasks: bool = True


def matching(same: Callable[[str, str], bool]) -> Check:
    """Return the check for a function that compares an answer with the right one."""

    def check(case: Case) -> Score:
        return Score(None if case.gold is None else float(same(case.pred, case.gold)))

    return check


def without_options(name: str, check: Check) -> Callable[[str, Judge | None], Check]:
    """Return the `make` of a scorer that has no options."""

    def make(text: str, judge: Judge | None) -> Check:
        if text:
            raise ConfigError(f"scorer {name}: it has no options, but got {text!r}")
        return check

    return make


def options_in(name: str, text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Parse `a=1,b=x`; a name without a value has the value "yes".

    Args:
        name: of the scorer.
        text: the options. The value of the last known option may contain commas.
        known: the options, with the form of their values for the error message.

    Raises:
        ConfigError: an option is unknown or occurs twice.
    """
    found: dict[str, str] = {}
    last = ""
    for part in text.split(",") if text else ():
        option, equals, value = part.partition("=")
        option = option.strip()
        if option not in known:
            if last and found[last] != "yes" and (not equals or not option.isidentifier()):
                found[last] += f",{part}"
                continue
            forms = ", ".join(f"{k}={v}" for k, v in known.items())
            raise ConfigError(f"scorer {name}: no option {option!r}; known are: {forms}")
        if option in found:
            raise ConfigError(f"scorer {name}: the option {option} occurs twice")
        found[option] = value if equals else "yes"
        last = option
    return found
