"""Which labels apply to a run or a call, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import InputError
from ck_pro.trajectory.labels.label import LEVELS, Label, Reply, Verdict
from ck_pro.trajectory.labels.label_file import LabelFile
from ck_pro.trajectory.reading.attempts import Try, sid_of
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.sources import Problem


@dataclass(frozen=True)
class Decision:
    """What the labels say about a run or a call.

    Args:
        excluded: whether the last label that includes or excludes it, excludes it.
        judgement: "good" or "bad", by the label of the smallest part; "" without one.
        of_run: whether the judgement is about the whole run.
        reply: the corrected reply.
        labelled: whether any label applies.
        corrected: whether there is a corrected reply, for the corrected call and its original.
    """

    excluded: bool = False
    judgement: str = ""
    of_run: bool = False
    reply: Reply | None = None
    labelled: bool = False
    corrected: bool = False

    def has(self, verdict: Verdict | Literal["corrected"]) -> bool:
        """Return whether this is the verdict."""
        if verdict == "corrected":
            return self.corrected and not self.excluded
        if verdict in ("good", "bad"):
            return not self.excluded and self.judgement == verdict
        return self.labelled and self.excluded == (verdict == "exclude")


NO_DECISION = Decision()


class Labels:
    """The labels of an export.

    Args:
        labels: in order; the last of each target applies.
        good_score: lowest score of a good reply; a good label gives at least this reward, a bad
            label less.
        problems: lines of the files that are not labels.
    """

    def __init__(
        self,
        labels: Iterable[Label],
        good_score: float = 1.0,
        problems: Iterable[Problem] = (),
    ):
        last: dict[Any, Label] = {}
        for label in labels:
            last.pop(label.target, None)
            if label.verdict is not None or label.reply is not None:
                last[label.target] = label
        self.problems = list(problems)
        self.good = max(1.0, good_score)
        self.bad = 0.0 if good_score > 0.0 else good_score - 1.0
        self._by_id: dict[Any, list[tuple[int, Label]]] = {}
        for n, label in enumerate(last.values()):
            self._by_id.setdefault(label.target["id"], []).append((n, label))
        self._all = list(last.values())
        self._matched: set[int] = set()
        self._outdated: set[int] = set()

    @classmethod
    def read(cls, paths: Iterable[Path], good_score: float = 1.0) -> Labels:
        """Read label files; later files take precedence.

        Raises:
            InputError: a file cannot be read, or is not a file of labels.
        """
        labels: list[Label] = []
        problems: list[Problem] = []
        for path in paths:
            found, wrong = LabelFile(path).read()
            if wrong and not found:
                raise InputError(f"{wrong[0]}")
            labels += found
            problems += wrong
        return cls(labels, good_score, problems)

    def __len__(self) -> int:
        return len(self._all)

    def of_run(self, attempt: Try) -> Decision:
        """Return the decision about a whole run."""
        return _decided(
            label for _, label in self._matching(_run_facts(attempt)) if label.target.level == "run"
        )

    def of_call(self, call: Call) -> Decision:
        """Return the decision about a call."""
        return self.of_facts(facts_of(call), lambda: call.recorded_mark)

    def of_facts(self, facts: Mapping[str, Any], mark: Callable[[], str]) -> Decision:
        """Return the decision about the call with these facts, whose reply has this mark."""
        found = []
        for n, label in self._matching(facts):
            if label.recorded and label.recorded != mark():
                self._outdated.add(n)
                continue
            self._matched.add(n)
            found.append(label)
        return _decided(found) if found else NO_DECISION

    def concern(self, attempt: Try) -> bool:
        """Return whether any label may apply to a part of a try."""
        return attempt.task_id in self._by_id or None in self._by_id

    def judged_run(self, attempt: Try) -> Try:
        """Return a try with the score that its label gives, if it has one."""
        value = self.value(self.of_run(attempt).judgement)
        return attempt if value is None else replace(attempt, score=value)

    def value(self, judgement: str) -> float | None:
        """Return the reward of a judgement."""
        return {"good": self.good, "bad": self.bad}.get(judgement)

    def unmatched(self) -> list[str]:
        """Return a line for each label that matched no call so far."""
        out = []
        for n, label in enumerate(self._all):
            if n in self._matched:
                continue
            why = "no call of the input matches its target"
            if n in self._outdated:
                why = "the reply of its call has changed since; label it again"
            out.append(f"{label.where or 'label'}: {why} ({label.target})")
        return out

    def _matching(self, facts: Mapping[str, Any]) -> list[tuple[int, Label]]:
        near = (*self._by_id.get(facts["id"], ()), *self._by_id.get(None, ()))
        found = [(n, label) for n, label in near if label.target.matches(facts)]
        return sorted(found, key=lambda one: one[0])


def _decided(labels: Iterable[Label]) -> Decision:
    """Combine the labels of a run or a call, given in order."""
    found = NO_DECISION
    rank = -1
    for label in labels:
        found = replace(found, labelled=True)
        level = LEVELS.index(label.target.level)
        if label.verdict in ("include", "exclude"):
            found = replace(found, excluded=label.verdict == "exclude")
        elif label.verdict is not None and level >= rank:
            rank = level
            found = replace(found, judgement=str(label.verdict), of_run=level == 0)
        if label.reply is not None:
            found = replace(found, reply=label.reply, corrected=True)
    return found


def _run_facts(attempt: Try) -> dict[str, Any]:
    run = sid_of(attempt.session)
    return {"id": attempt.task_id, "try": attempt.number, "run": run}


def facts_of(call: Call) -> dict[str, Any]:
    """Return the facts of a call that targets name."""
    place = (call.session_id, call.agent_path, call.step, call.number, call.phase)
    return call_facts(call.attempt, *place)


def call_facts(
    attempt: Try, session: str, path: tuple[str, ...], step: int, number: int, phase: str
) -> dict[str, Any]:
    """Return the facts of a call from its place; see `Call`."""
    return {
        **_run_facts(attempt),
        "session": session,
        "agent": path[-1],
        "agent_path": "/".join(path),
        "step": step,
        "call": number,
        "phase": phase,
    }
