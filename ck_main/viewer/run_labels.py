"""The labels of one run: between the places of the page (SID/I/N) and the targets of the file."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.outline import mapping_of
from ck_main.viewer.runs.run_reader import RunReader
from ck_pro.events import EventKind
from ck_pro.exceptions import InputError
from ck_pro.session import PHASES
from ck_pro.trajectory.labels import Label, Reply, Target
from ck_pro.trajectory.labels.tool_check import tool_call_problem
from ck_pro.trajectory.reading.attempts import value_at
from ck_pro.trajectory.reading.messages import normal_tools
from ck_pro.trajectory.reading.model_calls import reply_mark

VERDICTS = ("good", "bad", "exclude")


@dataclass(frozen=True)
class Place:
    """A part of a run in the page.

    Args:
        sid: id of the session; "" for the run.
        step: index of the step; None for the session.
        call: index of the call among the step's model calls in the page; None for the step.
    """

    sid: str = ""
    step: int | None = None
    call: int | None = None

    @classmethod
    def of(cls, target: Any) -> Place:
        """Check the target of a request.

        Raises:
            InputError: it is not a run, session, step or call.
        """
        sid, step, call = (mapping_of(target).get(k) for k in ("sid", "step", "call"))
        texts = sid is None or isinstance(sid, str)
        numbers = all(n is None or (isinstance(n, int) and n >= 0) for n in (step, call))
        nested = (step is None or sid) and (call is None or step is not None)
        if not isinstance(target, Mapping) or not texts or not numbers or not nested:
            raise InputError("a target is {}, {sid}, {sid, step} or {sid, step, call}")
        return cls(sid or "", step, call)


def run_facts(reader: RunReader, entry: Entry) -> dict[str, Any]:
    """Return the facts of a run that targets name."""
    main = reader.outline.main
    if main is None:
        raise InputError("the run has not started; there is nothing to label")
    task = reader.outline.task
    task_id = str(task.get("id") or "")
    if not task and entry.journal is not None:
        task_id = entry.journal.resolve().name
    facts: dict[str, Any] = {"id": task_id, "run": main.sid}
    number = value_at(reader.session_data(main.sid), "info.try.number")
    return {**facts, "try": number - 1} if isinstance(number, int) and number > 0 else facts


def target_of(reader: RunReader, entry: Entry, place: Place) -> tuple[Target, str]:
    """Return the target of a place, and the mark of a call's recorded reply.

    Raises:
        InputError: the run has no such part, or exports do not contain the call.
    """
    keys = run_facts(reader, entry)
    if not place.sid:
        return Target.of(keys), ""
    session = reader.outline.sessions.get(place.sid)
    if session is None or (place.step is not None and place.step >= len(session.steps)):
        raise InputError("the run has no such session or step")
    keys["session"] = place.sid
    if place.step is not None:
        keys["step"] = place.step
    if place.call is None or place.step is None:
        return Target.of(keys), ""
    data, number, phase = _call(reader, place.sid, place.step, place.call)
    target = Target.of({**keys, "call": number, "phase": phase})
    return target, reply_mark({"llm_output": data.get("output"), "llm_info": data})


def _call(reader: RunReader, sid: str, i: int, n: int) -> tuple[Mapping[str, Any], int, str]:
    """Return the data of a model call, its number in rows, and its phase."""
    events = [e for e in reader.events(sid, i) if e.get("kind") == EventKind.MODEL_CALL]
    number = numbers_in_row(reader.events(sid, i)).get(n)
    if n >= len(events):
        raise InputError("the step has no such model call")
    if number is None:
        raise InputError(
            "exports do not contain this call: its texts are not stored, or a later call of the "
            "step replaced it"
        )
    return mapping_of(events[n].get("data")), number, str(events[n].get("phase") or "")


def numbers_in_row(events: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Map the model calls of a step, in order of their events, to their numbers in the row.

    See `step_calls`: in a row, the order is plan, action, tools, end. Only the last plan and action
    of a step remain, calls without a stored prompt do not count, and a resumed run drops the end.
    """
    last: dict[str, int] = {}
    tools: list[int] = []
    ends: list[int] = []
    n = -1
    for event in events:
        if event.get("kind") == EventKind.RESUMED:
            ends = []
        if event.get("kind") != EventKind.MODEL_CALL:
            continue
        n += 1
        data, phase = mapping_of(event.get("data")), str(event.get("phase") or "")
        if not (data.get("message_hashes") or data.get("messages")):
            continue
        if phase == "end":
            ends.append(n)
        elif phase in PHASES:
            last[phase] = n
        else:
            tools.append(n)
    order = [*(last[p] for p in PHASES if p in last), *tools, *ends]
    return {n: number for number, n in enumerate(order)}


