"""The report of one source, or of two, as a page of the viewer: `/report?a=0&b=1`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from urllib.parse import quote

from flask import Flask, Response, request

from ck_main.analysis.comparison import compare
from ck_main.analysis.facts import DEFAULT_BY, read_runs
from ck_main.analysis.report import REPORT_CSS, report_page
from ck_main.analysis.summary import Summary, TaskFacts, analyse
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import Source
from ck_pro.exceptions import InputError

_STYLES = ("/static/base.css", "/report.css")
_KEPT = 4
_LISTED = 8
"""Number of sources with links."""
_Key = tuple[int, int, tuple[str, ...]]


class ReportRoutes:
    """The report of the sources of a library.

    Args:
        library: the runs.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, Summary] = OrderedDict()

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        app.add_url_rule("/report", "report", self.report)
        app.add_url_rule("/report.css", "report_css", self.styles)

    def styles(self) -> Response:
        """Return the style sheet of the report."""
        return Response(REPORT_CSS.read_text(encoding="utf-8"), mimetype="text/css")

    def report(self) -> Response:
        """Return the report of the sources `a` and `b`, grouped by `by`.

        `a` and `b` are numbers or names of sources. Without both, `a` is the first source; of two
        sources, `b` is then the second.

        Raises:
            InputError: there is no such source, or it cannot be read.
        """
        names = [request.args.get("a") or "", request.args.get("b") or ""]
        if not any(names):
            names = ["0", "1" if len(self._library.sources) == 2 else ""]
        numbers = [self._number(name) for name in names if name]
        by = tuple(n.strip() for n in request.args.get("by", "").split(",") if n.strip())
        summaries = [self._summary(number, by or DEFAULT_BY) for number in numbers]
        comparison = compare(*summaries) if len(summaries) > 1 else None
        keys = [self._keys(number) for number in numbers]
        sides = {id(task): n for n, s in enumerate(summaries) for task in s.tasks}

        def link(task: TaskFacts) -> str:
            key = keys[sides[id(task)]].get(task.id)
            wrong = task.run.ending.wrong
            if key is None:
                return ""
            return (
                f"/#/run/{key}/{quote(wrong.sid, safe='')}/{wrong.step}"
                if wrong
                else f"/#/run/{key}"
            )

        text = report_page(summaries, comparison, styles=_STYLES, link=link, pages=self._pages())
        return Response(text, mimetype="text/html")

    def _pages(self) -> list[tuple[str, str]]:
        """Return links to the table and to the other reports."""
        names = [Path(source.name).name for source in self._library.sources][:_LISTED]
        found = [("All runs", "/"), *((n, f"/report?a={i}") for i, n in enumerate(names))]
        if len(names) > 1:
            found += [
                (f"{names[0]} and {name}", f"/report?a=0&b={i}")
                for i, name in enumerate(names[1:], 1)
            ]
        return found

    def _number(self, name: str) -> int:
        names = [source.name for source in self._library.sources]
        if name in names:
            return names.index(name)
        if name.isdecimal() and int(name) < len(names):
            return int(name)
        raise InputError(f"there is no source {name[:100]!r}; there are {len(names)}, from 0")

    def _keys(self, number: int) -> dict[str, str]:
        entries = self._library.entries()
        return {e.task_id: e.key for e in reversed(entries) if e.source == number}

    def _summary(self, number: int, by: tuple[str, ...]) -> Summary:
        """Return the analysis of a source; read again only after a change."""
        key = (number, self._library.version, by)
        with self._lock:  # one at a time: an analysis uses a whole core
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            source = self._library.sources[number]
            problems: list[str] = []
            runs = read_runs(
                [_path(source)], by, on_problem=lambda problem: problems.append(str(problem))
            )
            found = analyse(source.name, runs)
            found.problems = problems
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            return found


def _path(source: Source) -> Path:
    if source.rows is not None and source.rows.exists():
        return source.rows
    return source.folder or source.path
