"""Generated pages for the benchmarks of the browser server, and a server for them on loopback.

Each interactive element has a unique name (`interactive`), so that the elements in an observation
can be counted. Each page has a button `Count` that changes a number.
"""

from __future__ import annotations

import http.server

from loopback_site import LoopbackSite

_HEAD = """<!doctype html><title>{}</title><button id="b" onclick="
document.getElementById('o').textContent=++n">Count</button><p id="o">0</p><script>n=0</script>"""
_PARTS, _ROWS = 95, 1667


def _article() -> str:
    def line(part: int, i: int) -> str:
        words = f"Line {i} of part {part} has <b>some</b> <i>more</i> <em>words</em>"
        return f"<p>{words}{f' and <a href=#>link {part}-{i}</a>' if i % 2 else ''}.</p>"

    return "".join(
        f"<h2>Part {part}</h2>" + "".join(line(part, i) for i in range(8)) for part in range(_PARTS)
    )


def _table() -> str:
    rows = (
        f"<tr><td>{i}</td><td>name {i}</td><td><a href=#>open {i}</a></td><td>{i * 7}</td></tr>"
        for i in range(_ROWS)
    )
    return f"<table>{''.join(rows)}</table>"


def _form() -> str:
    fields = "".join(f"<p><label>Field {i} <input name=field-{i}></label></p>" for i in range(10))
    boxes = "".join(f"<label><input type=checkbox name=box-{i}>Box {i}</label> " for i in range(4))
    radios = "".join(
        f"<label><input type=radio name=radio value={i}>Radio {i}</label> " for i in range(4)
    )
    lists = "".join(
        f"<p><label>List {i} <select name=list-{i}><option>one<option>two</select></label></p>"
        for i in range(3)
    )
    ends = (
        "<button type=button>Save</button> <button type=button>Cancel</button> <a href=#>Help</a>"
    )
    return f"<form>{fields}<p>{boxes}</p><p>{radios}</p>{lists}<p>{ends}</p></form>"


PAGES = {
    "tiny": _HEAD.format("Tiny"),
    "form": _HEAD.format("Form") + _form(),
    "article": _HEAD.format("Article") + _article(),
    "table": _HEAD.format("Table") + _table(),
}
"""Name -> HTML: a button, a form of 25 elements, 3,500 elements of text, a table of 10,000."""


def interactive(page: str) -> list[str]:
    """Return the names of all interactive elements of a page, in order."""
    if page == "form":
        names = [f"Field {i}" for i in range(10)] + [f"Box {i}" for i in range(4)]
        names += [f"Radio {i}" for i in range(4)] + [f"List {i}" for i in range(3)]
        return ["Count", *names, "Save", "Cancel", "Help"]
    if page == "article":
        return ["Count", *(f"link {p}-{i}" for p in range(_PARTS) for i in range(1, 8, 2))]
    if page == "table":
        return ["Count", *(f"open {i}" for i in range(_ROWS))]
    return ["Count"]


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path.strip("/"), "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Site(LoopbackSite):
    """A server for the pages on a free port of loopback, as a context manager."""

    def __init__(self) -> None:
        super().__init__(_Handler)

    def url(self, page: str) -> str:
        """Return the URL of a page."""
        return f"http://{self.host}/{page}"
