"""Several tries of one task: until one is right, or a choice among all of them.

Each try has a folder of its own in the task's, `try-1/`, `try-2/`, ..., with a whole journal. The
row of the task is that of the chosen try; the others are kept:

- with `until`, the tries before it failed: they are in the row, under `previous_failed_sessions`,
  each with its `eval`; the advice that went into the chosen try is under `feedback`;
- with `choose`, any of them may be right: each is a row of `<output>.tries.jsonl`.

The row also says `sel_aggr` (how was chosen), `sel_cands` (one summary per try) and `sel_idx`. All
of it comes from the journals: a killed run tries nothing again that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ck_main.output.row import WRITTEN_EVENT
from ck_main.runner import judging
from ck_main.runner.attempt import Agent, Assignment, Attempt
from ck_main.runner.choosing import TryOptions, answered, answering, assemble, grouped, is_right
from ck_main.runner.limits import TaskBudget
from ck_main.runner.model_settings import settings_of_models
from ck_main.runner.previous_attempt import PreviousAttempt, stored
from ck_main.runner.task_folder import set_aside, tries_in
from ck_main.tasks.dataset import Task
from ck_main.tasks.scoring import evaluate
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import Cancelled, LimitReached, ModelError, ParseError
from ck_pro.journal import Journal
from ck_pro.model import LLM, Budget
from ck_pro.run.sampling import CHOOSE, Messages, choice_messages, parse_choice
from ck_pro.session import AgentSession

_T = TypeVar("_T")


class Runner(Protocol):
    """What the tries of a task need of the runner."""

    agent: Agent

    @property
    def budget(self) -> Budget:
        """What all tasks use."""

    def begins(self, task: Task) -> None:
        """Tell that work on a task begins."""

    def attempt(
        self, agent: Agent, assignment: Assignment, spent: Budget, close: Callable[[Attempt], _T]
    ) -> _T | None:
        """Make attempts until one counts; None if they were stopped."""

    def counts(self, attempt: Attempt) -> bool:
        """Whether what failed in an attempt was no outage."""

    def say(self, task: Task, text: str) -> None:
        """Tell one line about a task to a person."""

    def say_stopped(self, task: Task) -> None:
        """Tell that a task was stopped before its end."""

    def tell(self, task: Task, event: dict[str, Any]) -> None:
        """Tell of something that happened in a task."""

    def keep_try(self, row: dict[str, Any]) -> None:
        """Write the row of a try that was not chosen, unless it is there."""

    def write(self, row: dict[str, Any], spent: Budget | None = None) -> None:
        """Write the row of the task."""


class TaskTries:
    """All tries of one task.

    Args:
        runner: makes the attempts and writes the rows.
        task: the task.
        folder: of the task, claimed.
        options: see `TryOptions`.
        written: the row of the task was written, and the output lost it.
    """

    def __init__(
        self,
        runner: Runner,
        task: Task,
        folder: Path,
        options: TryOptions,
        *,
        written: bool = False,
    ):
        self.runner, self.task, self.folder, self.options = runner, task, folder, options
        self._written = written
        self._next: PreviousAttempt | None = None

    def run(self) -> None:
        """Try, choose, and write the row; without a row if it was stopped."""
        rows = self._recorded()
        spent = TaskBudget(parent=self.runner.budget)
        if not self._over(rows):
            self.runner.begins(self.task)
        while not self._over(rows):
            row = self._try(rows, spent)
            if row is None:
                return
            rows.append(row)
            if self.options.tries > 1:
                self._tell(row, len(rows), spent)
        final, others = assemble(rows, self.options)
        for row in others:
            self.runner.keep_try(row)
        self.runner.write(final, spent)
        with Journal(self._folder(1)) as journal:
            journal.append(WRITTEN_EVENT, sid=rows[0]["session"]["id"])

    def rebuilt(self) -> dict[str, Any] | None:
        """The row of the task, if all of its tries were made."""
        rows: list[dict[str, Any]] = []
        while not self._over(rows):
            row = PreviousAttempt(self._folder(len(rows) + 1)).row(self.task, written=True)
            if row is None or not self._fits(row["session"], rows):
                return None
            rows.append(row)
        return assemble(rows, self.options)[0]

    def _over(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        until = self.options.until
        right = bool(rows) and until is not None and is_right(rows[-1], until)
        return right or len(rows) >= self.options.tries

    def _tell(self, row: Mapping[str, Any], number: int, spent: Budget) -> None:
        used = spent.snapshot()
        event: dict[str, Any] = {
            "kind": "try_ended",
            "path": [row["session"]["info"]["agent"]],
            "row": row,
        }
        event.update(number=number, tries=self.options.tries, step=len(row["session"]["steps"]))
        event.update(tokens=used["tokens"], money=used["money"], text=f"try {number} ended")
        self.runner.tell(self.task, event)

    # --- folders -----------------------------------------------------------------------------

    def _folder(self, number: int) -> Path:
        return self.folder / f"try-{number}"

    def _recorded(self) -> list[dict[str, Any]]:
        """The rows of the tries that earlier runs have ended; what does not belong to these
        tries, such as those of other seeds, is moved aside."""
        rows: list[dict[str, Any]] = []
        while not self._over(rows):
            self._next = PreviousAttempt(self._folder(len(rows) + 1))
            row = self._next.row(self.task, written=self._written)
            if row is None or not self._fits(row["session"], rows):
                break
            rows.append(row)
        # the next one may be in the middle; those after it follow from nothing that is kept
        first = len(rows) + 1 + (not self._over(rows))
        aside = set_aside(self.folder, tries_in(self.folder, first))
        if aside is not None:
            said = f"tries from the {first}. on do not belong to this command; they are in {aside}"
            self.runner.say(self.task, said)
        return rows

    def _fits(self, session: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a session is the try that comes after these."""
        asked = stored({"q": self._question(before)})["q"]
        known = (session["task"], session["info"].get("try"))
        return known == (asked, self._mark(len(before) + 1))

    def _goes_on(self, earlier: PreviousAttempt, before: Sequence[Mapping[str, Any]]) -> bool:
        """Whether what an earlier run left is the beginning of the try that comes after these."""
        session = earlier.session
        if session is None or earlier.complete:
            return False
        return self._fits({"task": session.task, "info": session.info}, before)

    def _mark(self, number: int) -> dict[str, Any]:
        return {"number": number, "seed": self.options.seed(number)}

    # --- one try -----------------------------------------------------------------------------

    def _question(self, before: Sequence[Mapping[str, Any]]) -> str:
        """The task as the try after these gets it."""
        failed = [(r["eval"]["pred"], r["eval"].get("feedback", "")) for r in before]
        return judging.with_advice(self.task.question, failed)

    def _try(self, before: Sequence[dict[str, Any]], spent: Budget) -> dict[str, Any] | None:
        number = len(before) + 1
        folder = self._folder(number)
        earlier, self._next = self._next or PreviousAttempt(folder), None
        advice = [r["eval"]["feedback"] for r in before if r["eval"].get("feedback")]
        assignment = Assignment(
            self.task,
            folder,
            question=self._question(before),
            row_facts={"feedback": "\n".join(advice)} if advice else {},
            info={"try": self._mark(number)},
            afresh=not self._goes_on(earlier, before),
            earlier=earlier,
        )
        agent = with_seed(self.runner.agent, self.options.seed(number))
        return self.runner.attempt(agent, assignment, spent, lambda a: self._closed(a, before))

    def _closed(self, attempt: Attempt, before: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """The row of a try that ended; None if it was stopped while it was judged."""
        judged: dict[str, Any] = {}
        try:
            self._judge(attempt, before, judged)
        except Cancelled:
            self.runner.say_stopped(self.task)
            return None
        except (ModelError, LimitReached, ParseError) as e:
            if not self.runner.counts(attempt):
                return None
            judged.setdefault("judge_reason", f"not judged: {type(e).__name__}: {e}")
        return attempt.finish(judged)

    def _judge(
        self, attempt: Attempt, before: Sequence[dict[str, Any]], judged: dict[str, Any]
    ) -> None:
        """Fill in what the row's `eval` says beside the score."""
        options, task, session = self.options, self.task, attempt.session
        results = session.final_results or {"output": "", "log": ""}
        answer, log = results["output"], results["log"]
        llm = options.judge or getattr(attempt.agent, "model", None)
        if options.until == "llm_judge" and answered(session.status, answer):
            asked = judging.judge_messages(task.question, answer, log, task.answer)
            said = self._ask(attempt, llm, asked, judging.JUDGE)
            try:
                right, reason = judging.parse_verdict(said)
                judged.update(judge=int(right), judge_reason=reason)
            except ParseError as e:  # there may be advice all the same
                judged["judge_reason"] = f"not judged: ParseError: {e}"
        row = {
            "session": {"info": {"status": session.status.value, "final_results": results}},
            "eval": {**evaluate(answer, task.answer), **judged},
        }
        last = len(before) + 1 == options.tries
        if options.reflect and not last and not is_right(row, options.until or "em"):
            said = _ending(session, answer, judged if task.answer is None else {})
            asked = judging.reflect_messages(task.question, session.steps, said)
            judged["feedback"] = self._ask(attempt, llm, asked, judging.REFLECT).strip()
        if options.choose == "judge" and last:
            judged.update(self._chosen(attempt, llm, [*before, row]))

    def _chosen(
        self, attempt: Attempt, llm: LLM | None, rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """What a model says on which of the tries is best; nothing where there is no choice."""
        groups = grouped([r["eval"]["pred"] for r in rows], answering(rows))
        if len(groups) < 2:
            return {}
        firsts = [group[0] for group in groups]
        answers = [(rows[i]["eval"]["pred"], _log_of(rows[i])) for i in firsts]
        asked = choice_messages(self.task.question, answers)
        reply = self._ask(attempt, llm, asked, CHOOSE)
        index, reason = parse_choice(reply, len(answers))
        return {"choice": firsts[index], "choice_reason": reason}

    @staticmethod
    def _ask(attempt: Attempt, llm: LLM | None, messages: Messages, phase: str) -> str:
        if llm is None:
            raise ModelError("the agent has no model that could judge; name one")
        return attempt.call_model(llm, messages, phase)


def with_seed(agent: Agent, seed: int | None) -> Agent:
    """The agent with a seed for all its models; itself without one."""
    if seed is None or not isinstance(agent, KwargsInitializable):
        return agent
    return agent.updated(settings_of_models(agent, {"call_kwargs": {"seed": seed}}))


def _ending(session: AgentSession, answer: str, judged: Mapping[str, Any]) -> str:
    if not answered(session.status, answer):
        return f"It ended without an answer: {session.stop_reason}: {session.message}"
    reason = judged.get("judge_reason", "")
    return f"It answered {answer!r}, and that was judged wrong. {reason}".rstrip()


def _log_of(row: Mapping[str, Any]) -> str:
    results = row["session"]["info"].get("final_results") or {}
    return str(results.get("log", ""))
