"""LLaMA-Factory (0.9): rows of `conversations`, and a `dataset_info.json` that describes the files.

LLaMA-Factory requires alternating turns, which start with the user or an observation and end with
the model; it skips other rows. The export therefore joins adjacent turns of one side, and drops and
counts calls that still do not alternate. The system prompt and the tools have their own columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import OutputError
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Layout, TrainingRow, conversation, tagged_text
from ck_pro.trajectory.reading.messages import Message, MessageError
from ck_pro.trajectory.reading.model_calls import Call

INFO_FILE = "dataset_info.json"
_FROM = {"system": "human", "user": "human", "assistant": "gpt", "tool": "observation"}
_MODEL = ("gpt", "function_call")


def sharegpt_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row of `conversations`.

    Raises:
        MessageError: the turns do not alternate.
    """
    messages = conversation(call, layout)
    first = next((n for n, m in enumerate(messages) if m["role"] != "system"), len(messages))
    system = "\n\n".join(tagged_text(m, layout) for m in messages[:first])
    turns = _joined([_turn(m, layout) for m in messages[first:]])
    sides = [t["from"] in _MODEL for t in turns]
    if sides != [n % 2 == 1 for n in range(len(turns))] or len(turns) % 2:
        raise MessageError("turns do not alternate")
    tools = json.dumps([t["function"] for t in call.tools], ensure_ascii=False)
    row: TrainingRow = {
        "conversations": turns,
        "system": system,
        "tools": tools if call.tools else "",
    }
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
    """Join adjacent turns of one side."""
    out: list[dict[str, str]] = []
    for turn in turns:
        if out and out[-1]["from"] == turn["from"] and turn["from"] != "function_call":
            out[-1] = {**turn, "value": f"{out[-1]['value']}\n\n{turn['value']}"}
        elif out and {out[-1]["from"], turn["from"]} == {"human", "observation"}:
            out[-1] = {"from": "human", "value": f"{out[-1]['value']}\n\n{turn['value']}"}
        else:
            out.append(turn)
    return out


def write_info(files: Sequence[Path], has_images: bool) -> None:
    """Describe the files in the `dataset_info.json` beside them; other entries stay.

    Raises:
        OutputError: the file cannot be written, or exists and is not a JSON object.
    """
    path = files[0].with_name(INFO_FILE)
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    if has_images:
        columns["images"] = "images"
    entry: Mapping[str, Any] = {"formatting": "sharegpt", "columns": columns}
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
        if not isinstance(known, dict):
            raise ValueError("not an object")
        known.update({f.stem: {"file_name": f.name, **entry} for f in files})
        path.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n")
    except ValueError as e:
        raise OutputError(f"{path} exists already and cannot be read: {e}") from None
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}") from None


FORMAT = ExportFormat(
    name="sharegpt",
    help="LLaMA-Factory: conversations, system, tools; and dataset_info.json",
    trainer="LLaMA-Factory",
    row="`conversations, system, tools`; and `dataset_info.json`",
    images="`<image>` tags, `images`: paths",
    call_rows=sharegpt_rows,
    reasoning=("drop", "inline"),
    finish=write_info,
)
