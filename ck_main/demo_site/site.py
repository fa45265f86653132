"""The demo's web site over HTTP, on loopback.

```
with DemoSite() as site:
    requests.get(site.origin + "/about")
```

`python -m ck_main.demo_site --port 8000` serves it until Ctrl-C. The same request always gets the
same response. The workshop's list is slow on purpose.
"""

from __future__ import annotations

import json
import mimetypes
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import click

from ck_main.demo_site.data import CSV_FILES, ORDER_FIELDS, DemoData, QueryError
from ck_main.demo_site.http_server import Answer, Fields, SiteServer
from ck_main.demo_site.pages import DemoPages
from ck_pro.command_line import AnyPath, run_command
from ck_pro.exceptions import InputError

DEFAULT_ROOT = Path(__file__).resolve().parents[1] / "demo_data" / "site"
WORKSHOP_DELAY = 0.7
"""Seconds before the workshop's list is sent."""
_ASSET = re.compile(r"/assets/([a-z0-9-]+\.[a-z0-9]+)")


class DemoSite:
    """The demo's web site, served from threads of this process.

    Args:
        root: folder of the site; default: `ck_main/demo_data/site`.
        host: address to listen on.
        port: port; 0 means any free port.

    Raises:
        InputError: the folder does not contain the site.
    """

    def __init__(self, root: Path | None = None, host: str = "127.0.0.1", port: int = 0):
        self.root = root or DEFAULT_ROOT
        self.host = host
        self.port = port
        self.data = DemoData(self.root)
        self.pages = DemoPages(self.data, self.root)
        self._server: SiteServer | None = None
        self._thread: threading.Thread | None = None
        self._gets: dict[str, Callable[[Fields], Answer]] = {
            "/compare": self._compare,
            "/order": self._order_form,
            "/order/confirmed": self._confirmed,
            "/api/products": self._search,
            "/api/workshop": self._workshop,
            "/frames/certificate": self._certificate,
            "/old-shop": lambda query: _redirect("/catalogue", 301),
        }
        self._posts: dict[str, Callable[[Fields], Answer]] = {
            "/order": self._place_order,
            "/api/trade-code": self._trade_code,
        }

    @property
    def origin(self) -> str:
        """`http://host:port` of the running site; RuntimeError if the site is not running."""
        if self._server is None:
            raise RuntimeError("the demo's web site is not running: call start() first")
        return f"http://{self.host}:{self._server.server_address[1]}"

    def start(self) -> DemoSite:
        """Start to serve in a thread, unless the site is already running.

        Raises:
            InputError: the address is not available.
        """
        if self._server is None:
            try:
                server = SiteServer((self.host, self.port), self.answer)
            except OSError as error:
                where = f"{self.host}:{self.port}"
                raise InputError(
                    f"the demo's web site cannot listen on {where} ({error.strerror}); "
                    "choose another --port, or 0 for any free port"
                ) from error
            self._server = server
            self._thread = threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
            )
            self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and all connections, and wait for the threads; idempotent."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.stopping.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def __enter__(self) -> DemoSite:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def answer(self, method: str, path: str, fields: Fields) -> Answer:
        """Return the response to a request.

        Args:
            method: "GET" or "POST".
            path: path of the URL, without the query.
            fields: values of the query (GET) or of the posted form (POST).
        """
        if method == "POST":
            if path in self._posts:
                return self._posts[path](fields)
            known = self._get(path, {}).status != 404
            return self._fault(405 if known else 404)
        return self._get(path, fields)

    def _get(self, path: str, query: Fields) -> Answer:
        if path in self._gets:
            return self._gets[path](query)
        if path.startswith("/archive/"):
            return self._fault(500)
        page: str | None
        if path.startswith("/products/"):
            page = self.pages.product_page(path.removeprefix("/products/"))
        elif path.startswith("/stations/"):
            page = self.pages.station_page(path.removeprefix("/stations/"))
        elif path.startswith("/downloads/"):
            return self._csv(path.removeprefix("/downloads/"))
        elif path.startswith("/assets/"):
            return self._asset(path)
        else:
            page = self.pages.static_page(path)
        return self._fault(404) if page is None else _html(page)

    def _fault(self, status: int) -> Answer:
        name = {404: "not-found", 405: "not-allowed", 500: "archive-fault"}[status]
        headers = {"Allow": "GET, HEAD"} if status == 405 else {}
        return _html(self.pages.page(f"templates/{name}"), status, headers)

    def _asset(self, path: str) -> Answer:
        match = _ASSET.fullmatch(path)
        file = self.root / "assets" / match[1] if match else None
        if file is None or not file.is_file():
            return self._fault(404)
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return Answer(200, file.read_bytes(), {"Content-Type": kind})

    def _csv(self, name: str) -> Answer:
        if name not in CSV_FILES:
            return self._fault(404)
        return Answer(
            200,
            self.data.csv_file(name).encode(),
            {
                "Content-Type": "text/csv; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{name}"',
            },
        )

    def _compare(self, query: Fields) -> Answer:
        return _html(self.pages.compare_page(query.get("a", ""), query.get("b", "")))

    def _certificate(self, query: Fields) -> Answer:
        return _html(self.pages.certificate_frame(query.get("ticket")))

    def _search(self, query: Fields) -> Answer:
        try:
            return _json(self.data.search_products(query))
        except QueryError as error:
            return _json({"error": str(error)}, 400)

    def _workshop(self, query: Fields) -> Answer:
        if self._server is not None:
            self._server.stopping.wait(WORKSHOP_DELAY)
        return _json(self.data.site["workshop"])

    def _trade_code(self, form: Fields) -> Answer:
        if form.get("confirmed") != "yes":
            return _json({"error": "confirm that you are a trade customer"}, 403)
        return _json(self.data.site["trade"])

    def _order_form(self, query: Fields) -> Answer:
        values = {"quantity": "1", "product": query.get("product", "")}
        return _html(self.pages.order_page(values, {}))

    def _place_order(self, form: Fields) -> Answer:
        order, errors = self.data.check_order(form)
        if errors:
            return _html(self.pages.order_page(form, errors), 422)
        return _redirect("/order/confirmed?" + urlencode({**order, "terms": "yes"}), 303)

    def _confirmed(self, query: Fields) -> Answer:
        order, errors = self.data.check_order(query)
        if errors or any(query.get(name, "") != order[name] for name in ORDER_FIELDS):
            return self._fault(404)
        return _html(self.pages.confirmed_page(order))


def _html(page: str, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    kind = {"Content-Type": "text/html; charset=utf-8"}
    return Answer(status, page.encode(), {**kind, **(headers or {})})


def _json(value: Any, status: int = 200) -> Answer:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, body, {"Content-Type": "application/json; charset=utf-8"})


def _redirect(location: str, status: int) -> Answer:
    return Answer(status, b"", {"Location": location})


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port; 0: any free port.")
@click.option("--root", type=AnyPath(), help="Folder of the site.  [the site of the demo]")
def cli(host: str, port: int, root: Path | None) -> None:
    """Serve the demo's web site until Ctrl-C."""
    try:
        with DemoSite(root, host, port) as site:
            click.echo(f"listening on {site.origin}")
            threading.Event().wait()
    except KeyboardInterrupt:
        pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, arguments)
