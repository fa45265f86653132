"""Export the input to files, one row at a time, and count."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ck_pro.exceptions import CKError, InputError, OutputError
from ck_pro.model import estimate_tokens
from ck_pro.trajectory.exporting.filters import (
    BAD,
    EXCLUDED,
    Filters,
    FilterSettings,
    tokens_of,
)
from ck_pro.trajectory.exporting.job import ExportSettings, Report
from ck_pro.trajectory.exporting.writers import (
    JsonFolderWriter,
    JsonLinesWriter,
    ParquetWriter,
    RowSink,
)
from ck_pro.trajectory.formats.arrow_schema import arrow_schemas
from ck_pro.trajectory.formats.images import ImageFolder
from ck_pro.trajectory.formats.layout import Layout
from ck_pro.trajectory.labels import Labels, unused_label_files
from ck_pro.trajectory.labels.applying import apply_labels
from ck_pro.trajectory.labels.whole_runs import labelled_run
from ck_pro.trajectory.reading.attempts import Try, tries_of
from ck_pro.trajectory.reading.messages import MessageError
from ck_pro.trajectory.reading.model_calls import Call, Unusable, calls_of, each_call
from ck_pro.trajectory.reading.sources import Problem, count_restarted, read_records, unreadable
from ck_pro.trajectory.reading.survey import BestTries, Kinds, Replies

_UNREADABLE = (CKError, AttributeError, TypeError, KeyError)
"""Errors while going through a row that is unreadable or does not match the schema."""


def export(
    settings: ExportSettings,
    on_problem: Callable[[Problem], None] = lambda p: None,
    sink: RowSink | None = None,
) -> Report:
    """Run an export.

    Args:
        settings: what to write and where.
        on_problem: called with each problem of the input when it is found.
        sink: gets the rows instead of files; images are then not stored.

    Raises:
        OutputError: the output cannot be written; partial files are removed.
        InputError: the format needs pyarrow, which is not installed.
    """
    return _Export(settings, on_problem, sink).run()


class _Export:
    def __init__(
        self,
        settings: ExportSettings,
        on_problem: Callable[[Problem], None],
        sink: RowSink | None,
    ):
        self.sink = sink
        self.settings, self.format, self.on_problem = settings, settings.format, on_problem
        self.report = Report()
        self.labels = Labels.read(settings.filters.labels, settings.good_score)
        self.filters = Filters(settings.filters_in_use, keep_bad=self.format.preferences)
        self.kinds = Kinds()
        self.replies: Replies | None = None
        self.is_folder = self.format.one_file_per_row and settings.output.suffix != ".jsonl"
        self.folder = ImageFolder(settings.output, inside=self.is_folder, stores=sink is None)
        self._written_prompts: set[bytes] = set()
        paths = [settings.filters.score_from, *(w.path for w in settings.filters.where)]
        of_sessions = any(p.startswith("session") for p in paths)
        self._light = not (self.format.whole_runs or of_sessions)

    def run(self) -> Report:
        writer: RowSink | None = None
        try:
            self._check_output()
            self._choose()
            if not self.format.whole_runs:
                self._survey()
            layout = self._layout()
            writer = self._writer(layout)
            if self.format.whole_runs:
                self._write_runs(writer, layout)
            else:
                self._write_calls(writer, layout)
            writer.commit()
        except sqlite3.Error as e:
            raise OutputError(f"cannot write beside {self.settings.output}: {e}") from None
        finally:
            if writer is not None:
                writer.abandon()
            if self.replies is not None:
                self.replies.close()
        self._finish(writer)
        return self.report

    def _finish(self, writer: RowSink) -> None:
        self.report.restarted = sum(map(count_restarted, self.settings.inputs))
        self.report.files, self.report.images = writer.files, self.folder.written
        self.report.lost_labels = self.labels.unmatched() if self.report.runs else []
        self.report.label_problems = len(self.labels.problems)
        for problem in self.labels.problems:
            self.on_problem(problem)
        self.report.unused_labels = unused_label_files(
            self.settings.inputs, self.settings.filters.labels
        )
        if self.format.finish is not None and self.sink is None:
            self.format.finish(writer.files, self._has_images)

    # --- passes over the input ---------------------------------------------------------------

    def _tries(self, *, counting: bool = False) -> Iterator[tuple[int, Try]]:
        """Yield all tries of the input with their ordinals; the counting pass reports problems."""
        ordinal = 0
        for found in read_records(self.settings.inputs, light=self._light):
            self.report.runs += counting
            if isinstance(found, Problem):
                self._problem(found, counting)
                continue
            try:
                score_from = self.settings.filters.score_from
                tries = tries_of(found.where, found.row, score_from, on_disk=found.on_disk)
            except InputError as e:
                self._problem(Problem(found.where, str(e)), counting)
                continue
            for attempt in map(self.labels.judged_run, tries):
                yield ordinal, attempt
                ordinal += 1

    def _problem(self, problem: Problem, counting: bool) -> None:
        if not counting:
            return
        if problem.unfinished:
            self.report.unfinished += 1
            return
        self.report.problems += 1
        self.on_problem(problem)

    def _calls(
        self, settings: FilterSettings, *, counting: bool = False
    ) -> Iterator[tuple[int, Call]]:
        """Yield the calls that the filters keep, with their ordinals in the input."""
        ordinal = -1
        dropped = self.report.dropped if counting else Counter[str]()
        filters = Filters(settings, self.filters.chosen, self.filters.keep_bad)
        for n, attempt in self._tries(counting=counting):
            if counting:
                filters.observe(attempt)
            try:
                refusal = filters.try_refusal(attempt, n)
                for found in each_call(attempt) if attempt.on_disk else calls_of(attempt):
                    self.report.calls_in += counting
                    if counting and isinstance(found, Call):
                        filters.observe(found)
                    made = apply_labels(found, self.labels, originals=self.format.preferences)
                    self.report.originals += counting * (len(made) - 1)
                    for call, decision in made:
                        ordinal += 1
                        reason = refusal or filters.refusal(call, decision)
                        if reason:
                            dropped[reason] += 1
                        elif isinstance(call, Call):
                            yield ordinal, call
            except _UNREADABLE as e:
                self._problem(Problem(attempt.where, unreadable(e)), counting)
        if counting and self.report.runs:
            self.report.unmatched = filters.unmatched()

    def _choose(self) -> None:
        """Find the best tries of each task among those that pass the filters (for `best`)."""
        if self.settings.filters.best is None:
            return
        best = BestTries(self.settings.filters.best)
        for ordinal, attempt in self._tries():
            with suppress(*_UNREADABLE):  # reported by the counting pass
                if self.filters.try_refusal(attempt) is None:
                    best.add(attempt, ordinal)
        self.filters.chosen = best.chosen()

    def _survey(self) -> None:
        """Find the columns, and the replies for preferences."""
        settings = self.filters.settings
        if self.format.preferences or settings.pools_rewards:
            settings = replace(settings, duplicates="keep")  # each counts for its reply's reward
            name = f".{self.settings.output.name}.replies"
            self.replies = Replies(
                self.settings.output.with_name(name), good_score=self.settings.good_score
            )
        for ordinal, call in self._calls(settings):
            self.kinds.add(call, ordinal)
            if self.replies is not None:
                self.replies.add(call)
            elif self.kinds.complete:
                return
        if self.format.preferences and self.kinds.first:
            self._survey_rows()

    def _survey_rows(self) -> None:
        """Find the kinds of the rows: skip prompts without a pair and replies without a label."""
        kinds_of_rows = self.format.kinds_of_rows
        assert kinds_of_rows is not None and self.replies is not None
        all_kinds, self.kinds = self.kinds, Kinds()
        for ordinal, call in self._calls(self.filters.settings):
            kinds = kinds_of_rows(call, self.replies, self.settings.max_pairs)
            self.kinds.add(call, ordinal, kinds)
            if self.kinds.first.keys() == all_kinds.first.keys():
                return

    # --- writing -----------------------------------------------------------------------------

    def _check_output(self) -> None:
        """Raise before the passes over the input if the output cannot be written."""
        self._writer(Layout(images=self.settings.image_mode)).abandon()

    @property
    def _has_images(self) -> bool:
        return "images" in self.kinds and self.settings.image_mode != "drop"

    def _layout(self) -> Layout:
        s = self.settings
        return Layout(
            images=s.image_mode,
            columns=s.columns,
            reasoning=s.reasoning,
            has_images=self._has_images,
            has_tools="tools" in self.kinds,
            has_tool_calls="tool_calls" in self.kinds or "tool_turns" in self.kinds,
            has_reasoning="reasoning" in self.kinds,
            text_arguments=s.parquet,
            keep_unreadable=s.filters.unreadable == "keep",
            folder=self.folder,
            replies=self.replies,
            max_pairs=s.max_pairs,
        )

    def _writer(self, layout: Layout) -> RowSink:
        if self.sink is not None:
            return self.sink
        s, columns = self.settings, self.format.parquet_columns
        common: dict[str, Any] = {"shard_rows": s.shard_rows, "force": s.force}
        if s.parquet and columns is not None:
            return ParquetWriter(s.output, lambda: arrow_schemas(columns(layout)), **common)
        if self.is_folder:
            return JsonFolderWriter(s.output, **common)
        return JsonLinesWriter(s.output, **common)

    def _write_calls(self, writer: RowSink, layout: Layout) -> None:
        """Write the calls, starting with one of each special kind.

        Loaders guess the types of a file from its start, so every column must have a value there.
        """
        ahead = dict(self.kinds.first.values())
        for call in ahead.values():
            self._write_call(writer, layout, call)
        for ordinal, call in self._calls(self.filters.settings, counting=True):
            if ordinal not in ahead:
                self._write_call(writer, layout, call)

    def _write_call(self, writer: RowSink, layout: Layout, call: Call) -> None:
        per_prompt, call_rows = self.format.per_prompt, self.format.call_rows
        assert call_rows is not None
        if per_prompt and call.prompt_key in self._written_prompts:
            self.report.calls_used += 1
            return
        self.report.labelled["replies corrected"] += call.corrected
        if self.settings.filters.pools_rewards and self.replies is not None:
            call.pooled = self._pooled(call)
        try:
            rows = call_rows(call, layout)
        except MessageError as e:
            self.report.dropped[e.reason] += 1
            return
        if per_prompt and rows:
            self._written_prompts.add(call.prompt_key)
        elif not rows:
            self.report.dropped["no better or worse reply"] += 1
        self.report.calls_used += bool(rows)
        for row in rows:
            writer.write(row)
            self.report.labelled["pairs from labels"] += _is_labelled_pair(row)
            prompt, reply = tokens_of(call)
            if self.format.reply_columns:
                replies = [m for name in self.format.reply_columns for m in row[name]]
                reply = estimate_tokens(replies)
            self.report.rows_out += 1
            self.report.prompt_tokens += prompt
            self.report.reply_tokens += reply

    def _pooled(self, call: Call) -> float | None:
        """Return the reward for all calls with this prompt and reply."""
        judged = self.replies.of(call) if self.replies is not None else None
        if judged is None:
            return None
        by_name = {"max": judged.highest, "min": judged.lowest, "mean": judged.value}
        return by_name[self.settings.filters.duplicate_reward]

    def _write_runs(self, writer: RowSink, layout: Layout) -> None:
        for ordinal, attempt in self._tries(counting=True):
            self.report.calls_in += 1
            self.filters.observe(attempt)
            try:
                self._count_labels(attempt)
                refusal = self._run_refusal(attempt, ordinal)
                refusal = refusal or self._write_run(writer, layout, attempt)
            except MessageError as e:
                refusal = e.reason
            except OutputError:
                raise
            except _UNREADABLE as e:
                self._problem(Problem(attempt.where, unreadable(e)), True)
                refusal = "not readable"
            if refusal is not None:
                self.report.dropped[refusal] += 1
        if self.report.runs:
            self.report.unmatched = self.filters.unmatched()

    def _run_refusal(self, attempt: Try, ordinal: int) -> str | None:
        refusal = self.filters.try_refusal(attempt, ordinal)
        if refusal is None and self.filters.is_repeated(attempt):
            return "duplicate"
        decision = self.labels.of_run(attempt)
        if decision.excluded:
            return EXCLUDED
        return BAD if refusal is None and decision.judgement == "bad" else refusal

    def _count_labels(self, attempt: Try) -> None:
        """Count what the labels of its calls change in a run."""
        if not self.labels.concern(attempt):
            return
        for found in each_call(attempt):
            call = found.call if isinstance(found, Unusable) else found
            decision = self.labels.of_call(call)
            names = {EXCLUDED: decision.excluded, BAD: decision.judgement == "bad"}
            leaves = next((name for name, holds in names.items() if holds), None)
            if decision.reply is not None and leaves != EXCLUDED:
                self.report.labelled["replies corrected"] += 1
            elif leaves:
                self.report.labelled[f"model calls {leaves}"] += 1

    def _write_run(self, writer: RowSink, layout: Layout, attempt: Try) -> str | None:
        """Write a try as a whole; return the reason if it cannot be written."""
        assert self.format.run_row is not None
        attempt = labelled_run(attempt, self.labels)
        row = self.format.run_row(attempt, layout)
        if row is None:
            return "no complete step"
        calls = [tokens_of(c) for c in each_call(attempt) if isinstance(c, Call)]
        writer.write(row, attempt.task_id)
        self.report.rows_out += 1
        self.report.calls_used += 1
        self.report.prompt_tokens += sum(prompt for prompt, _ in calls)
        self.report.reply_tokens += sum(reply for _, reply in calls)
        return None


def _is_labelled_pair(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a pair with a labelled reply."""
    metadata = row.get("metadata", {})
    return bool(metadata.get("chosen_label") or metadata.get("rejected_label"))
