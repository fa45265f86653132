"""The log file of a run: warnings and errors in full, with secrets masked."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ck_pro.journal import MASK, secrets_of_environment

LOG_NAME = "run.log"
EVENTS_LOGGER = "ck_main.events"
"""Logger for task events; the `facts` of its records go into the JSON log."""
_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"


class MaskingFormatter(logging.Formatter):
    """Format records and tracebacks with the environment's secrets masked."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_all(super().format(record))


def mask_all(text: str, written: Callable[[str], str] = str) -> str:
    """Mask the environment's secrets in `text`, in the form that `written` encodes them."""
    for secret in sorted(secrets_of_environment(), key=len, reverse=True):
        text = text.replace(written(secret), MASK)
    return text


class JsonLines(MaskingFormatter):
    """Format each record as one JSON object with secrets masked.

    Fields: `time` (Unix seconds), `level`, `thread`, `logger`, `message`, `error` (a traceback),
    and the record's `facts`.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": record.created, "level": record.levelname}
        line.update(thread=record.threadName, logger=record.name, message=record.getMessage())
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        line = {**getattr(record, "facts", {}), **line}
        text = json.dumps(line, default=str, ensure_ascii=False)
        return mask_all(text, lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1])


class _LogFile(logging.FileHandler):
    """A log file whose write errors do not stop the run; the row file reports a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the record."""

    def close(self) -> None:
        """Close the file, even if the last records cannot be written."""
        with suppress(OSError):
            super().close()


@contextmanager
def logging_to(path: Path, *, json_lines: bool = False) -> Iterator[None]:
    """Within this context, write warnings to a file instead of the screen.

    The first record creates the file.

    Args:
        path: the file.
        json_lines: write JSON lines to `<path>.jsonl`, including the task events.
    """
    if json_lines:
        path = path.with_name(path.name + ".jsonl")
    handler = _LogFile(path, encoding="utf-8", errors="replace", delay=True)
    handler.setFormatter(JsonLines() if json_lines else MaskingFormatter(_FORMAT))
    handler.addFilter(lambda r: r.levelno >= logging.WARNING or r.name == EVENTS_LOGGER)
    root, events = logging.getLogger(), logging.getLogger(EVENTS_LOGGER)
    before = events.level
    if json_lines:
        events.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        events.setLevel(before)
        handler.close()
