"""LLaMA-Factory (0.9): rows of `conversations`, and the `dataset_info.json` that names them.

Its loader wants turns to alternate, first a person's or an observation, last the model's; it skips
what does not. So neighbours of one side are joined, and a call that cannot be brought into that
form is dropped and counted. The system prompt and the tools are columns of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import OutputError
from ck_pro.trajectory.formats.chat import Message, MessageError
from ck_pro.trajectory.formats.rows import Layout, Row, tagged_text
from ck_pro.trajectory.reading.model_calls import Call

INFO_FILE = "dataset_info.json"
_FROM = {"system": "human", "user": "human", "assistant": "gpt", "tool": "observation"}
_MODEL = ("gpt", "function_call")


def sharegpt_rows(call: Call, layout: Layout) -> list[Row]:
    """A call as a row of `conversations`.

    Raises:
        MessageError: its turns do not alternate.
    """
    messages = [*call.prompt, layout.reply(call.reply, call.reasoning)]
    first = next((n for n, m in enumerate(messages) if m["role"] != "system"), len(messages))
    system = "\n\n".join(tagged_text(m, layout) for m in messages[:first])
    turns = _joined([_turn(m, layout) for m in messages[first:]])
    sides = [t["from"] in _MODEL for t in turns]
    if sides != [n % 2 == 1 for n in range(len(turns))] or len(turns) % 2:
        raise MessageError("turns do not alternate")
    tools = json.dumps([t["function"] for t in call.tools], ensure_ascii=False)
    row: Row = {"conversations": turns, "system": system, "tools": tools if call.tools else ""}
    if layout.has_images:
        row["images"] = layout.stored(call.images)
    return [{**row, "metadata": call.metadata}]


def _turn(message: Message, layout: Layout) -> dict[str, str]:
    if message.get("tool_calls"):
        # the form has no place for text beside calls
        calls = [c["function"] for c in message["tool_calls"]]
        value = json.dumps(calls if len(calls) > 1 else calls[0], ensure_ascii=False)
        return {"from": "function_call", "value": value}
    return {"from": _FROM[message["role"]], "value": tagged_text(message, layout)}


def _joined(turns: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    out: list[dict[str, str]] = []
    for turn in turns:
        if out and out[-1]["from"] == turn["from"] and turn["from"] != "function_call":
            out[-1] = {**turn, "value": f"{out[-1]['value']}\n\n{turn['value']}"}
        elif out and {out[-1]["from"], turn["from"]} == {"human", "observation"}:
            out[-1] = {"from": "human", "value": f"{out[-1]['value']}\n\n{turn['value']}"}
        else:
            out.append(turn)
    return out


def write_info(files: Sequence[Path], *, has_images: bool) -> None:
    """Name the files in the `dataset_info.json` beside them; other entries stay.

    Raises:
        OutputError: it cannot be written, or what is there is no such file.
    """
    path = files[0].with_name(INFO_FILE)
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    if has_images:
        columns["images"] = "images"
    entry: Mapping[str, Any] = {"formatting": "sharegpt", "columns": columns}
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
        if not isinstance(known, dict):
            raise ValueError("no object")
        known.update({f.stem: {"file_name": f.name, **entry} for f in files})
        path.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n")
    except ValueError as e:
        raise OutputError(f"{path} is there already and cannot be read: {e}") from None
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}") from None
