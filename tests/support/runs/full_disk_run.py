"""An agent whose disk fills up, and that resumes once there is space; see test_full_disk.

    python full_disk_run.py FOLDER tmpfs|limit

With `tmpfs`, FOLDER is a small separate file system; with `limit`, files may not grow beyond a
limit of the process. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ck_pro import MultiStepAgent
from ck_pro.exceptions import JournalError
from ck_pro.journal import EVENTS_FILE, Journal, read_events
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import CallContext, Reply
from ck_pro.testing import ScriptedLLM

STEPS = 40
ROOM = 60_000


def look(n: int) -> str:
    """Look at a page."""
    return f"page {n}: " + "words " * 300


def reply(messages: Any, context: CallContext) -> Reply:
    if context.step == STEPS:
        return Reply("the answer")
    call = {"name": "look", "arguments": json.dumps({"n": context.step})}
    return Reply("", tool_calls=[{"id": "c", "type": "function", "function": call}])


def main(folder: Path, mode: str) -> dict[str, Any]:
    agent = MultiStepAgent(
        name="reader",
        model=ScriptedLLM(replies=reply),
        tools=[look],
        language=FunctionCallingLanguage(),
        max_steps=STEPS + 1,
        history_chars=5000,
    )
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    ballast = folder / "ballast"
    if mode == "tmpfs":
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        with ballast.open("rb+") as file:
            file.truncate(ballast.stat().st_size - ROOM)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, unlimited[1]))
    run = folder / "run"
    said = ""
    with Journal(run) as journal:
        try:
            agent.run("Read.", journal=journal, workdir=folder / "work")
        except JournalError as e:
            said = str(e)
    before = list(read_events(run))
    whole = (run / EVENTS_FILE).read_bytes().endswith(b"\n")
    stored = (run / EVENTS_FILE).stat().st_size
    ballast.unlink(missing_ok=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    with Journal(run) as journal:
        repaired = journal.repaired
        session = agent.resume(journal=journal, workdir=folder / "work")
    after = list(read_events(run))
    return {
        "said": said,
        "stored": stored,
        "whole": whole,
        "repaired": repaired,
        "kept": after[: len(before)] == before,
        "status": session.status.value,
        "answer": session.final_results,
        "steps": [s["action"]["code"] for s in session.steps],
        "leftovers": [p.name for p in run.rglob(".*")],
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
