"""Choose one of several tries of a task, and build its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ck_main.output.row import usage_of
from ck_main.output.row_schema import OutputRow, TrySummary
from ck_main.scoring.em import em
from ck_pro.exceptions import ConfigError
from ck_pro.model import LLM
from ck_pro.session import Status

Until = Literal["em", "llm_judge", "stop_with_answer"]
Choose = Literal["first", "vote", "judge"]


@dataclass(frozen=True)
class TryOptions:
    """Options for several tries of each task.

    Args:
        tries: maximum number of tries.
        seeds: model seeds, one per try; empty means no seeds.
        until: stop at the first try that meets this condition; None makes all tries.
            "em": the answer matches the right one, or there is an answer if none is known.
            "llm_judge": a model judges the answer right.
            "stop_with_answer": the try completed with an answer.
        reflect: add a model's advice on a failed try to the question of the next try.
        choose: without `until`, how to choose among all tries: the first with an answer, the
            most frequent answer, or the one that a model prefers.
        judge: model that judges, advises and chooses; default: the agent's model.

    Raises:
        ConfigError: two options contradict each other, or one is missing.
    """

    tries: int = 1
    seeds: tuple[int, ...] = ()
    until: Until | None = None
    reflect: bool = False
    choose: Choose | None = None
    judge: LLM | None = None

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ConfigError("tries: at least 1")
        if self.seeds and len(self.seeds) != self.tries:
            raise ConfigError(
                f"seeds: {len(self.seeds)} for {self.tries} tries; give one for each try"
            )
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("seeds: duplicate seed; give each try a different one")
        if self.until not in (None, *get_args(Until)):
            raise ConfigError(f"until: {self.until!r} is not one of {', '.join(get_args(Until))}")
        if self.choose not in (None, *get_args(Choose)):
            raise ConfigError(
                f"choose: {self.choose!r} is not one of {', '.join(get_args(Choose))}"
            )
        if self.until is not None and self.choose is not None:
            raise ConfigError("give until or choose, not both: until stops at the first right try")
        if self.tries == 1 and (self.until or self.choose or self.reflect):
            raise ConfigError("until, reflect and choose need more than one try")
        if self.reflect and self.until is None:
            raise ConfigError("reflect needs until, which decides when a try has failed")

    def seed(self, number: int) -> int | None:
        """Return the seed of a try, counted from 1."""
        return self.seeds[number - 1] if self.seeds else None

    @property
    def asks_judge(self) -> bool:
        """Whether these options need calls to a judge model."""
        return self.reflect or self.until == "llm_judge" or self.choose == "judge"


def is_right(row: OutputRow, until: Until) -> bool:
    """Whether a try's row meets the `until` condition."""
    scored = row["eval"]
    if until == "llm_judge":
        return bool(scored.get("judge") == 1)
    if until == "em" and scored["gold"] is not None:
        return bool(scored["corr"] == 1)
    return answered(row["session"]["info"]["status"], scored["pred"])


def group_equal(answers: Sequence[str], among: Sequence[int]) -> list[list[int]]:
    """Group the indices of equal answers, ordered by first occurrence."""
    groups: list[list[int]] = []
    for index in among:
        for group in groups:
            other = answers[group[0]]
            if em(answers[index], other) or em(other, answers[index]):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def chosen(rows: Sequence[OutputRow], options: TryOptions) -> tuple[str, int]:
    """Choose a try; return the method and the index.

    With `until` choose the last try: it is right, or it had the most advice. If the model that
    should choose failed, use a vote instead.
    """
    if options.until is not None:
        return options.until, len(rows) - 1
    how, among = options.choose or "first", with_answer(rows)
    if how == "first" or not among:
        return how, (among or [0])[0]
    choice = rows[-1]["eval"].get("choice")
    if how == "judge" and isinstance(choice, int) and 0 <= choice < len(rows):
        return how, choice
    groups = group_equal([r["eval"]["pred"] for r in rows], among)
    best = max(groups, key=len)[0]  # of equally many, the answer that came first
    return how if how == "vote" or len(groups) == 1 else "vote", best


def assemble(rows: Sequence[OutputRow], options: TryOptions) -> tuple[OutputRow, list[OutputRow]]:
    """Build a task's row from those of its tries; also return the rows to store beside it."""
    how, index = chosen(rows, options)
    final = rows[index].copy()
    others = [row for n, row in enumerate(rows) if n != index]
    if options.until is not None and others:
        final["previous_failed_sessions"] = [
            {"session": row["session"], "eval": row["eval"]} for row in others
        ]
        others = []
    final["sel_aggr"] = how
    final["sel_cands"] = [_summary(row) for row in rows]
    final["sel_idx"] = index
    return final, [_renamed(row) for row in others]


def _renamed(row: OutputRow) -> OutputRow:
    copy = row.copy()
    copy["id"] = _try_id(row)
    return copy


def _try_id(row: OutputRow) -> str:
    """Return an id for the row of a try, unique for each session of the try."""
    session = row["session"]
    return f"{row['id']}/try-{session['info']['try']['number']}-{session['id'][:8]}"


def _summary(row: OutputRow) -> TrySummary:
    session, scored = row["session"], row["eval"]
    info = session["info"]
    return {
        "number": info["try"]["number"],
        "seed": info["try"]["seed"],
        "session": session["id"],
        "output": scored["pred"],
        "corr": scored["corr"],
        "judge": scored.get("judge"),
        "status": info["status"],
        "stop_reason": info.get("stop_reason"),
        **usage_of(session),
    }


def answered(status: str | Status, answer: str) -> bool:
    """Whether a session completed with an answer."""
    return status == Status.DONE.value and bool(answer.strip())


def with_answer(rows: Sequence[OutputRow]) -> list[int]:
    """Return the indices of the tries that completed with an answer."""
    return [
        n
        for n, row in enumerate(rows)
        if answered(row["session"]["info"]["status"], row["eval"]["pred"])
    ]
