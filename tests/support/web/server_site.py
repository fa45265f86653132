"""A small web site on loopback for the tests of the browser server."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class ByPath(dict[str, T]):
    """What the site has by path. A path belongs to the file that set it first.

    All files use one site: a file that changed a page of another one would fail its tests, but
    only if both run in the same process, in this order.

    Raises:
        ValueError: another file has set the path.
    """

    def __init__(self, given: dict[str, T]) -> None:
        super().__init__(given)
        self._owners = dict.fromkeys(given, __file__)

    def __setitem__(self, path: str, value: T) -> None:
        file = sys._getframe(1).f_code.co_filename
        owner = self._owners.setdefault(path, file)
        if owner != file:
            raise ValueError(f"{path} belongs to {owner}: choose another path")
        super().__setitem__(path, value)


_PAGES = {
    "/": """<title>Home</title><h1>Home</h1>
        <a href="/two">To two</a> <a href="/two" target="_blank">Blank two</a>
        <a href="/missing">Broken</a> <a href="/file">Get file</a>
        <button onclick="document.getElementById('out').textContent='pressed '+(++n)">Press</button>
        <p id="out">nothing</p><script>let n=0</script>""",
    "/two": """<title>Two</title><h1>Second page</h1><a href="/">Home again</a>
        <button onclick="window.close()">Close me</button>""",
    "/form": """<title>Form</title><form action="/sent"><label>Name <input name="name"
        value="old"></label><label>Notes <textarea name="notes"></textarea></label>
        <label>Colour <select name="colour"><option value="r">Red</option>
        <option value="g">Green</option><option disabled>Blue</option></select></label>
        <label><input type="checkbox" name="ok"> Agree</label>
        <label>Day <input type="date" name="day"></label>
        <input type="file" name="f" aria-label="Document">
        <div contenteditable aria-label="Rich" role="textbox">some text</div>
        <button>Send</button><button disabled>Never</button></form>""",
    "/drop": """<title>Drop</title><h1>Nothing here</h1><div><input type="file" hidden id="file"
        onchange="out.textContent='chosen '+this.files[0].name">
        <button onclick="file.click()">Choose</button></div><div id="zone" style="padding:20px"
        ondragover="event.preventDefault()" ondrop="event.preventDefault();
        event.dataTransfer.files[0].text().then(t => { out.textContent = 'dropped ' + t })">Drop
        files here</div><p id="out"></p>""",
    "/onload": """<title>Onload</title><h1>Soon</h1><img src="/pixel?late" alt=""><script>
        onload = () => { document.body.innerHTML = '<button>START</button>' }</script>""",
    "/copy": """<title>Copy</title><label>From <input value="old"></label>
        <div id="rich" contenteditable role="textbox" aria-label="Rich">plain <b>bold</b></div>
        <label>To <textarea oninput="said.textContent = 'got ' + this.value"></textarea></label>
        <button onclick="document.querySelector('input').select(); document.execCommand('copy')">
        Copy it</button><button onclick="said.textContent = rich.innerHTML">Tell</button>
        <button onclick="said.textContent = 'mouse: ' + matchMedia('(hover: hover)').matches">
        Pointer</button>
        <p id="said"></p>""",
    "/label-cover": """<title>Cover</title><h1>C</h1><button>Below</button><div role="dialog"
        aria-label="Letter" style="position:fixed;inset:0;background:#fff"><label>Mail <input>
        </label></div>""",
    "/leave": """<title>Leave</title><button onclick="onbeforeunload = e => e.preventDefault()">
        Arm</button><a href="/two">Leave</a>""",
    "/upload": """<title>Upload</title><input type="file" multiple aria-label="Files" onchange="
        out.textContent = [...files].map(f => `${f.name} ${f.size} ${f.type}`).join(', ')">
        <button onclick="const f = document.querySelector('input').files[1];
        f.slice(-3).text().then(t => { out.textContent = 'ends in ' + t })">Read</button>
        <p id="out"></p>""",
    "/cover": """<title>Cover</title><button style="position:absolute;left:50px;top:80px"
        onclick="document.title='wrong'">Below</button>
        <div role="dialog" aria-label="Cookies" style="position:absolute;left:0;top:0;width:600px;
        height:400px;background:#fff">Cookies? <button onclick="this.parentElement.remove()">No
        </button></div>""",
    "/long": """<title>Long</title>"""
    + "".join(f"<p>line {i}</p>" for i in range(300))
    + """<button onclick="document.title='hit'">Bottom</button>""",
    "/late": """<title>Late</title><button onclick="setTimeout(()=>{out.textContent='timer'},300)">
        Timer</button><button onclick="fetch('/slow').then(r=>r.text()).then(t=>{
        out.textContent='got '+t})">Fetch</button><p id="out">empty</p>""",
    "/restless": """<title>Restless</title><p id="tick">0</p><button onclick="
        document.getElementById('out').textContent='pressed'">Press</button><p id="out">empty</p>
        <script>let i=0;(function f(){tick.textContent=++i;requestAnimationFrame(f)})();
        setInterval(()=>fetch('/poll'),50)</script>""",
    "/dialogs": """<title>Dialogs</title><button onclick="alert('hello')">Alert</button>
        <button onclick="out.textContent=confirm('sure?')">Confirm</button>
        <button onclick="out.textContent=prompt('who?','me')">Prompt</button>
        <button onclick="while(true)alert('again')">Forever</button><p id="out">empty</p>""",
    "/busy": """<title>Busy</title><button onclick="while(true){}">Loop</button>""",
    "/popups": """<title>Popups</title><button onclick="for(let i=0;i<100;i++)
        window.open('/two')">Many
        </button><button onclick="window.open('/two')">One</button>""",
    "/opens-file": """<title>Opens</title><button onclick="window.open('/file')">Open</button>""",
    "/storage": """<title>Storage</title><button onclick="localStorage.k='kept';
        sessionStorage.s='too';document.cookie='c=1'">Save</button><p id="out"></p><script>
        out.textContent=`local ${localStorage.k} session ${sessionStorage.s} ${document.cookie}`
        </script>""",
    "/where": """<title>Where</title><p id="out">asking</p><script>
        navigator.geolocation.getCurrentPosition(({coords}) => {
        out.textContent = innerWidth + ' ' + coords.latitude })</script>""",
    "/private": """<title>Private</title><p id="out">trying</p><script>
        fetch('http://127.0.0.1:1/').then(()=>out.textContent='reached',
        ()=>out.textContent='refused')</script><iframe src="http://10.0.0.1/"></iframe>
        <iframe src="file:///etc/passwd"></iframe>""",
    "/keys": """<title>Keys</title><input aria-label="Field" onkeydown="
        out.textContent+=' '+(event.ctrlKey?'ctrl+':'')+event.key"><p id="out"></p>""",
    "/drag": """<title>Drag</title><div id="a" draggable="true" aria-label="Card" role="button"
        style="width:80px;height:40px;background:#ccc"
        ondragstart="event.dataTransfer.setData('text','card')">Card</div><div role="button"
        aria-label="Bin" style="margin-top:80px;width:200px;height:100px;background:#eee"
        ondragover="event.preventDefault()" ondrop="event.preventDefault();
        this.setAttribute('aria-label','Bin with '+event.dataTransfer.getData('text'))">Bin
        </div>""",
    "/menu": """<title>Menu</title><div role="combobox" aria-label="Fruit" tabindex="0"
        aria-expanded="false" onclick="list.hidden=false;this.setAttribute('aria-expanded',true)">
        pick</div><ul id="list" role="listbox" hidden><li role="option" onclick="
        document.title='Apple'">Apple</li><li role="option" onclick="document.title='Pear'">Pear
        </li></ul>""",
}


