"""Serve the pages of MiniWoB++ on loopback, and collect their reports of episodes.

The pages come from the wheel of `miniwob` on PyPI. They are served unchanged, except that report.js
is appended to their `core.js`.
"""

from __future__ import annotations

import http.server
import importlib.metadata
import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from benchmarks.loopback_site import LoopbackSite

_REPORT = Path(__file__).with_name("report.js")


@dataclass
class PageReport:
    """What a page reported about an episode.

    Attributes:
        utterance: the text of the task, once the episode has started.
        reward: the raw reward, from -1 to 1; None before the end of the episode.
        reason: an explanation, often empty.
    """

    utterance: str | None = None
    reward: float | None = None
    reason: str = ""


@dataclass
class _Shared:
    root: Path
    episodes: dict[str, PageReport] = field(default_factory=dict)


def pages_folder() -> Path:
    """Return the folder of the pages.

    Raises:
        FileNotFoundError: `miniwob` is not installed.
    """
    # read the metadata, because importing the package loads selenium
    try:
        found = importlib.metadata.distribution("miniwob")
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError(
            'the pages of MiniWoB++ are missing: pip install "ck-pro[bench]" or miniwob'
        ) from None
    return Path(str(found.locate_file("miniwob/html")))


class _Handler(http.server.SimpleHTTPRequestHandler):
    shared: _Shared

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/core/core.js":
            super().do_GET()
            return
        body = (self.shared.root / "core/core.js").read_bytes() + _REPORT.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        reported = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        episode = parse_qs(urlsplit(self.path).query)["episode"][0]
        report = self.shared.episodes.setdefault(episode, PageReport())
        for name, value in reported.items():
            setattr(report, name, value)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


class Pages(LoopbackSite):
    """A server for the pages on a free port of loopback, as a context manager."""

    def __init__(self) -> None:
        self._shared = _Shared(pages_folder())
        shared = self._shared

        class Handler(_Handler):
            def __init__(self, *args: object, **kwargs: object) -> None:
                super().__init__(*args, directory=str(shared.root), **kwargs)  # type: ignore[arg-type]

        Handler.shared = shared
        super().__init__(Handler)

    def url(self, task: str, seed: int) -> str:
        """Return the URL of an episode."""
        query = f"seed={seed}&episode={task}.{seed}"
        return f"http://{self.host}/miniwob/{task}.html?{query}"

    def begin(self, task: str, seed: int) -> PageReport:
        """Return the object for the report of an episode."""
        return self._shared.episodes.setdefault(f"{task}.{seed}", PageReport())

    def forget(self, task: str, seed: int) -> None:
        """Delete the report of an episode before it runs again."""
        self._shared.episodes.pop(f"{task}.{seed}", None)


def task_names() -> list[str]:
    """Return the names of all tasks with a page."""
    return sorted(path.stem for path in (pages_folder() / "miniwob").glob("*.html"))
