"""The routes of labels, and the labels in the table of runs."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

from ck_main.viewer.run_labels import Place, labels_of_run, new_label, target_of
from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.library import Library
from ck_pro.exceptions import InputError
from ck_pro.local_page.app import json_body, json_error, json_response
from ck_pro.trajectory.exporting.filters import FilterSettings
from ck_pro.trajectory.exporting.job import ExportSettings
from ck_pro.trajectory.formats import export_formats
from ck_pro.trajectory.labels import CurrentLabels, Label, LabelFile, Target, label_file_of
from ck_pro.trajectory.previewing.preview import preview_export
from ck_pro.trajectory.previewing.token_counter import token_counter

_MAX_SHOWN, _MAX_ROWS, _MAX_PROBLEMS = 100, 5_000, 20
_SECONDS = 0.1


class LabelRoutes:
    """The labels of the runs of a library: in one given file, or beside each source.

    Args:
        library: the runs.
        path: the label file; None for the one beside each source.
    """

    def __init__(self, library: Library, path: Path | None) -> None:
        self._library, self._path = library, path
        self._lock = threading.Lock()
        self._labels: dict[int, CurrentLabels] = {}
        self._read_at: dict[int, float] = {}
        self._shown: dict[int, dict[Any, dict[Target, Label]]] = {}

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        app.add_url_rule("/api/labels/<key>", "labels", self.labels, methods=["GET", "POST"])
        app.add_url_rule("/api/preview", "preview", self.preview)
        self._library.labels_of = self.summary
        self._library.relabelled = self.relabelled

    def labels(self, key: str) -> Response:
        """Return or change the labels of a run."""
        entry = self._library.entry(key)
        if entry is None:
            return json_error(f"there is no run {key[:100]}", 404)
        path = self.path_of(entry.source)
        with self._library.opened(entry) as reader:
            if request.method == "POST":
                body = json_body()
                target, _ = target_of(reader, entry, Place.of(body.get("target")))
                with self._lock:  # the state before, which the request may keep in part
                    before = self._current(entry.source, now=True).labels.get(target)
                    LabelFile(path).append(new_label(body, before, reader, entry))
            found = self._current(entry.source, now=True)
            shown = labels_of_run(list(found.labels.values()), reader, entry)
        problems = [str(problem) for problem in found.all_problems()[:_MAX_PROBLEMS]]
        if request.method == "POST":
            self._library.touch([entry])
        return json_response({**shown, "path": str(path), "problems": problems})

    def preview(self) -> Response:
        """Return what an export of one source would train on, with its labels.

        The arguments are `source` (its index), `format`, `labels` ("no": without), `rows`, `skip`.

        Raises:
            InputError: an argument or the source cannot be used.
        """
        number, name = request.args.get("source", 0, type=int), request.args.get("format", "sft")
        form = export_formats().get(name)
        if form is None or not 0 <= number < len(self._library.sources):
            raise InputError(f"there is no source {number} or no format {name[:100]}")
        source = self._library.sources[number]
        inputs = [source.rows if source.kind == "rows" and source.rows else source.folder]
        labels = self.path_of(number)
        use = request.args.get("labels") != "no" and labels.exists()
        filters = FilterSettings(labels=[labels] if use else [])
        problems: list[str] = []
        found = preview_export(
            ExportSettings(form, [p for p in inputs if p], Path("preview"), filters),
            token_counter(),
            show=min(request.args.get("rows", 20, type=int), _MAX_SHOWN),
            skip=max(request.args.get("skip", 0, type=int), 0),
            max_rows=_MAX_ROWS,
            on_problem=lambda problem: problems.append(str(problem)),
        )
        facts = {"labels": str(labels) if use else None, "problems": problems[:20]}
        return json_response({**found.to_json(), **facts, "lost": found.report.lost_labels[:20]})

    def path_of(self, source: int) -> Path:
        """Return the path of the label file of a source."""
        return self._path or label_file_of(self._library.sources[source].path)

    def summary(self, entry: Entry) -> list[str]:
        """Return the different labels of a run and its parts, for the table."""
        found: dict[str, None] = {}
        for label in self._current(entry.source).by_id.get(entry.task_id, {}).values():
            run, number = label.target["run"], label.target["try"]
            if run is not None and entry.session and run != entry.session:
                continue
            if number is not None and entry.number.isdecimal() and number != int(entry.number) - 1:
                continue
            if label.verdict:
                found[label.verdict] = None
            if label.reply is not None:
                found["corrected"] = None
        return list(found)

    def relabelled(self) -> list[Entry]:
        """Return the runs whose labels changed since the last call, also by other programs."""
        changed: dict[int, set[Any]] = {}
        for source in range(len(self._library.sources)):
            now = {k: dict(found) for k, found in list(self._current(source).by_id.items())}
            before = self._shown.setdefault(source, now)
            if before != now:
                ids = before.keys() | now.keys()
                changed[source] = {k for k in ids if before.get(k) != now.get(k)}
                self._shown[source] = now
        if not changed:
            return []
        none: set[Any] = set()
        known = [(entry, changed.get(entry.source, none)) for entry in self._library.entries()]
        return [entry for entry, ids in known if entry.task_id in ids or None in ids]

    def _current(self, source: int, *, now: bool = False) -> CurrentLabels:
        """Return the labels of a source, at most `_SECONDS` old; `now`: up to date."""
        found = self._labels.get(source)
        if found is None:
            found = self._labels[source] = CurrentLabels(self.path_of(source))
        if now or time.monotonic() - self._read_at.get(source, 0.0) > _SECONDS:
            with suppress(*(() if now else (InputError,))):  # the route of a run reports it
                found.refresh()
            self._read_at[source] = time.monotonic()
        return found