PAGES = ByPath(_PAGES)

PICTURE = b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'></svg>"

CALLBACKS = ByPath[Callable[[], object]]({})
"""Callbacks that run before the response, by path."""

_BOXED = b"<title>Boxed</title><p>no scripts</p><a href=/two>To two</a>"
_HEADERS = {"Content_Security_Policy": "default-src 'none'; sandbox"}
ANSWERS = ByPath({"/sandboxed": ("text/html", _BOXED, _HEADERS)})
"""Responses other than HTML, or with headers: type, body, headers (`_` stands for `-`)."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        CALLBACKS.get(path, bool)()
        if path == "/slow":
            time.sleep(0.7)
            self._send(200, "text/plain", b"slow answer")
        elif path == "/never":
            self.connection.recv(1)  # until the client disconnects
            self.close_connection = True
        elif path == "/nothing":
            self.send_response(204)
            self.end_headers()
        elif path == "/empty-error":
            self._send(500, "text/html", b"")
        elif path in ("/file", "/slow-file"):
            if path == "/slow-file":
                time.sleep(1.5)
            self._send(200, "text/csv", b"a,b\n1,2\n", 'attachment; filename="../data.csv"')
        elif path == "/received":  # returns what the browser sent
            received = {"cookie": self.headers["Cookie"], "referer": self.headers["Referer"]}
            self._send(200, "application/json", json.dumps(received).encode())
        elif path == "/endless-inline":
            self._send_endless("text/plain", "")
        elif path == "/huge":
            self._send_endless()
        elif path == "/sent":
            self._send(200, "text/html", f"<title>Sent</title><p>{self.path}</p>".encode())
        elif path == "/pixel":
            if self.path.endswith("late"):
                time.sleep(0.3)
            self._send(200, "image/svg+xml", PICTURE)
        elif path == "/sw.js":
            code = (
                "onmessage = (e) => fetch(e.data, {mode: 'no-cors'}).then("
                "() => e.ports[0].postMessage(1), () => e.ports[0].postMessage(0))"
            )
            self._send(200, "text/javascript", code.encode())
        elif path == "/redirect":
            self.send_response(302)
            self.send_header("Location", urllib.parse.unquote(self.path.split("to=")[1]))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path == "/redirect-private":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/secret")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path in ANSWERS:
            kind, body, headers = ANSWERS[path]
            self._send(200, kind, body, **headers)
        elif path in PAGES:
            self._send(200, "text/html; charset=utf-8", PAGES[path].encode())
        elif path == "/poll":
            self._send(200, "text/plain", b"x")
        else:
            self._send(404, "text/html", b"<title>Gone</title><h1>Not here</h1>")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        received = {
            "method": self.command,
            "body": body,
            "mark": self.headers["X-Mark"],
            "origin": self.headers["Origin"],
        }
        self._send(200, "application/json", json.dumps(received).encode())

    def _send(
        self, status: int, kind: str, body: bytes, disposition: str = "", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if disposition:
            self.send_header("Content-Disposition", disposition)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _send_endless(
        self,
        kind: str = "application/octet-stream",
        disposition: str = "attachment; filename=huge.bin",
    ) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if disposition:
            self.send_header("Content-Disposition", disposition)
        self.send_header("Content-Length", str(10**10))
        self.end_headers()
        try:
            for _ in range(10**5):
                self.wfile.write(b"\0" * 100_000)
        except OSError:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


class Site(http.server.ThreadingHTTPServer):
    """The web site, on a separate thread."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until a condition holds, if the test process gets no event; returns whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
