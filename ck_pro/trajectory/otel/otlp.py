"""Encode spans as OTLP JSON, without a package of OpenTelemetry.

See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: ids are hexadecimal, and
64-bit numbers are strings. Ids are hashes of the run's id, so a second export gives the same spans.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ck_pro.trajectory.otel.span_attributes import Attributes
from ck_pro.trajectory.otel.span_maker import Kind
from ck_pro.version import __version__

_KINDS = {"internal": 1, "client": 3}
_ERROR = 2


class JsonEmitter:
    """Collects the spans of one run.

    Args:
        run: id of the run; the trace id is a hash of it.
    """

    def __init__(self, run: str):
        self._trace_id = _digest(f"trace {run}", 32)
        self._run = run
        self.spans: list[dict[str, Any]] = []
        """All spans in order of their start."""

    def start(self, name: str, kind: Kind, parent: Any, start: int, attributes: Attributes) -> Any:
        """See `Emitter`."""
        span: dict[str, Any] = {
            "traceId": self._trace_id,
            "spanId": _digest(f"span {self._run} {len(self.spans)}", 16),
            "name": name,
            "kind": _KINDS[kind],
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start),
            "attributes": attributes_of(attributes),
        }
        if parent is not None:
            span["parentSpanId"] = parent["spanId"]
        self.spans.append(span)
        return span

    def end(self, span: Any, end: int, attributes: Attributes, error: str) -> None:
        """See `Emitter`."""
        span["endTimeUnixNano"] = str(end)
        span["attributes"] += attributes_of(attributes)
        if error:
            span["attributes"] += attributes_of({"error.type": error})
            span["status"] = {"code": _ERROR}


def traces_data(spans: list[dict[str, Any]], service: str) -> dict[str, Any]:
    """Return spans as the body of a request, or a line of a file.

    Args:
        spans: spans of a `JsonEmitter`.
        service: the resource's `service.name`.
    """
    scope = {"name": "ck_pro", "version": __version__}
    resource = {"attributes": attributes_of({"service.name": service})}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }


def attributes_of(values: Attributes) -> list[dict[str, Any]]:
    """Return attributes as key-value pairs with typed values."""
    return [{"key": k, "value": _value(v)} for k, v in values.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(v) for v in value]}}
    return {"stringValue": str(value)}


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
