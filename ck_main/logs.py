"""The log file of a run: warnings and errors in full, with secrets masked."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ck_pro.journal import MASK, secrets_of_environment

LOG_NAME = "run.log"
_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"


class MaskingFormatter(logging.Formatter):
    """Formats records, tracebacks included, with the environment's secrets taken out."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        for secret in sorted(secrets_of_environment(), key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """While it is entered, warnings go to a file, made at the first one, and not to the screen."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(MaskingFormatter(_FORMAT))
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
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
