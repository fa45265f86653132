"""A client of the viewer's server, as the page is."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of


class ViewerClient:
    """A viewer of some runs, and requests to it.

    Args:
        runs: outputs and folders.
        cache: folder of the index.
    """

    def __init__(self, *runs: Path, cache: Path):
        self.library = Library(sources_of(runs))
        self.app = create_app(self.library, cache=cache)
        self.app.start()
        headers = self.ask("/?" + self.app.url.partition("?")[2])[1]
        self.cookie = headers["set-cookie"].split(";")[0]

    cookie = ""

    def ask(self, path: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.app.port, timeout=60)
        with closing(connection):
            connection.request("GET", path, headers={"Cookie": self.cookie})
            response = connection.getresponse()
            body = response.read()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, body

    def get(self, path: str, status: int = 200) -> Any:
        """Return the JSON at a path below `/api/`."""
        found, _, body = self.ask(f"/api/{path}")
        assert found == status, body
        return json.loads(body, parse_constant=lambda name: 1 / 0)

    def rows(self) -> list[dict[str, Any]]:
        """Return the table."""
        table = self.get("runs")
        return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]

    def until(self, good: Any, version: int = 0) -> Any:
        """Wait for a change of the table until `good(rows)`; return the rows."""
        rows = self.rows()
        while not good(rows):
            version = self.get(f"changes?since={version}")["version"]
            rows = self.rows()
        return rows

    def read(self) -> list[dict[str, Any]]:
        """Wait until all runs are read, also their texts for the search; return the rows."""
        rows = self.until(lambda rows: rows and all(map(_is_read, rows)))
        while self.get("info")["indexing"] is not None:
            self.get("info")
        return rows

    def search(self, text: str, key: str = "") -> list[dict[str, Any]]:
        return self.get(f"search?q={quote(text)}&key={key}")["hits"]

    def stop(self) -> None:
        if not self.app.ended.is_set():
            assert self.failures() == []
        self.app.stop()

    def failures(self) -> list[str]:
        """Return internal errors of the server."""
        return [p for p in self.get("info")["problems"] if "internal error" in p]


def _is_read(row: dict[str, Any]) -> bool:
    return row["steps"] is not None or row["problem"] is not None
