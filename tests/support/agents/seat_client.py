"""A person at the seat of the model, over HTTP."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

SECONDS = 30.0


class SeatClient:
    """Requests of the seat's page.

    Args:
        url: the address with the key.
    """

    def __init__(self, url: str):
        self._place = urlsplit(url)
        self._cookie = ""
        status, headers, _ = self._request("GET", f"/?{self._place.query}")
        assert status == 200
        self._cookie = headers["set-cookie"].split(";")[0]

    def get(self, path: str) -> tuple[int, Any]:
        """Return the status and the JSON of a page's request."""
        status, _, data = self._request("GET", path)
        return status, json.loads(data)

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        """Send JSON as the page does."""
        status, _, data = self._request("POST", path, json.dumps(body).encode(), {"X-CK": "1"})
        return status, json.loads(data)

    def page(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of a file of the page."""
        return self._request("GET", path)

    def waiting(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the queue when it has so many calls."""
        version = -1
        while True:
            _, found = self.get(f"/api/queue?since={version}")
            if len(found["waiting"]) == count:
                return list(found["waiting"])
            version = found["version"]

    def _request(
        self, method: str, path: str, body: bytes | None = None, more: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(
            str(self._place.hostname), self._place.port or 0, timeout=SECONDS
        )
        headers = {**(more or {}), **({"Cookie": self._cookie} if self._cookie else {})}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, data


class Background:
    """A function in a thread, with its result or its error."""

    def __init__(self, function: Callable[[], Any]):
        self._function = function
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as e:  # noqa: BLE001 - raised again in `result`
            self._error = e

    def result(self) -> Any:
        """Return the function's value, or raise its error, when it has ended."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "it has not ended"
        if self._error is not None:
            raise self._error
        return self._value
