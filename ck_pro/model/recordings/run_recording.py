"""`replay:RUN`: replay the journals or output rows of a run.

Each live session is assigned one recorded session of the same agent path and task, in the recorded
order: the first live attempt gets the first recorded attempt. It then gets the replies of that
session by phase and step, and for calls of tools also by messages. As in recordings, element ids,
local URLs and the working directory are replaced by those of the live run.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_pro.events import EventKind
from ck_pro.exceptions import JournalError, ReplayError
from ck_pro.journal import WORK_FOLDER, journal_folders, read_events
from ck_pro.model.backends.backend import ChatRequest
from ck_pro.model.recordings.elements import message_text, normalise, normalise_task, template_reply
from ck_pro.model.recordings.recording import (
    difference,
    digest_of,
    each_text,
    is_filter_error,
    nearest_of,
    reply_key,
)
from ck_pro.model.types import CallContext

_TAIL = 8000
"""Length of the kept end of a prompt, which contains the phase's instruction, in characters."""
_PHASES = ("plan", "action", "end")
_Place = tuple[str, int, str]
"""Phase, step, hash of the messages (tools' calls only)."""


@dataclass
class RecordedSession:
    """The replies of one session of the recorded run.

    Args:
        agent: agent path, "ck_agent/web_agent".
        task: normalised task.
        replies: replies by place, in order.
        failures: errors of failed calls, by phase and step.
    """

    agent: str
    task: str
    replies: dict[_Place, list[dict[str, Any]]] = field(default_factory=dict)
    failures: dict[tuple[str, int], str] = field(default_factory=dict)


