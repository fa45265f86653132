"""Several tries of one task: until one is right, or a choice among all of them.

Each try has its own folder in the task's folder, `try-1/`, `try-2/`, ..., with a full journal. The
row of the task is that of the chosen try. The other tries are stored too:

- with `until`, the earlier tries failed. The row lists them under `previous_failed_sessions`, each
  with its `eval`. The advice given to the chosen try is under `feedback`;
- with `choose`, any try may be right. Each other try is a row of `<output>.tries.jsonl`.

The row also has `sel_aggr` (how the try was chosen), `sel_cands` (one summary per try) and
`sel_idx`. All data comes from the journals, so a killed run does not repeat finished tries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ck_main.output.row_schema import Judgement, OutputRow
from ck_main.runner import judging
from ck_main.runner.attempt import Agent, Assignment, Attempt
from ck_main.runner.choosing import (
    TryOptions,
    answered,
    assemble,
    group_equal,
    is_right,
    with_answer,
)
from ck_main.runner.limits import TaskBudget
from ck_main.runner.model_settings import settings_of_models
from ck_main.runner.task_folder import PreviousAttempt, masked_facts, set_aside, tries_in
from ck_main.scoring.judge import judge_messages, parse_verdict
from ck_main.tasks.dataset import Task
from ck_pro.config import KwargsInitializable
from ck_pro.events import EventKind
from ck_pro.events.progress_events import ProgressEvent, ProgressKind
from ck_pro.exceptions import Cancelled, LimitReached, ModelError, ParseError
from ck_pro.journal import Journal
from ck_pro.model import LLM, Budget
from ck_pro.run.sampling import CHOOSE, Messages, choice_messages, parse_choice
from ck_pro.session import AgentSession

_T = TypeVar("_T")


class Runner(Protocol):
    """The runner interface that `TaskTries` uses."""

    agent: Agent

    @property
    def budget(self) -> Budget:
        """Usage of all tasks."""

    def report_start(self, task: Task) -> None:
        """Report the start of a task."""

    def attempt(
        self, agent: Agent, assignment: Assignment, spent: Budget, close: Callable[[Attempt], _T]
    ) -> _T | None:
        """Make attempts until one gives a row; return None if the run was stopped."""

    def gives_row(self, attempt: Attempt) -> bool:
        """Whether an attempt gives a row: it was not stopped, and no service is unreachable."""

    def say(self, task: Task, text: str) -> None:
        """Display one line about a task."""

    def report_stopped(self, task: Task) -> None:
        """Report that a task was stopped before it ended."""

    def report_event(self, task: Task, event: ProgressEvent) -> None:
        """Report an event of a task."""

    def write_try(self, row: OutputRow) -> None:
        """Write the row of a try that was not chosen, unless it exists."""

    def write(self, row: OutputRow, spent: Budget | None = None) -> None:
        """Write the row of the task."""


class TaskTries:
    """All tries of one task.

    Args:
        runner: runner that makes the attempts and writes the rows.
        task: the task.
        folder: locked folder of the task.
        options: see `TryOptions`.
        written: whether the row of the task was written and then lost from the output.
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
        """Make the tries, choose one, and write the row; write no row if the run was stopped."""
        rows = self._completed_rows()
        spent = TaskBudget(parent=self.runner.budget)
        if not self._is_complete(rows):
            self.runner.report_start(self.task)
        while not self._is_complete(rows):
            row = self._try(rows, spent)
            if row is None:
                return
            rows.append(row)
            if self.options.tries > 1:
                self._report_try(row, len(rows), spent)
        final, others = assemble(rows, self.options)
        for row in others:
            self.runner.write_try(row)
        self.runner.write(final, spent)
        with Journal(self._folder(1)) as journal:
            journal.append(EventKind.ROW, sid=rows[0]["session"]["id"])

    def rebuilt(self) -> OutputRow | None:
        """Rebuild the row of the task if all of its tries ended, else return None."""
        rows: list[OutputRow] = []
        while not self._is_complete(rows):
            row = PreviousAttempt(self._folder(len(rows) + 1)).row(self.task, written=True)
            if row is None or not self._belongs(row["session"], rows):
                return None
            rows.append(row)
        return assemble(rows, self.options)[0]

    def _is_complete(self, rows: Sequence[OutputRow]) -> bool:
        until = self.options.until
        right = bool(rows) and until is not None and is_right(rows[-1], until)
        return right or len(rows) >= self.options.tries

    def _report_try(self, row: OutputRow, number: int, spent: Budget) -> None:
        used = spent.snapshot()
        event: ProgressEvent = {
            "kind": ProgressKind.TRY_ENDED,
            "path": [row["session"]["info"]["agent"]],
            "row": row,
            "number": number,
            "tries": self.options.tries,
            "step": len(row["session"]["steps"]),
            "tokens": used["tokens"],
            "money": used["money"],
            "text": f"try {number} ended",
        }
        self.runner.report_event(self.task, event)

    # --- folders -----------------------------------------------------------------------------

    def _folder(self, number: int) -> Path:
        return self.folder / f"try-{number}"

    def _completed_rows(self) -> list[OutputRow]:
        """Return the rows of tries that earlier runs ended.

        Tries that do not belong to this command, such as those with other seeds, are moved aside.
        """
        rows: list[OutputRow] = []
        while not self._is_complete(rows):
            self._next = PreviousAttempt(self._folder(len(rows) + 1))
            row = self._next.row(self.task, written=self._written)
            if row is None or not self._belongs(row["session"], rows):
                break
            rows.append(row)
        # the next try may be in progress; later ones depend on tries that are not kept
        first = len(rows) + 1 + (not self._is_complete(rows))
        aside = set_aside(self.folder, tries_in(self.folder, first))
        if aside is not None:
            text = f"moved try {first} and later to {aside}: they do not belong to this command"
            self.runner.say(self.task, text)
        return rows

    def _belongs(self, session: Mapping[str, Any], before: Sequence[OutputRow]) -> bool:
        """Whether a session is the try that follows these rows."""
        asked = masked_facts({"q": self._question(before)})["q"]
        known = (session["task"], session["info"].get("try"))
        return known == (asked, self._mark(len(before) + 1))

    def _is_resumable(self, earlier: PreviousAttempt, before: Sequence[OutputRow]) -> bool:
        """Whether a previous attempt is an unfinished try that follows these rows."""
        session = earlier.session
        if session is None or earlier.complete:
            return False
        return self._belongs({"task": session.task, "info": session.info}, before)

    def _mark(self, number: int) -> dict[str, Any]:
        return {"number": number, "seed": self.options.seed(number)}

    # --- one try -----------------------------------------------------------------------------

    def _question(self, before: Sequence[OutputRow]) -> str:
        """Build the question for the try that follows these rows."""
        failed = [(r["eval"]["pred"], r["eval"].get("feedback", "")) for r in before]
        return judging.with_advice(self.task.question, failed)

    def _try(self, before: Sequence[OutputRow], spent: Budget) -> OutputRow | None:
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
            start_over=not self._is_resumable(earlier, before),
            earlier=earlier,
        )
        agent = with_seed(self.runner.agent, self.options.seed(number))
        return self.runner.attempt(agent, assignment, spent, lambda a: self._close(a, before))

    def _close(self, attempt: Attempt, before: Sequence[OutputRow]) -> OutputRow | None:
        """Return the row of a try that ended; None if the run was stopped during judging."""
        judged: Judgement = {}
        try:
            self._judge(attempt, before, judged)
        except Cancelled:
            self.runner.report_stopped(self.task)
            return None
        except (ModelError, LimitReached, ParseError) as e:
            if not self.runner.gives_row(attempt):
                return None
            judged.setdefault("judge_reason", f"not judged: {type(e).__name__}: {e}")
        return attempt.finish(judged)

    def _judge(self, attempt: Attempt, before: Sequence[OutputRow], judged: Judgement) -> None:
        """Fill in the fields of the row's `eval` beside the score."""
        options, task, session = self.options, self.task, attempt.session
        results = session.final_results or {"output": "", "log": ""}
        answer, log = results["output"], results["log"]
        llm = options.judge or getattr(attempt.agent, "model", None)
        if options.until == "llm_judge" and answered(session.status, answer):
            messages = judge_messages(task.question, answer, log, task.answer)
            reply = self._ask(attempt, llm, messages, judging.JUDGE)
            try:
                right, reason = parse_verdict(reply)
                judged.update({"judge": int(right), "judge_reason": reason})
            except ParseError as e:  # continue: advice is still possible
                judged["judge_reason"] = f"not judged: ParseError: {e}"
        row = attempt.row(judged)
        last = len(before) + 1 == options.tries
        if options.reflect and not last and not is_right(row, options.until or "em"):
            ending = _ending(session, answer, judged if task.answer is None else {})
            messages = judging.reflect_messages(task.question, session.steps, ending)
            judged["feedback"] = self._ask(attempt, llm, messages, judging.REFLECT).strip()
        if options.choose == "judge" and last:
            judged.update(self._chosen(attempt, llm, [*before, row]))

    def _chosen(self, attempt: Attempt, llm: LLM | None, rows: Sequence[OutputRow]) -> Judgement:
        """Ask a model which try is best; return nothing if all answers agree."""
        groups = group_equal([r["eval"]["pred"] for r in rows], with_answer(rows))
        if len(groups) < 2:
            return {}
        firsts = [group[0] for group in groups]
        answers = [(rows[i]["eval"]["pred"], _log_of(rows[i])) for i in firsts]
        messages = choice_messages(self.task.question, answers)
        reply = self._ask(attempt, llm, messages, CHOOSE)
        index, reason = parse_choice(reply, len(answers))
        return {"choice": firsts[index], "choice_reason": reason}

    @staticmethod
    def _ask(attempt: Attempt, llm: LLM | None, messages: Messages, phase: str) -> str:
        if llm is None:
            raise ModelError("the agent has no model for judging; set --judge-model")
        return attempt.call_model(llm, messages, phase)


def with_seed(agent: Agent, seed: int | None) -> Agent:
    """Return the agent with a seed for all its models; unchanged without a seed."""
    if seed is None or not isinstance(agent, KwargsInitializable):
        return agent
    return agent.updated(settings_of_models(agent, {"call_kwargs": {"seed": seed}}))


def _ending(session: AgentSession, answer: str, judged: Judgement) -> str:
    if not answered(session.status, answer):
        return f"It ended without an answer: {session.stop_reason}: {session.message}"
    reason = judged.get("judge_reason", "")
    return f"It answered {answer!r}, and that was judged wrong. {reason}".rstrip()


def _log_of(row: OutputRow) -> str:
    results = row["session"]["info"].get("final_results") or {}
    return str(results.get("log", ""))