def labels_of_run(labels: Iterable[Label], reader: RunReader, entry: Entry) -> dict[str, Any]:
    """Return the labels of a run by their place in the page.

    Labels of broader targets, such as an agent, are not shown.
    """
    facts = run_facts(reader, entry)
    run: dict[str, Any] | None = None
    found: dict[str, dict[str, Any]] = {"sessions": {}, "steps": {}, "calls": {}}
    numbers: dict[tuple[str, int], dict[int, int]] = {}
    for label in labels:
        keys = dict(label.target.keys)
        rest = {k: keys.pop(k) for k in ("session", "step", "call", "phase") if k in keys}
        if any(k not in ("id", "run", "try") or facts.get(k, v) != v for k, v in keys.items()):
            continue
        if not rest:
            run = label_json(label)
            continue
        sid, step, call = str(rest.get("session") or ""), rest.get("step"), rest.get("call")
        session = reader.outline.sessions.get(sid)
        if session is None or (step is None and len(rest) > 1):
            continue
        if not isinstance(step, int):
            found["sessions"][sid] = label_json(label)
        elif label.target.level == "step":
            found["steps"][f"{sid}/{step}"] = label_json(label)
        elif isinstance(call, int) and step < len(session.steps):
            if (sid, step) not in numbers:
                in_row = numbers_in_row(reader.events(sid, step))
                numbers[sid, step] = {number: n for n, number in in_row.items()}
            n = numbers[sid, step].get(call)
            if n is not None:
                found["calls"][f"{sid}/{step}/{n}"] = _call_label(label, reader, sid, step, n)
    return {"run": run, **found}


def _call_label(label: Label, reader: RunReader, sid: str, step: int, n: int) -> dict[str, Any]:
    data = _call(reader, sid, step, n)[0]
    mark = reply_mark({"llm_output": data.get("output"), "llm_info": data})
    return {**label_json(label), "outdated": bool(label.recorded) and label.recorded != mark}


def label_json(label: Label) -> dict[str, Any]:
    """Return a label for the page."""
    reply = None if label.reply is None else label.reply.to_json()
    facts = {"label": label.verdict, "comment": label.comment, "reply": reply}
    return {**facts, "who": label.who, "when": label.when}


def new_label(
    body: Mapping[str, Any], before: Label | None, reader: RunReader, entry: Entry
) -> Label:
    """Return the label of a request; what it does not name stays as before.

    Raises:
        InputError: the request is not a label of a part of this run.
    """
    place = Place.of(body.get("target"))
    target, mark = target_of(reader, entry, place)
    old = label_json(before) if before is not None else {}
    line = {k: body.get(k, old.get(k)) for k in ("label", "comment", "reply")}
    if line["label"] not in (None, *VERDICTS):
        raise InputError(f"a label is {', '.join(VERDICTS)} or null")
    label = Label.of({**line, "target": dict(target.keys), "recorded": mark, "who": _user()})
    if label.reply is not None and place.call is not None and place.step is not None:
        _check_tool_calls(label.reply, _call(reader, place.sid, place.step, place.call)[0])
    return label


def _check_tool_calls(reply: Reply, data: Mapping[str, Any]) -> None:
    tools = normal_tools(value_at(data, "params.tools"))
    problem = tool_call_problem(reply.tool_calls, tools)
    if problem:
        raise InputError(f"the corrected reply calls {problem}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return ""
