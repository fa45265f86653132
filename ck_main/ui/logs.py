"""The log file of a run: warnings and errors in full, with secrets masked."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ck_pro.journal import MASK, secrets_of_environment

LOG_NAME = "run.log"
EVENTS_LOGGER = "ck_main.events"
"""Its records tell what happens to tasks; their `facts` are for the JSON form."""
_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"


class MaskingFormatter(logging.Formatter):
    """Formats records, tracebacks included, with the environment's secrets taken out."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_all(super().format(record))


def mask_all(text: str, written: Callable[[str], str] = str) -> str:
    """`text` without the secrets of the environment, in the form that `written` gives them."""
    for secret in sorted(secrets_of_environment(), key=len, reverse=True):
        text = text.replace(written(secret), MASK)
    return text


class JsonLines(MaskingFormatter):
    """One JSON object per record: `time` (Unix seconds), `level`, `thread`, `logger`, `message`,
    `error` (a traceback), and what a record has as its `facts`. Secrets are taken out."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": record.created, "level": record.levelname}
        line.update(thread=record.threadName, logger=record.name, message=record.getMessage())
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        line = {**getattr(record, "facts", {}), **line}
        text = json.dumps(line, default=str, ensure_ascii=False)
        return mask_all(text, lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1])


class _LogFile(logging.FileHandler):
    """A log file that never disturbs the run: of a full disk, who writes the rows tells."""

    def handleError(self, record: logging.LogRecord) -> None:
        """The record is lost."""

    def close(self) -> None:
        """Close it, whether or not the last records can be written."""
        with suppress(OSError):
            super().close()


@contextmanager
def logging_to(path: Path, *, json_lines: bool = False) -> Iterator[None]:
    """While it is entered, warnings go to a file, made at the first record, not to the screen.

    Args:
        path: the file.
        json_lines: the file is `<path>.jsonl`, and what happens to tasks goes there too.
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


def write_crash(error: BaseException) -> Path:
    """Write an error that nobody expected, with its traceback, to a new file; returns its path."""
    record = logging.LogRecord(__name__, logging.ERROR, "", 0, "unexpected error", None, None)
    record.exc_info = (type(error), error, error.__traceback__)
    with tempfile.NamedTemporaryFile(
        "w", prefix="ck-pro-error-", suffix=".log", delete=False, encoding="utf-8"
    ) as file:
        file.write(MaskingFormatter(_FORMAT).format(record) + "\n")
    return Path(file.name)
