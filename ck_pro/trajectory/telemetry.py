"""Live spans of runs, through OpenTelemetry's API, to whatever its SDK is set up to send them to.

    sink = SpanSink()
    with Journal("runs/one", listener=sink.take) as journal:
        agent.run(task, journal=journal)
    sink.close()

One sink per journal. `python -m ck_pro.trajectory.spans` makes the same spans of journals.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from ck_pro.exceptions import ConfigError
from ck_pro.trajectory.otel.span_attributes import Attributes
from ck_pro.trajectory.otel.span_maker import Kind, SpanMaker

_log = logging.getLogger(__name__)


class SpanSink:
    """A listener for a `Journal` that makes OpenTelemetry spans of what is journaled.

    Args:
        tracer: an `opentelemetry.trace.Tracer`; that of the global provider when None.
        texts: put prompts, replies, arguments and results into the spans.
        before: the events that the journal has already, when a run is resumed.

    Raises:
        ConfigError: opentelemetry-api is not installed.
    """

    def __init__(
        self,
        tracer: Any = None,
        *,
        texts: bool = False,
        before: Iterable[Mapping[str, Any]] = (),
    ):
        self._maker = SpanMaker(_TracerEmitter(tracer), texts=texts)
        self._maker.know(before)
        self._lock = threading.Lock()
        self._broken = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event as `Journal.append` returns it; from any thread."""
        with self._lock:
            if self._broken:
                return
            try:
                self._maker.take(event)
            except Exception:  # noqa: BLE001 - who only watches must not end a run
                _log.exception("the spans of this run failed and are not made any more")
                self._broken = True

    def close(self) -> None:
        """End the spans that are open still: those of a run that was cut off."""
        with self._lock:
            self._maker.close()


class _TracerEmitter:
    """Makes spans with a tracer, with the times that the events have."""

    def __init__(self, tracer: Any):
        try:
            self._trace = import_module("opentelemetry.trace")
        except ImportError:
            raise ConfigError(
                'spans need opentelemetry-api and -sdk: pip install "ck-pro[otel]"'
            ) from None
        self._tracer = tracer or self._trace.get_tracer("ck_pro")

    def start(self, name: str, kind: Kind, parent: Any, start: int, attributes: Attributes) -> Any:
        """See `Emitter`. A span without a parent is put under the caller's current one."""
        trace = self._trace
        kinds = {"internal": trace.SpanKind.INTERNAL, "client": trace.SpanKind.CLIENT}
        return self._tracer.start_span(
            name,
            context=None if parent is None else trace.set_span_in_context(parent),
            kind=kinds[kind],
            attributes=attributes,
            start_time=start,
        )

    def end(self, span: Any, end: int, attributes: Attributes, error: str) -> None:
        """See `Emitter`."""
        span.set_attributes(attributes)
        if error:
            span.set_attribute("error.type", error)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end(end_time=end)
