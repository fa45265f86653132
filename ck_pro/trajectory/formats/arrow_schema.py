"""Column types of Parquet exports, and their Arrow schemas.

A schema's metadata has the types in the form of the `datasets` library (key "huggingface"), so that
images load as images and arguments of tool calls as objects.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

TEXT: Any = {"dtype": "string", "_type": "Value"}
JSON: Any = {"_type": "Json"}
IMAGES: Any = {"feature": {"_type": "Image"}, "_type": "List"}
BYTES: Any = {"dtype": "binary", "_type": "Value"}
NUMBER: Any = {"dtype": "float64", "_type": "Value"}
INTEGER: Any = {"dtype": "int64", "_type": "Value"}
BOOLEAN: Any = {"dtype": "bool", "_type": "Value"}
METADATA = {
    "task_id": TEXT,
    "try": INTEGER,
    "session": TEXT,
    "agent": TEXT,
    "agent_path": TEXT,
    "depth": INTEGER,
    "phase": TEXT,
    "step": INTEGER,
    "status": TEXT,
    "reward": NUMBER,
    "scored": BOOLEAN,
    "model": TEXT,
    "label": TEXT,
    "corrected": BOOLEAN,
}
"""Types of `Call.metadata`."""


def list_of(feature: Any) -> dict[str, Any]:
    """Return the type of a list."""
    return {"feature": feature, "_type": "List"}


def arrow_schemas(columns: dict[str, Any]) -> tuple[Any, Any]:
    """Return two `pyarrow.Schema`s for columns.

    Returns:
        The schema to build tables with, in which JSON is text; and the schema to write, with the
        metadata for `datasets`. Arrow can cast nested columns to its JSON type, but not build them.
    """
    pyarrow: Any = import_module("pyarrow")
    note = {"huggingface": json.dumps({"info": {"features": columns}})}
    plain = [(name, _arrow_type(f, pyarrow.string())) for name, f in columns.items()]
    typed = [(name, _arrow_type(f, pyarrow.json_())) for name, f in columns.items()]
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
