"""Take over a run that stopped: act in its browser, answer or approve, and start its resume."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flask import Flask, Response, request

from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.library import Library
from ck_main.viewer.stopped_run import SessionBrowser, StoppedRun
from ck_pro.events import EventKind
from ck_pro.events.journal_events import UserActedData
from ck_pro.exceptions import InputError
from ck_pro.journal import Journal
from ck_pro.local_page.app import json_body, json_response
from ck_web.browser.person_control import PersonControl

_LINES = 20
_LINE = 400


class _Started(NamedTuple):
    """A command that resumes a run, and its output."""

    process: subprocess.Popen[bytes]
    output: Path


class TakeOver:
    """The routes.

    Args:
        library: the runs.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._started: dict[Path, _Started] = {}
        self._lock = threading.Lock()

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        path = "/api/take_over/<key>"
        app.add_url_rule(path, "take_over", self.state)
        app.add_url_rule(f"{path}/look", "take_over_look", self.look)
        app.add_url_rule(f"{path}/act", "take_over_act", self.act, methods=["POST"])
        app.add_url_rule(f"{path}/command", "take_over_command", self.command, methods=["POST"])
        app.add_url_rule(f"{path}/hand_back", "take_over_back", self.hand_back, methods=["POST"])

    def state(self, key: str) -> Response:
        """Return what the run waits for, its browsers, and the command that resumes it."""
        entry = self._entry(key)
        started = self._progress(entry)
        if self._library.is_live(entry):
            return json_response({"possible": False, "started": started})
        run = StoppedRun(_folder(entry))
        return json_response(
            {
                "possible": not run.done,
                "reason": run.reason,
                "question": run.question,
                "action": run.action,
                "browsers": [one.to_dict() for one in run.browsers],
                "closed": [one.to_dict() for one in run.closed_browsers],
                "actions": run.actions,
                "started": started,
            }
        )

    def look(self, key: str) -> Response:
        """Return what a browser shows."""
        with self._control(key, request.args.get("browser", "")) as (control, _, _):
            return json_response(control.look().to_dict())

    def act(self, key: str) -> Response:
        """Do one action of the person in a browser, and journal it in the browser's session."""
        body = json_body()
        name = str(body.get("browser") or "")
        with (
            self._lock,
            self._control(key, name) as (control, run, browser),
            self._claimed(run.folder),
        ):
            line = control.act(str(body.get("action") or ""))
            view = control.look()
            session = browser.session.session
            with Journal(run.folder) as journal:
                journal.append(
                    EventKind.USER_ACTED,
                    sid=session.id,
                    parent=run.parent_of(session.id),
                    i=max(0, len(session.steps) - 1),
                    data=UserActedData(action=line, url=view.url),
                )
        return json_response({"line": line, **view.to_dict()})

    def command(self, key: str) -> Response:
        """Return the command that resumes the run with an answer or an approval."""
        run = StoppedRun(_folder(self._entry(key)))
        return json_response({"command": shlex.join(_resumed(run, json_body()))})

    def hand_back(self, key: str) -> Response:
        """Start the command that resumes the run."""
        entry = self._entry(key)
        folder = _folder(entry)
        with self._lock:
            started = self._started.get(folder)
            if started is not None and started.process.poll() is None:
                raise InputError("the run is already in progress")
            with self._claimed(folder):
                command = _resumed(StoppedRun(folder), json_body())
            with tempfile.NamedTemporaryFile(prefix="ck-resume-", delete=False) as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # it outlives the viewer
                )
            self._started[folder] = _Started(process, Path(output.name))
        return json_response({"command": shlex.join(command), "started": self._progress(entry)})

    # --- parts -----------------------------------------------------------------------------

    def _entry(self, key: str) -> Entry:
        entry = self._library.entry(key)
        if entry is None:
            raise InputError(f"there is no run {key[:100]}")
        return entry

    @contextlib.contextmanager
    def _control(
        self, key: str, name: str
    ) -> Iterator[tuple[PersonControl, StoppedRun, SessionBrowser]]:
        """Connect to a browser of a run.

        Args:
            key: the run.
            name: id of the browser's session; "" if the run has only one.

        Raises:
            InputError: the run has no such browser, or is in progress.
            BrowserServerError: the browser was closed, or its server has ended.
        """
        entry = self._entry(key)
        if self._library.is_live(entry):
            raise InputError("the run is in progress")
        run = StoppedRun(_folder(entry))
        browser = _browser_of(run, name)
        control = PersonControl(browser.session.lease)
        try:
            yield control, run, browser
        finally:
            control.close()

    @contextlib.contextmanager
    def _claimed(self, folder: Path) -> Iterator[None]:
        """Lock the run's folder.

        Raises:
            InputError: another process uses it.
        """
        with self._library.claimed(folder) as locked:
            if not locked:
                raise InputError("another command uses this run")
            yield

    def _progress(self, entry: Entry) -> dict[str, Any] | None:
        """Return the state of the command that resumes a run; None if none was started here."""
        started = self._started.get(entry.journal) if entry.journal is not None else None
        if started is None:
            return None
        lines = started.output.read_text(errors="replace").splitlines()[-_LINES:]
        code = started.process.poll()
        return {"code": code, "lines": [line[:_LINE] for line in lines]}


def _folder(entry: Entry) -> Path:
    if entry.journal is None:
        raise InputError("this run has no journal")
    return entry.journal


def _resumed(run: StoppedRun, body: Mapping[str, Any]) -> list[str]:
    """Return the command for the person's answer.

    Raises:
        InputError: the run asks a question, and there is no answer.
    """
    answer, approve = str(body.get("answer") or "").strip(), bool(body.get("approve"))
    if run.question and not answer:
        raise InputError("write an answer: the run waits for it")
    return run.command(answer if run.question else "", approve and bool(run.action))


def _browser_of(run: StoppedRun, name: str) -> SessionBrowser:
    """Return a browser on lease.

    Raises:
        InputError: there is none of this name, or several and no name.
    """
    browsers = run.browsers
    if not browsers:
        raise InputError("this run has no browser on lease")
    if not name and len(browsers) > 1:
        raise InputError(f"this run has {len(browsers)} browsers: choose one")
    found = [one for one in browsers if name in ("", one.session.session.id)]
    if not found:
        raise InputError("this run has no such browser any longer: reload the page")
    return found[0]
