"""What the server writes to standard error: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

FORMATS = ("text", "json")
FIELDS = "fields"
"""Key of `extra` under which a record carries what JSON lines show as fields of their own."""


class JsonLines(logging.Formatter):
    """One JSON object per record: time (UTC, RFC 3339), level, message, and the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
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
    """Send all records to standard error.

    Args:
        form: one of `FORMATS`.
        verbose: also records of single requests and leases.
    """
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
