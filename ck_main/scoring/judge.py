"""A model as judge: its prompt, its verdict, and a cache of its verdicts."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ck_main.scoring.scorer import Case, Check, Score, Scorer
from ck_pro.exceptions import ConfigError, OutputError, ParseError
from ck_pro.run.sampling import Messages, fenced_prompt

_VERDICT = re.compile(r"verdict\W{0,8}(right|wrong)\b", re.IGNORECASE)
_FORM = (
    "Give the reason in one or two sentences. End with a line 'Verdict: right' or 'Verdict: wrong'."
)


def judge_messages(
    question: str, answer: str, log: str, gold: str | None, rubric: str = ""
) -> Messages:
    """Build the prompt that asks whether an answer is right.

    Args:
        question: the task.
        answer: answer of the agent.
        log: the agent's report on how it found the answer.
        gold: the right answer; None if unknown.
        rubric: rules for the decision; they replace the usual ones.
    """
    if rubric:
        rules = (
            "You judge the answer of an agent. Accept it only if it meets every point of the "
            "rubric."
        )
    elif gold is None:
        rules = (
            "You judge the answer of an agent. The right answer is unknown. Accept the answer only "
            "if it answers exactly what the task asks, in the required form, and the agent's "
            "report supports it."
        )
    else:
        rules = (
            "You compare the answer of an agent with the right answer. Accept it if it means the "
            "same. Other units, formats and additional correct words do not matter; another "
            "number or name does."
        )
    facts = [("Rubric", rubric)] if rubric else []
    facts += [("Task", question), ("Agent's answer", answer)]
    if rubric or gold is None:
        facts.append(("Agent's report", log))
    if gold is not None:
        facts.append(("Right answer", gold))
    return fenced_prompt(f"{rules}\n{_FORM}", facts)


def parse_verdict(reply: str) -> tuple[bool, str]:
    """Parse the judge's reply into (is right, reason); raise ParseError without a verdict."""
    found = list(_VERDICT.finditer(reply))
    if not found:
        raise ParseError("the judge's reply has no line 'Verdict: right' or 'Verdict: wrong'")
    return found[-1][1].casefold() == "right", reply[: found[-1].start()].strip(" *_`\n")


class Judge:
    """Judge answers with a model; equal questions are asked once. Thread-safe.

    Args:
        ask: calls the model with chat messages and returns its reply.
        model: names the model and its parameters; part of the cache's key.
        rubric: rules for tasks without a field `rubric`.
        cache: file of verdicts, JSON lines; None keeps them in memory.

    Attributes:
        asked, cached: number of answers judged by the model, and found in the cache.

    Raises:
        ConfigError: the cache cannot be read.
    """

    def __init__(
        self,
        ask: Callable[[Messages], str],
        model: str,
        *,
        rubric: str = "",
        cache: Path | None = None,
    ):
        self._ask, self._model, self._rubric, self._cache = ask, model, rubric, cache
        self._lock = threading.Lock()
        self._known = _verdicts_in(cache) if cache is not None else {}
        self.asked = self.cached = 0

    def score(self, case: Case) -> Score:
        """Return the verdict on an answer.

        Raises:
            ModelError, LimitReached, Cancelled: from `ask`.
            OutputError: the cache cannot be written.
        """
        rubric = case.original.get("rubric")
        rubric = rubric if isinstance(rubric, str) and rubric.strip() else self._rubric
        messages = judge_messages(case.question, case.pred, case.log, case.gold, rubric)
        text = json.dumps([self._model, messages], ensure_ascii=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        with self._lock:
            if key in self._known:
                self.cached += 1
                return Score(*self._known[key])
        reply = self._ask(messages)
        try:
            right, reason = parse_verdict(reply)
        except ParseError as e:
            return Score(None, f"not judged: {e}")
        with self._lock:
            self.asked += 1
            self._known[key] = (float(right), reason)
            if self._cache is not None:
                _append(self._cache, {"key": key, "right": int(right), "reason": reason})
        return Score(float(right), reason)


def _verdicts_in(path: Path) -> dict[str, tuple[float, str]]:
    """Read a cache; lines that a killed process left incomplete are skipped."""
    known = {}
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as e:
        raise ConfigError(f"cannot read the cache {path}: {e.strerror}") from None
    for line in lines:
        try:
            found = json.loads(line)
            known[str(found["key"])] = float(found["right"]), str(found["reason"])
        except (ValueError, KeyError, TypeError):
            continue
    return known


def _append(path: Path, line: dict[str, Any]) -> None:
    """Append a line; a torn last line is completed first."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - 1))
            newline = b"" if end == 0 or file.read(1) == b"\n" else b"\n"
            file.write(newline + json.dumps(line).encode() + b"\n")
    except OSError as e:
        raise OutputError(f"cannot write the cache {path}: {e.strerror}") from None


def make(text: str, judge: Judge | None) -> Check:
    """Return the check of the judge.

    Raises:
        ConfigError: there are options, or there is no judge.
    """
    if text:
        raise ConfigError(f"scorer judge: it has no options, but got {text!r}")
    if judge is None:
        raise ConfigError(
            "scorer judge: it needs a model: python -m ck_main.score --judge-model MODEL"
        )
    return judge.score


SCORER = Scorer(
    name="judge",
    help="a model decides, with a reason; --rubric FILE or the task's field `rubric` has its rules",
    make=make,
)
