"""`StoppedRun`: a run that can be taken over: what it waits for, its browsers, its command."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ck_main.runner.task_folder import UNUSABLE
from ck_pro.approval import describe
from ck_pro.events import Action, EventKind
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.journal import read_events
from ck_pro.journal.masking import MASK
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import read_interrupted_run
from ck_pro.run.user_replies import waiting_approval
from ck_pro.session import Status
from ck_web.page.state import last_url_of

_COMMANDS = {"ck_agent": "ck_main.main", "web_agent": "ck_web.main"}
"""The command of each main agent."""


class SessionBrowser(NamedTuple):
    """The browser of one agent's session.

    Attributes:
        session: the session.
        path: names of its agents, from the main agent down.
        url: its page when the run stopped; empty if unknown.
        asks: whether this agent waits for the person.
    """

    session: InterruptedSession
    path: tuple[str, ...]
    url: str
    asks: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the facts for a person who chooses a browser."""
        session = self.session.session
        facts = {"sid": session.id, "path": "/".join(self.path), "task": session.task}
        return {**facts, "url": self.url, "asks": self.asks}


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
            events = list(read_events(folder))
            main, _ = read_interrupted_run(events)
        except UNUSABLE as e:
            raise InputError(f"{folder}: {e}") from None
        if main is None:
            raise InputError(f"{folder}: the journal has no run")
        self.main: InterruptedSession = main
        kinds = [e["kind"] for e in events if e["kind"] != EventKind.USER_ACTED]
        self._suspended = kinds[-1] == EventKind.SUSPENDED

    @property
    def done(self) -> bool:
        """Whether the run is done, so that there is nothing to resume."""
        return self.main.session.status is Status.DONE

    @property
    def browsers(self) -> list[SessionBrowser]:
        """The browsers on lease; that of the agent that asks comes first."""
        found = [one for one in self._all_browsers() if _is_browser(one.session.lease)]
        return sorted(found, key=lambda one: not one.asks)

    @property
    def closed_browsers(self) -> list[SessionBrowser]:
        """The browsers that closed with the command: the resumed run opens new ones."""
        return [one for one in self._all_browsers() if one.session.lease is None and one.url]

    def _all_browsers(self) -> Iterator[SessionBrowser]:
        asked = self.main.asked["session"] if self.main.asked else ""
        for path, one in _tree(self.main):
            session, asks = one.session, one.session.id == asked
            if asks or one.interrupted or session.status is Status.IN_PROGRESS or one.lease:
                url = str((one.lease or {}).get("url") or last_url_of(session))
                yield SessionBrowser(one, path, url, asks)

    def parent_of(self, sid: str) -> str | None:
        """Return the id of the session that called a session; None for the main session."""
        for one in self.main.sessions.values():
            if sid in one.session.children:
                return one.session.id
        return None

    @property
    def reason(self) -> str:
        """Why the run stopped, in one sentence, for runs that wait for no person."""
        if self.main.session.status is not Status.IN_PROGRESS:
            return f"The run ended early ({self.main.session.stop_reason or 'unknown reason'})."
        if self._suspended:
            return "The run was suspended."
        return "The command of this run was stopped or killed. Its finished steps are kept."

    @property
    def actions(self) -> list[dict[str, str]]:
        """What the person has done so far: the session of the browser, and the action."""
        found = self.main.sessions.items()
        return [{"sid": sid, "line": line} for sid, one in found for line in one.user_actions]

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


def _tree(
    one: InterruptedSession, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], InterruptedSession]]:
    """Yield a session and those below it, with the names of its agents."""
    path = (*above, one.session.agent)
    yield path, one
    for sid in one.session.children:
        yield from _tree(one.sessions[sid], path)


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
