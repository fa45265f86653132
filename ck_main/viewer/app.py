"""The routes of the viewer. Other modules add their routes in `create_app`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from flask import Flask, Response, g, request

from ck_main.viewer.label_routes import LabelRoutes
from ck_main.viewer.live import Follower
from ck_main.viewer.report_routes import ReportRoutes
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.long_texts import shortened, text_at
from ck_main.viewer.runs.run_view import run_json
from ck_main.viewer.runs.step_view import call_json, step_json
from ck_main.viewer.runs.summaries import COLUMNS
from ck_main.viewer.search.index import cache_folder
from ck_main.viewer.search.indexer import Indexer
from ck_main.viewer.take_over import TakeOver
from ck_pro.command_line import write_crash
from ck_pro.local_page.app import LocalApp, json_error, json_response
from ck_pro.trajectory.reading.messages import MEDIA_TYPES
from ck_pro.version import __version__

PAGE = Path(__file__).parent / "page"
POLL_SECONDS = 25.0
_IMAGE_POLICY = "default-src 'none'; sandbox"
_TOO_DEEP = "this part of the run is nested too deeply to be shown"
_MAX_TRIES = 200
_COURTESY_SECONDS = 0.05


class Viewer:
    """The routes about runs.

    Args:
        library: the runs.
        indexer: the search.
        follower: reads the runs in the background.
        labels: the file of labels; None for none.
        ended: set when the server stops.
    """

    def __init__(
        self,
        library: Library,
        indexer: Indexer,
        follower: Follower,
        labels: Path | None,
        ended: threading.Event,
    ) -> None:
        self._library, self._labels, self._ended = library, labels, ended
        self._indexer, self._follower = indexer, follower

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        app.register_error_handler(RecursionError, lambda _: json_error(_TOO_DEEP, 400))
        app.url_map.merge_slashes = False  # ids of sessions may contain any characters
        app.add_url_rule("/api/info", "info", self.info)
        app.add_url_rule("/api/runs", "runs", self.runs)
        app.add_url_rule("/api/changes", "changes", self.changes)
        app.add_url_rule("/api/search", "search", self.search)
        run = "/api/run/<key>"
        app.add_url_rule(run, "run", self.run)
        app.add_url_rule(f"{run}/step/<path:sid>/<int:i>", "step", self.step)
        app.add_url_rule(f"{run}/call/<path:sid>/<int:i>/<int:n>", "call", self.call)
        app.add_url_rule(f"{run}/blob/<path:name>", "blob", self.blob)

    def info(self) -> Response:
        """Return the sources, and how far they are read."""
        counts: dict[int, int] = {}
        for entry in self._library.entries():
            counts[entry.source] = counts.get(entry.source, 0) + 1
        sources = [
            {"name": s.name, "path": str(s.path), "kind": s.kind, "runs": counts.get(n, 0)}
            for n, s in enumerate(self._library.sources)
        ]
        return json_response(
            {
                "sources": sources,
                "version": __version__,
                "live": any(map(self._library.is_live, self._library.entries())),
                "labels": str(self._labels) if self._labels else None,
                "problems": [
                    *self._library.problems(),
                    *self._indexer.failures,
                    *self._follower.failures,
                ],
                "indexing": self._follower.progress,
            }
        )

    def runs(self) -> Response:
        """Return the table."""
        version = self._library.version
        rows = [self._library.line(entry) for entry in self._library.entries()]
        return json_response({"version": version, "columns": COLUMNS, "rows": rows})

    def changes(self) -> Response:
        """Wait for changes of the table and of runs."""
        since = request.args.get("since", 0, type=int)
        version = self._library.wait(since, POLL_SECONDS, self._ended)
        entries = self._library.changed_since(since)
        rows = [self._library.line(entry) for entry in entries if entry.shown]
        gone = [entry.key for entry in entries if not entry.shown]
        keys = [entry.key for entry in entries]
        return json_response({"version": version, "runs": rows, "keys": keys, "gone": gone})

    def search(self) -> Response:
        """Return the texts that match a search."""
        text, key = request.args.get("q", ""), request.args.get("key", "")
        found = self._indexer.search(text, key=key)
        return json_response({**found, "indexing": self._follower.progress})

    def run(self, key: str) -> Response:
        """Return the outline of a run."""
        entry = self._library.entry(key)
        if entry is None:
            return _missing("run", key)
        with self._library.opened(entry) as reader:
            found = run_json(reader)
        tries = self._library.parts(entry)[:_MAX_TRIES]
        facts = {
            "key": key,
            "source": entry.source,
            "try": entry.number,
            "live": self._library.is_live(entry),
            "journal": str(entry.journal) if entry.journal else None,
            "id": found["id"] or entry.task_id,
            "tries": [
                {"key": t.key, "try": t.number, "score": t.summary.get("score")} for t in tries
            ],
        }
        return _answer({**found, **facts})

    def step(self, key: str, sid: str, i: int) -> Response:
        """Return one step."""
        entry = self._library.entry(key)
        if entry is None:
            return _missing("run", key)
        with self._library.opened(entry) as reader:
            found = step_json(reader, sid, i)
        return _missing("step", f"{sid}/{i}") if found is None else _answer(found)

    def call(self, key: str, sid: str, i: int, n: int) -> Response:
        """Return one model call."""
        entry = self._library.entry(key)
        if entry is None:
            return _missing("run", key)
        with self._library.opened(entry) as reader:
            found = call_json(reader, sid, i, n)
        return _missing("call", f"{sid}/{i}/{n}") if found is None else _answer(found)

    def blob(self, key: str, name: str) -> Response:
        """Return a stored image; no other kind of file, and no SVG."""
        kind = MEDIA_TYPES.get(name.rpartition(".")[2].replace("jpeg", "jpg"))
        entry = self._library.entry(key)
        if entry is None or kind is None:
            return _missing("image", name)
        with self._library.opened(entry) as reader:
            content = reader.blob(name)
        if content is None:
            return _missing("image", name)
        headers = {
            "Content-Security-Policy": _IMAGE_POLICY,
            "Cache-Control": "private, max-age=31536000, immutable",
        }
        return Response(content, mimetype=kind, headers=headers)


def _answer(found: dict[str, Any]) -> Response:
    """Return a part of a run with its long texts shortened, or a piece of one of them."""
    path = request.args.get("path")
    if path is not None:
        piece = text_at(found, path, request.args.get("from", 0, type=int))
        return _missing("text", path) if piece is None else json_response(piece)
    value, more = shortened(found)
    return json_response({**value, "more": more} if more else value)


class Courtesy:
    """Lets the requests of the page go first.

    Args:
        app: the application.
    """

    def __init__(self, app: Flask) -> None:
        self._count = 0
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        app.before_request(self._begin)
        app.teardown_request(self._end)

    def wait(self) -> None:
        """Wait until no request is in progress, for a moment at most."""
        if not self._idle.is_set():
            self._idle.wait(_COURTESY_SECONDS)

    def _begin(self) -> None:
        if request.endpoint != "changes":
            with self._lock:
                self._count += 1
                g.counted = True
                self._idle.clear()

    def _end(self, _: BaseException | None) -> None:
        if g.pop("counted", False):
            with self._lock:
                self._count -= 1
                if not self._count:
                    self._idle.set()


def _missing(what: str, name: str) -> Response:
    return json_error(f"there is no {what} {name[:100]}", 404)


def create_app(
    library: Library,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    labels: Path | None = None,
    cache: Path | None = None,
) -> LocalApp:
    """Create the viewer; it listens at once.

    Args:
        library: the runs.
        host: address to bind to.
        port: port to bind to; 0 picks a free one.
        labels: the file of labels.
        cache: folder of the search index; default: in the user's cache folder.

    Raises:
        ConfigError: the address cannot be bound.
    """
    app = LocalApp(PAGE, host=host, port=port, on_error=write_crash)
    indexer = Indexer(library, cache or cache_folder(), Courtesy(app.flask).wait)
    follower = Follower(library, indexer, app.ended, write_crash)
    Viewer(library, indexer, follower, labels, app.ended).add_to(app.flask)
    LabelRoutes(library, labels).add_to(app.flask)
    ReportRoutes(library).add_to(app.flask)
    TakeOver(library).add_to(app.flask)
    follower.start()
    app.on_stop.append(follower.join)
    return app
