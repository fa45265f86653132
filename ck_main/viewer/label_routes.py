"""The routes of labels, and the labels in the table of runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
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
from ck_pro.trajectory.labels import Label, LabelFile, Target, label_file_of
from ck_pro.trajectory.previewing.preview import preview_export
from ck_pro.trajectory.previewing.token_counter import token_counter

_State = tuple[int, int]
_MAX_SHOWN, _MAX_ROWS = 100, 5_000


class LabelRoutes:
    """The labels of the runs of a library: in one given file, or beside each source.

    Args:
        library: the runs.
        path: the label file; None for the one beside each source.
    """

    def __init__(self, library: Library, path: Path | None) -> None:
        self._library, self._path = library, path
        self._lock = threading.Lock()
        self._read: OrderedDict[Path, _Labels] = OrderedDict()

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        app.add_url_rule("/api/labels/<key>", "labels", self.labels, methods=["GET", "POST"])
        app.add_url_rule("/api/preview", "preview", self.preview)
        self._library.labels_of = self.summary

    def labels(self, key: str) -> Response:
        """Return or change the labels of a run."""
        entry = self._library.entry(key)
        if entry is None:
            return json_error(f"there is no run {key[:100]}", 404)
        file = self.file_of(entry)
        with self._library.opened(entry) as reader:
            if request.method == "POST":
                body = json_body()
                target, _ = target_of(reader, entry, Place.of(body.get("target")))
                with self._lock:  # the state before, which the request may keep in part
                    before = self._labels(file.path).current.get(target)
                    file.append(new_label(body, before, reader, entry))
            found = self._labels(file.path)
            shown = labels_of_run(found.current.values(), reader, entry)
        if request.method == "POST":
            self._library.touch([entry])
        return json_response({**shown, "path": str(file.path), "problems": found.problems})

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
        labels = LabelFile(self._path or label_file_of(source.path)).path
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

    def file_of(self, entry: Entry) -> LabelFile:
        """Return the label file of a run."""
        source = self._library.sources[entry.source]
        return LabelFile(self._path or label_file_of(source.path))

    def summary(self, entry: Entry) -> list[str]:
        """Return the different labels of a run and its parts, for the table."""
        found: dict[str, None] = {}
        for label in self._labels(self.file_of(entry).path).by_id.get(entry.task_id, ()):
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

    def _labels(self, path: Path) -> _Labels:
        """Return the labels of a file; read again if it has changed."""
        try:
            stat = path.stat()
            state = (stat.st_mtime_ns, stat.st_size)
        except OSError:
            return _Labels((0, 0), {}, [])
        found = self._read.get(path)
        if found is None or found.state != state:
            file = LabelFile(path)
            problems = [str(problem) for problem in file.read()[1]]
            found = self._read[path] = _Labels(state, file.current(), problems)
            while len(self._read) > 64:
                self._read.popitem(last=False)
        return found


class _Labels:
    """The labels of a file."""

    def __init__(self, state: _State, current: Mapping[Target, Label], problems: list[str]) -> None:
        self.state, self.current, self.problems = state, current, problems[:20]
        self.by_id: dict[Any, list[Label]] = {}
        for label in current.values():
            self.by_id.setdefault(label.target["id"], []).append(label)
