"""A synthetic big run with the shape of real ones, written through the real journal.

    python tests/support/big_run.py FOLDER MEGABYTES [TASKS]

A task has a main agent and, in each of its steps, a web agent with ten steps. A web step's prompt
is the rules, the task, the steps before (which grow until the older half is dropped), the page as
text, and a screenshot; the pages share most of their lines. Every second task was solved.
"""

from __future__ import annotations

import random
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from journal_data import status

from ck_pro.events import EventKind
from ck_pro.journal import EVENTS_FILE, Journal

RULES = {"system": "You drive a browser by writing Python. " + "Rule: be brief and exact. " * 120}
WORDS = [f"{a}{b}" for a in ("ship", "light", "rain", "stone", "wood") for b in range(400)]
WEB_STEPS = 10


def write_run(folder: Path, megabytes: float, tasks: int = 20) -> int:
    """Write a run of about this many bytes of events; return its number of model calls."""
    calls = 0
    for n in range(tasks):
        task = folder / f"task{n:04d}"
        with Journal(task) as journal:
            calls += _Task(journal, task / EVENTS_FILE, n).write(megabytes * 1e6 / tasks)
    return calls


class _Task:
    def __init__(self, journal: Journal, path: Path, number: int):
        self.journal, self.path, self.number = journal, path, number
        self.rng = random.Random(number)
        self.site = [self.line() for _ in range(300)]
        self.calls = 0

    def write(self, size: float) -> int:
        main, put = "main", self.put
        facts = {
            "id": f"task{self.number:04d}",
            "task": f"Question {self.number}?",
            "answer": "yes",
        }
        put("task", main, data=facts)
        config = {"agent": "ck_agent", "path": ["ck_agent"], "info": {}, "config": {}}
        put("session", main, data={"task": facts["task"], **config})
        step = 0
        while step == 0 or self.path.stat().st_size < size:
            put("step", main, i=step)
            history = [_user(f"step {k}: done") for k in range(max(0, step - 20), step)]
            self.call(main, step, [*history, _user(f"Step {step}. Now act.")])
            self.sub_agent(main, step)
            step += 1
        data: dict[str, Any] = {"final_results": {"output": "yes", "log": ""}}
        put("end", main, i=step - 1, phase="end", data=data)
        put("status", main, i=step - 1, data=status())
        put("eval", main, data={"pred": "yes", "gold": "yes", "corr": self.number % 2})
        return self.calls

    def sub_agent(self, main: str, step: int) -> None:
        sid = f"web{step}"
        self.put("sub_session", main, i=step, data={"session": sid, "name": "web_agent"})
        put = lambda kind, **more: self.put(kind, sid, parent=main, **more)  # noqa: E731
        facts = {"task": f"Find {step}.", "agent": "web_agent", "info": {}}
        put("session", data={**facts, "path": ["ck_agent", "web_agent"]})
        history: list[dict[str, Any]] = []
        for i in range(WEB_STEPS):
            put("step", i=i)
            page, shot = self.page(), self.shot()
            put("world", i=i, data={"web_state_before": page})
            seen = [
                {"type": "text", "text": page},
                {"type": "image_url", "image_url": {"url": shot}},
            ]
            code = f"click(id={self.rng.randrange(300)})"
            self.call(sid, i, [*history, {"role": "user", "content": seen}], main, code)
            put("observation", i=i, data={"observation": page[:2000]})
            history += [{"role": "assistant", "content": code}, _user(page[:2000])]
            history = history[-8:]
        put("end", i=WEB_STEPS - 1, phase="end", data={"final_results": {"output": "x", "log": ""}})
        put("status", i=WEB_STEPS - 1, data=status())
        self.put("observation", main, i=step, data={"observation": f"found {step}"})

    def call(
        self,
        sid: str,
        i: int,
        rest: list[dict[str, Any]],
        parent: str | None = None,
        code: str = "print(web_agent('go'))",
    ) -> None:
        system = {"role": "system", "content": RULES["system"]}
        said = f"Thought: {self.line()}\n```python\n{code}\n```"
        usage = {"prompt_tokens": 5000, "completion_tokens": 60, "total_tokens": 5060}
        data = {"model": "m", "params": {}, "usage": usage, "messages": [system, *rest]}
        self.put(
            "model_call", sid, parent=parent, i=i, phase="action", data={**data, "output": said}
        )
        self.put("action", sid, parent=parent, i=i, data={"thought": said[:40], "code": code})
        self.calls += 1

    def put(self, kind: str, sid: str, **more: Any) -> None:
        self.journal.append(EventKind(kind), sid=sid, **more)

    def line(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=9))

    def page(self) -> str:
        fresh = [self.line() for _ in range(60)]
        start = self.rng.randrange(100)
        lines = [*self.site[start : start + 150], *fresh]
        return "\n".join(f"[{n}] link '{text}'" for n, text in enumerate(lines))

    def shot(self) -> str:
        import base64

        return f"data:image/png;base64,{base64.b64encode(_png(self.rng)).decode()}"


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _png(rng: random.Random) -> bytes:
    """An image of 64 x 64 grey pixels: 4 kB that do not compress."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    pixels = b"".join(b"\0" + rng.randbytes(64) for _ in range(64))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(pixels, 1)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def journal_sizes(folder: Path) -> Iterator[int]:
    """Return the size of the events of each journal."""
    for path in sorted(folder.glob(f"*/{EVENTS_FILE}")):
        yield path.stat().st_size


if __name__ == "__main__":
    tasks = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    made = write_run(Path(sys.argv[1]), float(sys.argv[2]), tasks)
    print(f"{made} model calls, {sum(journal_sizes(Path(sys.argv[1]))):,} bytes of events")
