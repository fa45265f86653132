"""The viewer's page in a real Chromium, on runs written for the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from person_browser import LIMIT
from playwright.sync_api import Browser, Page
from viewer_runs import PICTURE, RunWriter, small_run

from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.events import EventKind
from ck_pro.local_page.app import LocalApp

HOSTILE = (
    "<script>window.owned=1;alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)>"
    "<svg onload=alert(3)></svg>[a](javascript:alert(4))\u202egnp.exe\u202c\x1b[31mred\x1b[0m"
    "\u200b{{7*7}}${alert(5)}</pre></textarea>"
)
LONG_LINE = 10_000_000


def long_run(folder: Path, task_id: str, steps: int) -> dict[str, Any]:
    """Write a run of one agent with this many steps."""
    run = RunWriter(folder, task_id)
    for i in range(steps):
        run.step(i, calls=(("find", {"text": f"Price {i}"}, f"found 'Price {i}' in 1 line"),))
    return run.finish(i=steps - 1)


def parallel_run(folder: Path, task_id: str, agents: int = 3) -> dict[str, Any]:
    """Write a run whose first step calls several sub-agents at the same time."""
    run = RunWriter(folder, task_id)
    run.append(EventKind.STEP, {}, i=0)
    run.append(EventKind.ACTION, {"thought": "Ask all.", "code": "gather(...)"}, i=0)
    for n in range(agents):
        started = {"call": n, "name": "web_agent", "arguments": {"task": f"part {n}"}}
        run.append(EventKind.STARTED, started, i=0)
        sub = {"session": f"sub{n}-{task_id}", "name": "web_agent", "call": n}
        run.append(EventKind.SUB_SESSION, sub, i=0)
        run.session(sub["session"], "web_agent", f"part {n}", parent=run.sid)
    for i in range(3):
        for n in range(agents):
            run.step(i, sid=f"sub{n}-{task_id}", parent=run.sid, thought=f"Part {n}, look {i}.")
    for n in range(agents):
        run.end(f"{n}", i=2, sid=f"sub{n}-{task_id}", parent=run.sid)
        done = {"call": n, "name": "web_agent", "value": f"{{'output': '{n}'}}"}
        run.append(EventKind.CALL, done, i=0, duration=0.2)
    run.append(EventKind.ERROR, {"error": "ValueError"}, i=0)
    run.append(EventKind.OBSERVATION, {"observation": "ValueError: no price"}, i=0)
    run.step(1, thought="Add up.", code="stop('41')")
    return run.finish("41", 1)


def picture_run(folder: Path, task_id: str) -> dict[str, Any]:
    """Write a run whose step has pictures, before and with the target of an action."""
    run = RunWriter(folder, task_id)
    size = {"image": PICTURE, "width": 1280, "height": 720, "url": "http://site.test/"}
    where = {"sid": run.sid, "i": 0}
    run.append(EventKind.STEP, {}, **where)
    state = {
        "step_url": "http://site.test/",
        "current_accessibility_tree": "[1] RootWebArea 'Shop'",
    }
    run.append(EventKind.WORLD, {"web_state_before": state}, **where)
    run.append(EventKind.PICTURE, {**size, "elements": {"2": [10, 20, 300, 40]}}, **where)
    run.append(EventKind.ACTION, {"thought": "Click.", "code": "click('Buy')"}, **where)
    run.append(EventKind.STARTED, {"call": 0, "name": "click", "arguments": {"id": "2"}}, **where)
    acted = {"elements": {"2": [10, 20, 300, 40]}, "call": 0, "targets": [[10, 20, 300, 40]]}
    run.append(EventKind.PICTURE, {**size, **acted}, **where)
    value = "click [2] button 'Buy': clicked button 'Buy'"
    run.append(EventKind.CALL, {"call": 0, "name": "click", "value": value}, duration=0.1, **where)
    run.append(EventKind.OBSERVATION, {"observation": value}, **where)
    return run.finish()


def hostile_run(folder: Path) -> dict[str, Any]:
    """Write a run whose every text is hostile, and one is a line of 10 MB."""
    run = RunWriter(folder, "hostile", task=HOSTILE, answer=HOSTILE)
    page = f"[1] RootWebArea '{HOSTILE}'\n\t[2] link '{HOSTILE}'"
    calls = ((HOSTILE, {HOSTILE: HOSTILE}, HOSTILE), ("find", {"text": HOSTILE}, HOSTILE))
    code = f"x = '''{HOSTILE}'''  # {HOSTILE}"
    run.append(EventKind.STEP, {}, i=0)
    plan = {"thought": HOSTILE, "code": HOSTILE, "state": {HOSTILE: [HOSTILE]}}
    run.append(EventKind.PLAN, plan, i=0, phase="plan")
    run.append(EventKind.OBSERVATION, {"observation": "x" * LONG_LINE}, i=0)
    run.step(1, thought=HOSTILE, code=code, page=page, calls=calls, observation=HOSTILE)
    return run.finish(HOSTILE, 1)


def many_rows(folder: Path, count: int) -> Path:
    """Write an output of this many rows without journals; return it."""
    row = json.dumps(small_run(folder / "one-journal", "taskNUMBER"))
    path = folder / "many.jsonl"
    path.write_text("".join(row.replace("NUMBER", f"{n:05d}") + "\n" for n in range(count)))
    return path


def output_of(folder: Path, name: str, writers: list[Callable[[Path], dict[str, Any]]]) -> Path:
    """Write an output with a row for each writer of a journal; return its file."""
    rows = [write(folder / name / f"{n}") for n, write in enumerate(writers)]
    for n, row in enumerate(rows):
        (folder / name / f"{n}").rename(folder / name / str(row["id"]))
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@contextmanager
def serving(*paths: Path) -> Iterator[LocalApp]:
    """Serve the viewer of some outputs."""
    library = Library(sources_of(paths))
    app = create_app(library)
    app.start()
    try:
        yield app
    finally:
        app.stop()
        library.close()


class Viewer:
    """A tab with the viewer that fails the test if a script, dialog or foreign request runs.

    Args:
        browser: of Playwright.
        app: the served viewer.
        options: of the browser context.
    """

    def __init__(self, browser: Browser, app: LocalApp, **options: Any) -> None:
        self.base = app.url.partition("/?")[0]
        self.problems: list[str] = []
        viewport = {"width": 1280, "height": 900}
        self.context = browser.new_context(**{"viewport": viewport, **options})
        self.context.set_default_timeout(LIMIT)
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)
        self.page.goto(app.url)
        self.page.locator("#main").wait_for()

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.problems.append(f"request: {request.url}")

    def show(self, hash_: str = "/") -> Page:
        """Go to an address after `#`, as a new visit."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base}/#{hash_}")
        self.page.locator("#main").wait_for()
        return self.page

    def json(self, path: str) -> Any:
        """The server's response to a path."""
        return self.page.evaluate("async (path) => (await fetch(path)).json()", path)

    def key(self, task: str, source: int = 0) -> str:
        """The key of a task's run."""
        found = self.json("/api/runs")
        at = {name: n for n, name in enumerate(found["columns"])}
        [key] = [
            row[0] for row in found["rows"] if row[at["id"]] == task and row[at["source"]] == source
        ]
        return str(key)

    def hash(self) -> str:
        """The address after `#`."""
        return str(self.page.evaluate("decodeURIComponent(location.hash)"))

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def close(self) -> None:
        """Close the tab; fail if anything ran that must not."""
        owned = self.page.evaluate("window.owned")
        self.context.close()
        assert (self.problems, owned) == ([], None)
