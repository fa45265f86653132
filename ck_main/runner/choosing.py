"""Which of several tries of a task is taken, and what its row says of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ck_main.output.row_file import count_steps, tokens_of
from ck_main.tasks.scoring import em
from ck_pro.exceptions import ConfigError
from ck_pro.model import LLM
from ck_pro.session import Status

Until = Literal["em", "llm_judge", "stop_with_answer"]
Choose = Literal["first", "vote", "judge"]


@dataclass(frozen=True)
class TryOptions:
    """How a task is tried several times.

    Args:
        tries: at most so many.
        seeds: of the models, one per try and in their order; none are set if it is empty.
        until: try again until a try is right: its answer is the right one ("em"; where that is
            not known, it answered), a model says so ("llm_judge"), or it ended with an answer
            ("stop_with_answer"). None: all tries are made.
        reflect: a model's advice from a failed try goes into the task of the next.
        choose: among all tries, without `until`: the first that answered, the answer that most
            gave, or the one that a model prefers.
        judge: that model; the agent's own if None.

    Raises:
        ConfigError: they do not go together.
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
            raise ConfigError("seeds: the same twice; give each try another")
        if self.until not in (None, *get_args(Until)):
            raise ConfigError(f"until: {self.until!r} is not one of {', '.join(get_args(Until))}")
        if self.choose not in (None, *get_args(Choose)):
            raise ConfigError(
                f"choose: {self.choose!r} is not one of {', '.join(get_args(Choose))}"
            )
        if self.until is not None and self.choose is not None:
            raise ConfigError("until stops at the first right try, so there is nothing to choose")
        if self.tries == 1 and (self.until or self.choose or self.reflect):
            raise ConfigError("until, reflect and choose need more than one try")
        if self.reflect and self.until is None:
            raise ConfigError("reflect needs until, which says when a try has failed")

    def seed(self, number: int) -> int | None:
        """The seed of a try, counted from 1."""
        return self.seeds[number - 1] if self.seeds else None

    @property
    def asks_judge(self) -> bool:
        """Whether a model is asked about tries."""
        return self.reflect or self.until == "llm_judge" or self.choose == "judge"


def is_right(row: Mapping[str, Any], until: Until) -> bool:
    """Whether a try's row is what is tried for."""
    scored = row["eval"]
    if until == "llm_judge":
        return bool(scored.get("judge") == 1)
    if until == "em" and scored["gold"] is not None:
        return bool(scored["corr"] == 1)
    return answered(row["session"]["info"]["status"], scored["pred"])


def grouped(answers: Sequence[str], among: Sequence[int]) -> list[list[int]]:
    """Indices of equal answers together, in order of their first."""
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


def chosen(rows: Sequence[Mapping[str, Any]], options: TryOptions) -> tuple[str, int]:
    """How a try is chosen, and its index.

    With `until` it is the last: the right one, or the one that knew most. A model that was to
    choose and could not is replaced by a vote.
    """
    if options.until is not None:
        return options.until, len(rows) - 1
    how, among = options.choose or "first", answering(rows)
    if how == "first" or not among:
        return how, (among or [0])[0]
    choice = rows[-1]["eval"].get("choice")
    if how == "judge" and isinstance(choice, int) and 0 <= choice < len(rows):
        return how, choice
    groups = grouped([r["eval"]["pred"] for r in rows], among)
    best = max(groups, key=len)[0]  # of equally many, the answer that came first
    return how if how == "vote" or len(groups) == 1 else "vote", best


def assemble(
    rows: Sequence[dict[str, Any]], options: TryOptions
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a task from those of its tries, and the rows to be kept beside it."""
    how, index = chosen(rows, options)
    final = dict(rows[index])
    others = [row for n, row in enumerate(rows) if n != index]
    if options.until is not None and others:
        final["previous_failed_sessions"] = [
            {"session": row["session"], "eval": row["eval"]} for row in others
        ]
        others = []
    final.update(sel_aggr=how, sel_cands=[_summary(row) for row in rows], sel_idx=index)
    return final, [{**row, "id": _try_id(row)} for row in others]


def _try_id(row: Mapping[str, Any]) -> str:
    """An id for the row of a try: another one for another session of the same try."""
    session = row["session"]
    return f"{row['id']}/try-{session['info']['try']['number']}-{session['id'][:8]}"


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    session, scored = row["session"], row["eval"]
    info = session["info"]
    out = {**info["try"], "session": session["id"], "output": scored["pred"]}
    out.update(corr=scored["corr"], judge=scored.get("judge"), status=info["status"])
    out.update(stop_reason=info.get("stop_reason"))
    seconds = float(info.get("duration", 0.0))
    out.update(steps=count_steps(session), tokens=tokens_of(session), seconds=seconds)
    return out


def answered(status: str | Status, answer: str) -> bool:
    """Whether a session ended by its own decision and with an answer."""
    return status == Status.DONE.value and bool(answer.strip())


def answering(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Indices of the tries that ended with an answer."""
    return [
        n
        for n, row in enumerate(rows)
        if answered(row["session"]["info"]["status"], row["eval"]["pred"])
    ]
