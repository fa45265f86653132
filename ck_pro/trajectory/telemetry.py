"""Live OpenTelemetry spans of a run, exported as the OpenTelemetry SDK is configured.

    sink = SpanSink()
    with Journal("runs/one", listener=sink.take) as journal:
        agent.run(task, journal=journal)
    sink.close()

Use one sink per journal. `python -m ck_pro.trajectory.spans` makes the same spans from journals.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ck_pro.events import JournalEvent
from ck_pro.exceptions import ConfigError
from ck_pro.trajectory.otel.span_attributes import Attributes
from ck_pro.trajectory.otel.span_maker import Kind, SpanMaker

_log = logging.getLogger(__name__)


class SpanSink:
    """A `Journal` listener that makes OpenTelemetry spans from the events.

    Args:
        tracer: an `opentelemetry.trace.Tracer`; None means the global provider's.
        texts: whether to put prompts, replies, arguments and results into the spans.
        before: for a resumed run, the events that are in the journal already.

    Raises:
        ConfigError: opentelemetry-api is not installed.
    """

    def __init__(
        self,
        tracer: Any = None,
        *,
        texts: bool = False,
        before: Iterable[JournalEvent] = (),
    ):
        self._maker = SpanMaker(_TracerEmitter(tracer), texts=texts)
        self._maker.add_previous(before)
        self._lock = threading.Lock()
        self._broken = False

    def take(self, event: JournalEvent) -> None:
        """Process an event as `Journal.append` returns it; thread-safe."""
        with self._lock:
            if self._broken:
                return
            try:
                self._maker.take(event)
            except Exception:  # noqa: BLE001 - an observer must not end a run
                _log.exception("making spans failed; no more spans for this run")
                self._broken = True

    def close(self) -> None:
        """End open spans, such as those of an interrupted run."""
        with self._lock:
            self._maker.close()


class _TracerEmitter:
    """Make spans with a tracer, at the times of the events."""

    def __init__(self, tracer: Any):
        try:
            self._trace = import_module("opentelemetry.trace")
        except ImportError:
            raise ConfigError(
                'spans need opentelemetry-api and -sdk: pip install "ck-pro[otel]"'
            ) from None
        self._tracer = tracer or self._trace.get_tracer("ck_pro")

    def start(self, name: str, kind: Kind, parent: Any, start: int, attributes: Attributes) -> Any:
        """See `Emitter`. A span without a parent becomes a child of the caller's current span."""

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