class RunRecording:
    """The replies of a run, and the assignment of its sessions to live sessions.

    Args:
        path: a file of rows, a journal's folder, or a folder of such folders.

    Raises:
        ReplayError: the run cannot be read, or contains no replies.
    """

    def __init__(self, path: Path):
        self.path = path
        self.sessions: dict[tuple[str, str], list[RecordedSession]] = {}
        self.texts: dict[str, str] = {}
        """Normalised system texts, by hash."""
        self._assigned: dict[str, RecordedSession] = {}
        self._assigned_count: Counter[tuple[str, str]] = Counter()
        self._used: Counter[tuple[str, _Place]] = Counter()
        self._lock = threading.Lock()
        try:
            if path.is_dir():
                folders = journal_folders(path)
                if not folders:
                    raise ReplayError(f"replay: {path} contains no journal")
                for folder in folders:
                    self._read_journal(folder)
            else:
                self._read_rows(path)
        except (OSError, JournalError) as e:
            reason = e.strerror if isinstance(e, OSError) else str(e)
            raise ReplayError(f"replay: cannot read the run {path}: {reason}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise ReplayError(f"replay: {path} is not a run of ck-pro: {e!r}") from None
        if not any("system" in r for s in self._all() for rows in s.replies.values() for r in rows):
            raise ReplayError(
                f"replay: {path} contains no model replies; was it run with store_io=False?"
            )

    # --- replaying -------------------------------------------------------------------------

    def find(self, request: ChatRequest) -> dict[str, Any]:
        """Return the reply to a request.

        Raises:
            ReplayError: the run has none.
        """
        agent, phase, step, task, digest = reply_key(request.messages, request.context)
        place = (phase, step, digest)
        with self._lock:
            session = self._session(request.context.sid, (agent, task), place)
            replies = session.replies.get(place, []) if session else []
            sid = request.context.sid
            count = self._used[sid, place]
            if sid:
                self._used[sid, place] += 1
        if count < len(replies):
            return replies[count]
        raise ReplayError(self._missing(session, (agent, phase, step, task, digest), len(replies)))

    def _session(self, sid: str, key: tuple[str, str], place: _Place) -> RecordedSession | None:
        if sid in self._assigned:
            return self._assigned[sid]
        candidates = self.sessions.get(key, [])
        if not candidates:
            return None
        # a resumed live session starts in the middle: prefer a candidate that has this place; a
        # second replay of the run starts again with the first candidate
        first = self._assigned_count[key] % len(candidates)
        order = [*candidates[first:], *candidates[:first]]
        session = next((s for s in order if place in s.replies), order[0])
        if sid:
            self._assigned_count[key] += 1
            self._assigned[sid] = session
        return session

    def _missing(
        self, session: RecordedSession | None, key: tuple[str, str, int, str, str], count: int
    ) -> str:
        agent, phase, step, task, _ = key
        line = f"replay: {self.path} has no reply for {agent}, {phase}, step {step}"
        if session is None:
            keys = [(s.agent, *p[:2], s.task, p[2]) for s in self._all() for p in s.replies]
            return f"{line}, task '{' '.join(task.split())[:200]}'{nearest_of(keys, key)}"
        failure = session.failures.get((phase, step))
        if failure is not None:
            return f"{line}: the recorded call failed ({failure})"
        if count:
            return f"{line} after the {count} recorded ones"
        if any(p[:2] == (phase, step) for p in session.replies):
            return f"{line} with these messages (it has one with other messages)"
        steps = [p[1] for p in session.replies if p[0] == phase]
        known = f"steps {min(steps)} to {max(steps)} of that phase" if steps else "no such phase"
        return f"{line}; the recorded session has {known}"

    def _all(self) -> Iterator[RecordedSession]:
        for found in self.sessions.values():
            yield from found

    def changed(self, row: Mapping[str, Any], request: ChatRequest) -> str:
        """Describe how the prompt's instructions differ from the recorded ones; "" if equal."""
        context = request.context
        if context.phase.startswith("tool:") or "system" not in row:
            return ""  # the messages are in the key, or were not stored with a filtered call
        system = _system_text(request.messages)
        now = normalise(system, context.workdir)
        if digest_of(now) != row["system"]:
            return f"the prompt has changed: {difference(self.texts[row['system']], now)}"
        if context.instructions.startswith(system):
            rest = normalise(context.instructions[len(system) :], context.workdir)[-_TAIL // 2 :]
            if not row["tail"].endswith(rest):
                lines = row["tail"].split("\n")[-1 - rest.count("\n") :]
                return f"the prompt has changed: {difference(chr(10).join(lines), rest)}"
        return ""

    # --- reading ---------------------------------------------------------------------------

    def _begin(self, path: Sequence[str], task: str, workdir: str) -> RecordedSession:
        session = RecordedSession("/".join(path), normalise_task(task, workdir))
        self.sessions.setdefault((session.agent, session.task), []).append(session)
        return session

    def _add(
        self,
        session: RecordedSession,
        messages: Sequence[dict[str, Any]],
        reply: str,
        facts: Mapping[str, Any],
        context: CallContext,
    ) -> None:
        """Add one model call; `facts` is the data of its journal event."""
        key = reply_key(messages, context)
        system = normalise(_system_text(messages), context.workdir)
        self.texts[digest_of(system)] = system

        def template(text: str) -> str:
            return template_reply(text, messages, context)

        row: dict[str, Any] = {
            "reply": template(reply),
            "system": digest_of(system),
            "tail": normalise(_last_text(messages)[-_TAIL:], context.workdir),
        }
        for name in ("reasoning", "finish_reason"):
            if facts.get(name):
                row[name] = facts[name]
        for name in ("tool_calls", "items"):
            if facts.get(name):
                row[name] = each_text(facts[name], template)
        usage = {k: v for k, v in (facts.get("usage") or {}).items() if k != "total_tokens"}
        if usage:
            row["usage"] = usage
        session.replies.setdefault((context.phase, context.step, key[4]), []).append(row)

    def _read_journal(self, folder: Path) -> None:
        sessions: dict[str, tuple[RecordedSession, CallContext]] = {}
        for event in read_events(folder):
            data, sid = event["data"], event["sid"]
            if event["kind"] == EventKind.SESSION and sid not in sessions:
                workdir = str(data.get("workdir") or (folder / WORK_FOLDER).resolve())
                path = tuple(data.get("path") or [data.get("agent", "")])
                session = self._begin(path, data["task"], workdir)
                context = CallContext(agent_path=path, task=data["task"], workdir=workdir)
                sessions[sid] = session, context
            elif event["kind"] == EventKind.MODEL_CALL and "messages" in data:
                session, context = sessions[sid]
                context.phase, context.step = event["phase"] or "", event["i"] or 0
                self._add(session, data["messages"], data.get("output", ""), data, context)
            elif event["kind"] == EventKind.FORKED:  # later calls use the fork's working directory
                for _, context in sessions.values():
                    context.workdir = str((folder / WORK_FOLDER).resolve())
            elif event["kind"] == EventKind.MODEL_FAILED:
                place, error = (event["phase"] or "", event["i"] or 0), str(data.get("error", ""))
                sessions[sid][0].failures[place] = error[:200]
                if is_filter_error(error) and place[0] in _PHASES:
                    _add_filtered(sessions[sid][0], place, error, data)

    def _read_rows(self, path: Path) -> None:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if line.strip():
                    row = json.loads(line)
                    previous = row.get("previous_failed_sessions") or ()
                    for session in (*(s.get("session", s) for s in previous), row["session"]):
                        self._read_session(session, ())

    def _read_session(self, row: Mapping[str, Any], callers: tuple[str, ...]) -> None:
        agent_path = (*callers, str((row.get("info") or {}).get("agent") or "ck_agent"))
        session = self._begin(agent_path, row["task"], "")
        context = CallContext(agent_path=agent_path, task=row["task"])
        for n, step in enumerate(row["steps"]):
            action = step.get("action") or {}
            seen = action.get("observation")
            if isinstance(seen, str) and is_filter_error(seen) and not action.get("llm_input"):
                planned = bool((step.get("plan") or {}).get("llm_input"))
                for phase in _PHASES[planned:2]:  # the first call of the step was stopped
                    _add_filtered(session, (phase, n), seen, {})
            parts = [(p, step.get(p) or {}) for p in _PHASES]
            others = (*action.get("model_calls", ()), *parts[-1][1].get("model_calls", ()))
            for phase, part in (*((c["phase"], c) for c in others), *parts):
                if part.get("llm_input"):
                    context.phase, context.step = phase, n
                    facts = part.get("llm_info") or {}
                    reply = part.get("llm_output") or ""
                    self._add(session, part["llm_input"], reply, facts, context)
            for nested in action.get("sub_sessions") or ():
                self._read_session(nested, agent_path)


def _add_filtered(
    session: RecordedSession, place: tuple[str, int], error: str, facts: Mapping[str, Any]
) -> None:
    """Add a call that a content filter stopped, after which the agent continued."""
    usage = {k: v for k, v in (facts.get("usage") or {}).items() if k != "total_tokens"}
    row = {"filtered": error, **({"usage": usage} if usage else {})}
    session.replies.setdefault((*place, ""), []).append(row)


def _system_text(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(message_text(dict(m)) for m in messages if m.get("role") == "system")


def _last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last text of a prompt, which contains the phase's instruction."""
    content = messages[-1].get("content") if messages else ""
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict) and p.get("text")]
        return str(texts[-1]) if texts else ""
    return str(content or "")
