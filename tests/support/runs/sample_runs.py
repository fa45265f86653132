"""Runs for the tests of exports: real agents with a scripted model, through the real runner."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task, safe_name
from ck_pro import MultiStepAgent
from ck_pro.agent.prompts import PromptParts
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import CallContext, Reply
from ck_pro.template import register_template
from ck_pro.testing import ScriptedLLM

QUESTIONS = {"sum": "What is 20 + 22?", "capital": "What is the capital of France?"}
GOLD = {"sum": "42", "capital": "Paris"}
_PARTS = PromptParts("You look at pages.", "Be brief; <image> tags are not for you.", "Thought: ok")


def png(red: int) -> bytes:
    """A valid PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes([0, red, 0, 0]))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def data_url(red: int) -> str:
    """The same PNG as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png(red)).decode()}"


def _page_prompt(**values: Any) -> Any:
    url = data_url(values["step_idx"] + 1)
    world = [
        {"type": "text", "text": "The page says <image> and more."},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return _PARTS.prompt(values, "Act.", world)


register_template("sample_page_action", _page_prompt)


def call(name: str, **arguments: Any) -> Reply:
    """A reply that calls one function."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that calls functions."""
    listed = [
        {"id": f"c{n}", "type": "function", "function": {"name": k, "arguments": json.dumps(v)}}
        for n, (k, v) in enumerate(wanted)
    ]
    return Reply("", tool_calls=listed, reasoning="I should look.")


def scripted(wrong: bool) -> Any:
    """The script: `sum` adds and answers; `capital` asks two web agents, one of which fails."""

    def say(messages: list[dict[str, Any]], context: CallContext) -> Any:
        if context.agent_path[-1] == "web_agent":
            if "never" in context.task:
                return call("look", where=f"nowhere {context.step}")
            return call("look", where="map") if context.step == 0 else Reply("It is Paris.")
        if "20 + 22" in context.task:
            if context.step == 0:
                return call("add", a=20, b=23 if wrong else 22)
            return Reply("43" if wrong else "42")
        if context.step == 0:
            finds = ("web_agent", {"task": "find the capital"})
            return calls(finds, ("web_agent", {"task": "never ends"}))
        return Reply("London" if wrong else "Paris")

    return say


def make_agent(wrong: bool = False, images: bool = True) -> MultiStepAgent:
    """The main agent of the sample runs; needs no worker process."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def look(where: str) -> str:
        """Look at a place."""
        return f"You see Paris at {where}."

    model = ScriptedLLM(replies=scripted(wrong))
    language = FunctionCallingLanguage()
    web = MultiStepAgent(
        name="web_agent",
        description="Looks at pages.",
        model=model,
        tools=[look],
        language=language,
        max_steps=2,
        templates={"action": "sample_page_action" if images else "agent_action"},
    )
    return MultiStepAgent(
        name="ck_agent", model=model, tools=[add], sub_agents=[web], language=language
    )


class Silent:
    """A watcher that discards all events."""

    def started(self, task: Task) -> None: ...

    def event(self, task_id: str, event: dict[str, Any]) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...

    def note(self, text: str) -> None: ...


def make_tried_agent(right: int) -> MultiStepAgent:
    """An agent whose tries are wrong before try number `right`, counted from 1."""
    agent = make_agent()
    by_right = {True: scripted(False), False: scripted(True)}

    def say(messages: list[dict[str, Any]], context: CallContext) -> Any:
        if context.step == 0 and context.agent_path == ("ck_agent",):
            tries[context.task] += 1
        return by_right[tries[context.task] >= right](messages, context)

    tries: Counter[str] = Counter()
    agent.model = ScriptedLLM(replies=say)
    return agent


def run_tasks(
    agent: MultiStepAgent,
    output: Path,
    names: Iterator[str] | list[str],
    options: RunOptions | None = None,
) -> Path:
    """Run sample tasks with the real runner; return the file of rows, with journals beside it."""
    with RowFile(output) as rows:
        tasks = [
            Task(
                name,
                QUESTIONS[name],
                safe_name(name),
                answer=GOLD[name],
                original={"question": QUESTIONS[name], "Level": 1},
            )
            for name in names
        ]
        TaskRunner(agent, rows, options or RunOptions(), Silent()).run(tasks)
    return output


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass(frozen=True)
class Samples:
    """Files of rows; the journals of each are in a folder with its name without suffix."""

    good: Path
    wrong: Path
    plain: Path
    """Without images."""

    def journals(self, rows: Path) -> Path:
        """Return the run directory of a file of rows."""
        return rows.with_suffix("")
