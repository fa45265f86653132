"""Take over a run that stopped: act in its browser, answer or approve, and start its resume."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flask import Flask, Response

from ck_main.runner.task_folder import UNUSABLE, claimed
from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.library import Library
from ck_pro.approval import describe
from ck_pro.events import Action, EventKind
from ck_pro.events.journal_events import UserActedData
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.journal import Journal, read_events
from ck_pro.journal.masking import MASK
from ck_pro.local_page.app import json_body, json_response
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import read_interrupted_run
from ck_pro.run.user_replies import waiting_approval
from ck_pro.session import Status
from ck_web.browser.person_control import PersonControl

_LINES = 20
_LINE = 400
_COMMANDS = {"ck_agent": "ck_main.main", "web_agent": "ck_web.main"}
"""The command of each main agent."""


class StoppedRun:
    """A run that can be taken over, from its journal.

    Args:
        folder: its folder.

    Raises:
        InputError: the folder has no such run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            main, _ = read_interrupted_run(list(read_events(folder)))
        except UNUSABLE as e:
            raise InputError(f"{folder}: {e}") from None
        if main is None:
            raise InputError(f"{folder}: the journal has no run")
        self.main: InterruptedSession = main

    @property
    def browsers(self) -> list[InterruptedSession]:
        """The sessions that have a browser on lease; that which asks comes first."""
        asked = self.main.asked["session"] if self.main.asked else ""
        leased = [one for one in self.main.sessions.values() if _is_browser(one.lease)]
        return sorted(leased, key=lambda one: one.session.id != asked)

    @property
    def question(self) -> str:
        """The question that the run waits for; empty if there is none, or it has an answer."""
        asked = self.main.asked
        return str(asked["question"] or "") if asked and not self.main.last_answer else ""

    @property
    def action(self) -> str:
        """The action that waits for approval, in one line; empty if there is none."""
        approval = waiting_approval(self.main)
        return describe(Action.from_dict(approval["action"])) if approval is not None else ""

    def command(self, answer: str = "", approve: bool = False) -> list[str]:
        """Return the command that resumes the run with the settings that its journal has.

        Raises:
            ConfigError: the settings are not those of a command, or have secrets.
        """
        name = self.main.session.agent
        if name not in _COMMANDS:
            raise ConfigError(
                f"the run of {name} was not started by a command: resume it as it was started"
            )
        recorded = self.main.session.info.get("config") or {}
        default = _default_settings(name)
        changed = _changed(recorded, default)
        unknown = _not_recorded(recorded, default)
        if MASK in json.dumps(changed) or _has_secret_values(changed):
            unknown.append("secrets")
        if unknown:
            raise ConfigError(
                f"the journal does not have these settings: {', '.join(unknown)}. Resume the run "
                f"with the options of its command and --resume {shlex.quote(str(self.folder))}"
            )
        command = [sys.executable, "-m", _COMMANDS[name], "--resume", str(self.folder)]
        command += ["--updates", json.dumps(changed, ensure_ascii=False)] if changed else []
        command += ["--answer", answer] if answer else []
        return [*command, *(["--approve"] if approve else [])]


def _is_browser(lease: Any) -> bool:
    return isinstance(lease, Mapping) and "browserId" in lease and "server" in lease


@functools.cache
def _default_settings(name: str) -> dict[str, Any]:
    """Return the default settings of a main agent; its module takes long to import."""
    if name == "web_agent":
        from ck_web import WebAgent

        return WebAgent().to_dict()
    from ck_main import CKAgent

    return CKAgent().to_dict()


def _changed(recorded: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded settings that differ from the defaults."""
    changed: dict[str, Any] = {}
    for name, value in recorded.items():
        usual = default.get(name)
        if name in default and value == usual:
            continue
        if not isinstance(value, Mapping) or not isinstance(usual, Mapping):
            changed[name] = value
        elif value.keys() <= usual.keys():
            changed[name] = _changed(value, usual)
        else:  # also a dict with other keys, such as `call_kwargs`
            changed[name] = value
    return changed


def _not_recorded(recorded: Mapping[str, Any], default: Mapping[str, Any]) -> list[str]:
    """Return the names of settings that the journal omits: objects, such as a custom approver.

    The person is not needed: the answer comes from the page.
    """
    missing = []
    for name, value in default.items():
        if name not in recorded:
            missing += [name] if name != "person" else []
        elif isinstance(value, Mapping) and isinstance(recorded[name], Mapping):
            missing += [f"{name}.{one}" for one in _not_recorded(recorded[name], value)]
    return missing


def _has_secret_values(settings: Mapping[str, Any]) -> bool:
    """Whether a site secret was given as text, which no journal has."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            if name == "secrets" and any("env" not in secret for secret in value.values()):
                return True
            if _has_secret_values(value):
                return True
    return False


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
        browsers = [
            {"sid": one.session.id, "agent": one.session.agent, "url": one.lease.get("url")}
            for one in run.browsers
        ]
        waits = {"question": run.question, "action": run.action, "actions": _actions(run)}
        done = run.main.session.status is Status.DONE
        return json_response(
            {"possible": not done, "browsers": browsers, **waits, "started": started}
        )

    def look(self, key: str) -> Response:
        """Return what the browser shows."""
        with self._control(key) as (control, _, _):
            return json_response(control.look().to_dict())

    def act(self, key: str) -> Response:
        """Do one action of the person in the browser, and journal it."""
        text = str(json_body().get("action") or "")
        with self._lock, self._control(key) as (control, run, session), _claimed(run.folder):
            line = control.act(text)
            view = control.look()
            with Journal(run.folder) as journal:
                journal.append(
                    EventKind.USER_ACTED,
                    sid=session.session.id,
                    parent=_parent_of(run, session),
                    i=max(0, len(session.session.steps) - 1),
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
            with _claimed(folder):
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
    def _control(self, key: str) -> Iterator[tuple[PersonControl, StoppedRun, InterruptedSession]]:
        """Connect to the browser of a run.

        Raises:
            InputError: the run has none, or is in progress.
        """
        entry = self._entry(key)
        if self._library.is_live(entry):
            raise InputError("the run is in progress")
        run = StoppedRun(_folder(entry))
        if not run.browsers:
            raise InputError("this run has no browser on lease")
        session = run.browsers[0]
        control = PersonControl(session.lease)
        try:
            yield control, run, session
        finally:
            control.close()

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


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Lock the run's folder.

    Raises:
        InputError: another process uses it.
    """
    with claimed(folder) as locked:
        if not locked:
            raise InputError("another command uses this run")
        yield


def _resumed(run: StoppedRun, body: Mapping[str, Any]) -> list[str]:
    """Return the command for the person's answer.

    Raises:
        InputError: the run asks a question, and there is no answer.
    """
    answer, approve = str(body.get("answer") or "").strip(), bool(body.get("approve"))
    if run.question and not answer:
        raise InputError("write an answer: the run waits for it")
    return run.command(answer if run.question else "", approve and bool(run.action))


def _actions(run: StoppedRun) -> list[str]:
    """Return what the person has done so far."""
    return [action for one in run.main.sessions.values() for action in one.user_actions]


def _parent_of(run: StoppedRun, session: InterruptedSession) -> str | None:
    """Return the id of the session that called a session."""
    wanted = session.session.id
    for one in run.main.sessions.values():
        if wanted in one.session.children:
            return one.session.id
    return None if session is run.main else run.main.session.id
