"""`replay:RUN`: a recorded run answers, from its journals or its output rows.

A session that asks is given a recorded session of the same agent (by its path) and the same task,
in the order in which they were recorded: of several tries, the first that asks is the first try.
It keeps that one, and is answered by phase and step (a tool's calls by their messages too).
Replies are read as a recording has them: ids of elements, local addresses and the working folder
become what they are in the run that asks.
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
from ck_pro.journal import journal_folders, read_events
from ck_pro.model.backends.backend import ChatRequest
from ck_pro.model.recordings.elements import message_text, template_reply
from ck_pro.model.recordings.normalise import normalise, normalise_task
from ck_pro.model.recordings.recording import (
    difference,
    digest_of,
    each_text,
    is_filtered,
    nearest_of,
    reply_key,
)
from ck_pro.model.types import CallContext

_TAIL = 8000
"""Characters of a prompt's end that are kept to compare the phase's instruction with."""
_WORK_FOLDER = "work"
_PHASES = ("plan", "action", "end")
_Place = tuple[str, int, str]
"""Phase, step, hash of the messages (tools' calls only)."""


@dataclass
class RecordedSession:
    """What one session of the recorded run was answered.

    Args:
        agent: path of its agent, "ck_agent/web_agent".
        task: normalised.
        replies: by place, in the order in which they came.
        failures: what a model said where it failed for good.
    """

    agent: str
    task: str
    replies: dict[_Place, list[dict[str, Any]]] = field(default_factory=dict)
    failures: dict[tuple[str, int], str] = field(default_factory=dict)


class RunRecording:
    """The replies of a run, and which session of it each session that asks has been given.

    Args:
        path: a file of rows, a journal's folder, or a folder of such folders.

    Raises:
        ReplayError: it cannot be read, or holds no texts of a model.
    """

    def __init__(self, path: Path):
        self.path = path
        self.sessions: dict[tuple[str, str], list[RecordedSession]] = {}
        self.texts: dict[str, str] = {}
        """Normalised system texts by their hash."""
        self._given: dict[str, RecordedSession] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        self._asked: Counter[tuple[str, _Place]] = Counter()
        self._lock = threading.Lock()
        try:
            if path.is_dir():
                folders = journal_folders(path)
                if not folders:
                    raise ReplayError(f"replay: {path}: no journal in it")
                for folder in folders:
                    self._read_journal(folder)
            else:
                self._read_rows(path)
        except (OSError, JournalError) as e:
            said = e.strerror if isinstance(e, OSError) else str(e)
            raise ReplayError(f"replay: cannot read the run {path}: {said}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise ReplayError(f"replay: {path} is no run of ours: {e!r}") from None
        if not any("system" in r for s in self._all() for rows in s.replies.values() for r in rows):
            raise ReplayError(
                f"replay: {path} holds no reply of a model; was it run with store_io=False?"
            )

    # --- answering -------------------------------------------------------------------------

    def find(self, request: ChatRequest) -> dict[str, Any]:
        """The reply to a request.

        Raises:
            ReplayError: there is none.
        """
        agent, phase, step, task, digest = reply_key(request.messages, request.context)
        place = (phase, step, digest)
        with self._lock:
            session = self._session(request.context.sid, (agent, task), place)
            replies = session.replies.get(place, []) if session else []
            sid = request.context.sid
            count = self._asked[sid, place]
            if sid:
                self._asked[sid, place] += 1
        if count < len(replies):
            return replies[count]
        raise ReplayError(self._missing(session, (agent, phase, step, task, digest), len(replies)))

    def _session(self, sid: str, key: tuple[str, str], place: _Place) -> RecordedSession | None:
        if sid in self._given:
            return self._given[sid]
        alike = self.sessions.get(key, [])
        if not alike:
            return None
        # one that goes on in the middle was given one before, in a process that ended; and a run
        # that is replayed twice begins again
        first = self._taken[key] % len(alike)
        order = [*alike[first:], *alike[:first]]
        session = next((s for s in order if place in s.replies), order[0])
        if sid:
            self._taken[key] += 1
            self._given[sid] = session
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
            return f"{line}: the model failed there ({failure})"
        if count:
            return f"{line} beyond the {count} that were recorded"
        if any(p[:2] == (phase, step) for p in session.replies):
            return f"{line} with these messages (it has one with others)"
        steps = [p[1] for p in session.replies if p[0] == phase]
        known = f"steps {min(steps)} to {max(steps)} of that phase" if steps else "no such phase"
        return f"{line}; that session has {known}"

    def _all(self) -> Iterator[RecordedSession]:
        for found in self.sessions.values():
            yield from found

    def changed(self, row: Mapping[str, Any], request: ChatRequest) -> str:
        """How the prompt's instructions differ from the recorded ones; "" where they do not."""
        context = request.context
        if context.phase.startswith("tool:") or "system" not in row:
            return ""  # its messages are its key; or a filter stopped it, and they were not kept
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
        """Keep one model call; `facts` are as a journal has them."""
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
                workdir = str(data.get("workdir") or (folder / _WORK_FOLDER).resolve())
                path = tuple(data.get("path") or [data.get("agent", "")])
                session = self._begin(path, data["task"], workdir)
                context = CallContext(agent_path=path, task=data["task"], workdir=workdir)
                sessions[sid] = session, context
            elif event["kind"] == EventKind.MODEL_CALL and "messages" in data:
                session, context = sessions[sid]
                context.phase, context.step = event["phase"] or "", event["i"] or 0
                self._add(session, data["messages"], data.get("output", ""), data, context)
            elif event["kind"] == EventKind.FORKED:  # from here on it worked in another folder
                for _, context in sessions.values():
                    context.workdir = str((folder / _WORK_FOLDER).resolve())
            elif event["kind"] == EventKind.MODEL_FAILED:
                place, error = (event["phase"] or "", event["i"] or 0), str(data.get("error", ""))
                sessions[sid][0].failures[place] = error[:200]
                if is_filtered(error) and place[0] in _PHASES:
                    _add_filtered(sessions[sid][0], place, error, data)

    def _read_rows(self, path: Path) -> None:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if line.strip():
                    row = json.loads(line)
                    earlier = row.get("previous_failed_sessions") or ()
                    for session in (*(s.get("session", s) for s in earlier), row["session"]):
                        self._read_session(session, ())

    def _read_session(self, given: Mapping[str, Any], above: tuple[str, ...]) -> None:
        agent_path = (*above, str((given.get("info") or {}).get("agent") or "ck_agent"))
        session = self._begin(agent_path, given["task"], "")
        context = CallContext(agent_path=agent_path, task=given["task"])
        for n, step in enumerate(given["steps"]):
            action = step.get("action") or {}
            seen = action.get("observation")
            if isinstance(seen, str) and is_filtered(seen) and not action.get("llm_input"):
                planned = bool((step.get("plan") or {}).get("llm_input"))
                for phase in _PHASES[planned:2]:  # whichever is asked first ends the step
                    _add_filtered(session, (phase, n), seen, {})
            parts = [(p, step.get(p) or {}) for p in _PHASES]
            for phase, part in (*parts, *((c["phase"], c) for c in action.get("model_calls", ()))):
                if part.get("llm_input"):
                    context.phase, context.step = phase, n
                    facts = part.get("llm_info") or {}
                    said = part.get("llm_output") or ""
                    self._add(session, part["llm_input"], said, facts, context)
            for nested in action.get("sub_sessions") or ():
                self._read_session(nested, agent_path)


def _add_filtered(
    session: RecordedSession, place: tuple[str, int], error: str, facts: Mapping[str, Any]
) -> None:
    """Keep a call that a content filter stopped, which the agent was told, and went on."""
    usage = {k: v for k, v in (facts.get("usage") or {}).items() if k != "total_tokens"}
    row = {"filtered": error, **({"usage": usage} if usage else {})}
    session.replies.setdefault((*place, ""), []).append(row)


def _system_text(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(message_text(dict(m)) for m in messages if m.get("role") == "system")


def _last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text that ends a prompt: where its phase's instruction stands."""
    content = messages[-1].get("content") if messages else ""
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict) and p.get("text")]
        return str(texts[-1]) if texts else ""
    return str(content or "")
