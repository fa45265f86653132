"""The log on standard error: lines of text or JSON."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

FORMATS = ("text", "json")
FIELDS = "fields"
"""Key of `extra` with additional fields for JSON lines."""


class JsonLines(logging.Formatter):
    """Format a record as a JSON object: time (UTC, RFC 3339), level, message, other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(form: str, *, verbose: bool) -> None:
    """Log to standard error.

    Args:
        form: one of `FORMATS`.
        verbose: also log each request and lease.
    """
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
