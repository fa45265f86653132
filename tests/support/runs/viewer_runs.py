"""Runs for the tests of the viewer: journals and rows of any size, written without an agent."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from ck_main.output.row import row_from_events, row_line
from ck_pro.events import EventKind
from ck_pro.journal import Journal, read_events
from ck_pro.session import StopReason

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00"
    b"\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
)
PICTURE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


class RunWriter:
    """Writes the journal of one run, event by event.

    Args:
        folder: of the journal.
        task_id: id of the task.
    """

    def __init__(self, folder: Path, task_id: str, **facts: Any):
        self.folder, self.sid = folder, f"main-{task_id}"
        self.journal = Journal(folder)
        self.prompts: dict[str, list[dict[str, Any]]] = {}
        task: Any = {
            "id": task_id,
            "task": f"What is the answer of {task_id}?",
            "file": None,
            "answer": "42",
            "_orig": {"Level": 2, "tags": ["numbers"]},
            "skip_hard": False,
            **facts,
        }
        self.append(EventKind.TASK, task)
        self.session(self.sid, "ck_agent", task["task"])

    def append(self, kind: str, data: Any, **where: Any) -> None:
        self.journal.append(kind, **{"sid": self.sid, "data": data, **where})

    def session(self, sid: str, agent: str, task: str, parent: str | None = None) -> None:
        path = ["ck_agent", agent] if parent else [agent]
        data = {"task": task, "agent": agent, "path": path, "config": {"name": agent}, "info": {}}
        self.append(EventKind.SESSION, data, sid=sid, parent=parent, i=0)

    def step(
        self,
        i: int,
        *,
        sid: str = "",
        parent: str | None = None,
        thought: str = "",
        code: str = "print(1)",
        observation: Any = "1",
        page: str = "",
        image: str = "",
        calls: tuple[tuple[str, dict[str, Any], str], ...] = (),
    ) -> None:
        """Write a whole step."""
        sid = sid or self.sid
        where = {"sid": sid, "parent": parent, "i": i}
        self.append(EventKind.STEP, {}, **where)
        if page:
            state = {"step_url": f"http://site.test/{i}", "current_accessibility_tree": page}
            self.append(EventKind.WORLD, {"web_state_before": state}, **where)
        thought = thought or f"Thought {i}: look."
        prompt = self.prompts.setdefault(sid, [{"role": "system", "content": "Rules."}])
        seen: Any = f"Step {i}: page."
        if image:
            seen = [
                {"type": "text", "text": seen},
                {"type": "image_url", "image_url": {"url": image}},
            ]
        prompt.append({"role": "user", "content": seen})
        output = f"Thought: {thought}\n```python\n{code}\n```"
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 50}
        facts = {"model": "m", "usage": {**usage, "total_tokens": 110}, "cost": 0.5}
        call = {**facts, "messages": list(prompt), "output": output, "finish_reason": "stop"}
        self.append(EventKind.MODEL_CALL, call, phase="action", duration=0.01, **where)
        prompt.append({"role": "assistant", "content": output})
        self.append(EventKind.ACTION, {"thought": thought, "code": code}, phase="action", **where)
        for n, (name, arguments, value) in enumerate(calls):
            number = 10 * i + n
            started = {"call": number, "name": name, "arguments": arguments}
            self.append(EventKind.STARTED, started, **where)
            done = {"call": number, "name": name, "value": value}
            self.append(EventKind.CALL, done, duration=0.01, **where)
        self.append(EventKind.OBSERVATION, {"observation": observation}, **where)

    def end(
        self, output: str = "42", *, i: int = 0, sid: str = "", parent: str | None = None
    ) -> None:
        """End a session in its last step `i`."""
        where: dict[str, Any] = {"sid": sid or self.sid, "parent": parent, "i": i}
        results = {"output": output, "log": "found"}
        self.append(EventKind.END, {"final_results": results}, phase="end", **where)
        status = {"status": "done", "stop_reason": str(StopReason.FINISHED), "message": ""}
        self.append(EventKind.STATUS, status, **where)

    def finish(self, output: str = "42", i: int = 0) -> dict[str, Any]:
        """End the run in its last step `i`; return its row."""
        self.end(output, i=i)
        scored = {"pred": output, "gold": "42", "corr": int(output == "42")}
        self.append(EventKind.EVAL, scored)
        row = row_from_events(read_events(self.folder))
        self.append(EventKind.ROW, {})
        self.journal.close()
        return json.loads(row_line(row))


def small_run(folder: Path, task_id: str = "one", output: str = "42") -> dict[str, Any]:
    """Write a run with a sub-agent, a picture and a plan; return its row."""
    run = RunWriter(folder, task_id)
    run.append(EventKind.STEP, {}, i=0)
    plan = {"thought": "First the page.", "code": "", "state": {"todo_list": ["look", "answer"]}}
    run.append(EventKind.PLAN, plan, i=0, phase="plan")
    run.append(EventKind.ACTION, {"thought": "Ask.", "code": "web_agent('look')"}, i=0)
    started = {"call": 0, "name": "web_agent", "arguments": {"task": "look"}}
    run.append(EventKind.STARTED, started, i=0)
    sub = f"web-{task_id}"
    run.append(EventKind.SUB_SESSION, {"session": sub, "name": "web_agent", "call": 0}, i=0)
    run.session(sub, "web_agent", "look", parent=run.sid)
    page = "[1] RootWebArea 'Shop'\n\t[2] link 'Help'"
    click = ("click", {"id": "2"}, "click [2] link 'Help': clicked link 'Help'")
    run.step(0, sid=sub, parent=run.sid, page=page, image=PICTURE, calls=(click,))
    run.end("seen", sid=sub, parent=run.sid)
    value = "{'output': 'seen', 'log': 'found'}"
    run.append(EventKind.CALL, {"call": 0, "name": "web_agent", "value": value}, i=0, duration=0.1)
    reference = {"output": "seen", "log": "found", "repr": value, "session": sub}
    run.append(EventKind.OBSERVATION, {"observation": ["got ", reference]}, i=0)
    run.step(1, thought="The zebra crossing is the answer.", code="stop('42')")
    return run.finish(output, 1)


def output_with(folder: Path, *task_ids: str, name: str = "a", journals: bool = True) -> Path:
    """Write an output `a.jsonl` with a small run per task, and its folder; return the file."""
    rows = []
    for task_id in task_ids:
        rows.append(small_run(folder / name / task_id, task_id))
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if not journals:
        (folder / name).rename(folder / f"{name}-journals")
    return path
