"""Arrow schemas of the Parquet exports.

They carry the `datasets` library's own note of the columns' types (key "huggingface" of the
schema's metadata), so that images load as images and arguments of tool calls as objects.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from ck_pro.trajectory.formats.rows import Layout

_TEXT: Any = {"dtype": "string", "_type": "Value"}
_JSON: Any = {"_type": "Json"}
_IMAGES: Any = {"feature": {"_type": "Image"}, "_type": "List"}
_BYTES: Any = {"dtype": "binary", "_type": "Value"}
_NUMBER: Any = {"dtype": "float64", "_type": "Value"}
_INTEGER: Any = {"dtype": "int64", "_type": "Value"}
_TRUTH: Any = {"dtype": "bool", "_type": "Value"}
_METADATA = {
    "task_id": _TEXT,
    "try": _INTEGER,
    "session": _TEXT,
    "agent": _TEXT,
    "agent_path": _TEXT,
    "depth": _INTEGER,
    "phase": _TEXT,
    "step": _INTEGER,
    "status": _TEXT,
    "reward": _NUMBER,
    "scored": _TRUTH,
    "model": _TEXT,
}
_OF_REPLY = ("try", "session", "status", "reward", "scored")


def _list(feature: Any) -> dict[str, Any]:
    return {"feature": feature, "_type": "List"}


def trl_features(layout: Layout, parts: tuple[str, ...], *, calls: bool, reasoning: bool) -> Any:
    """The columns of `sft`, `dpo`, `kto` and `parquet`.

    Args:
        layout: whether there are images and tools.
        parts: names of the columns of messages.
        calls: whether there are tool calls.
        reasoning: whether replies have `reasoning_content`.
    """
    part = {"type": _TEXT, "text": _TEXT}
    message: dict[str, Any] = {"role": _TEXT}
    message["content"] = _list(part) if layout.has_images else _TEXT
    if calls:
        function = {"name": _TEXT, "arguments": _JSON}
        message["tool_calls"] = _list({"id": _TEXT, "type": _TEXT, "function": function})
        message["tool_call_id"] = _TEXT
    if reasoning:
        message["reasoning_content"] = _TEXT
    out: dict[str, Any] = {name: _list(message) for name in parts}
    if layout.has_tools:
        out["tools"] = _TEXT
    if layout.has_images:
        out["images"] = _IMAGES
    out["metadata"] = dict(_METADATA)
    if "chosen" in parts:
        kept = {k: v for k, v in _METADATA.items() if k not in _OF_REPLY}
        out["metadata"] = {**kept, "chosen_reward": _NUMBER, "rejected_reward": _NUMBER}
    return out


def verl_features(layout: Layout) -> Any:
    """The columns of `verl`."""
    out: dict[str, Any] = {"messages": _list({"role": _TEXT, "content": _TEXT})}
    out["metadata"] = dict(_METADATA)
    if layout.has_images:
        out["images"] = _list({"bytes": _BYTES})
    return out


def arrow_schemas(features: dict[str, Any]) -> tuple[Any, Any]:
    """Two `pyarrow.Schema`s of such columns.

    Returns:
        That to build tables with, where JSON is text, and that to write, with the note for
        `datasets`. (Arrow cannot build nested columns of its JSON type, but can cast to it.)
    """
    pyarrow: Any = import_module("pyarrow")
    note = {"huggingface": json.dumps({"info": {"features": features}})}
    plain = [(name, _arrow_type(f, pyarrow.string())) for name, f in features.items()]
    typed = [(name, _arrow_type(f, pyarrow.json_())) for name, f in features.items()]
    return pyarrow.schema(plain), pyarrow.schema(typed, metadata=note)


def _arrow_type(feature: Any, json_type: Any) -> Any:
    pyarrow: Any = import_module("pyarrow")
    kind = feature.get("_type")
    if kind == "Value":
        return pyarrow.type_for_alias(feature["dtype"])
    if kind == "List":
        return pyarrow.list_(_arrow_type(feature["feature"], json_type))
    if kind == "Image":
        return pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    if kind == "Json":
        return json_type
    return pyarrow.struct([(k, _arrow_type(v, json_type)) for k, v in feature.items()])
