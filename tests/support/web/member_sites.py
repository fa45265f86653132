"""Sites behind a login, a model that asks a person at it, and the command that runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from paths import ROOT
from playwright.sync_api import Page, expect

from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.local_page.app import LocalApp
from ck_pro.testing import ChatCall

PASSWORD = "hunter2hunter2"
LOGIN = """<title>{0} login</title><h1>{0}</h1><form method="post" action="/login">
<label>Name <input name="user"></label>
<label>Password <input type="password" name="password"></label>
<button>Log in</button></form>"""


@contextmanager
def member_site(name: str, text: str) -> Iterator[str]:
    """Serve a page whose text only members see; yield its host and port.

    Args:
        name: of the site, in its titles.
        text: of the page.
    """

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            member = "member=yes" in (self.headers.get("Cookie") or "")
            page = f"<title>{name} account</title><p>{text}</p>"
            self._answer(page if member else LOGIN.format(name))

        def do_POST(self) -> None:
            sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            right = sent == {"user": ["ada"], "password": [PASSWORD]}
            self._answer("", location="/account", cookie="member=yes" if right else "")

        def _answer(self, page: str, location: str = "", cookie: str = "") -> None:
            self.send_response(303 if location else 200)
            if location:
                self.send_header("Location", location)
            if cookie:
                self.send_header("Set-Cookie", cookie)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def block(code: str) -> str:
    """Return a reply with code."""
    return f"So.\n```python\n{code}\n```"


def asks_the_bank(bank: str) -> str:
    """Return code that hands the task to a web agent."""
    return (
        f"r = web_agent('What is the balance?', 'http://{bank}/account')\n"
        "stop(r['output'], r['log'])"
    )


def member_model(main: str, at_login: Callable[[str], str]) -> Callable[[ChatCall], str]:
    """Return a model whose web agents find the number on a member's page.

    Args:
        main: code of the main agent.
        at_login: returns the reply of a web agent at a login, from its prompt.
    """

    def reply(call: ChatCall) -> str:
        text = json.dumps(call.messages)
        if "You are the web agent" not in text:
            return block(main)
        for found in ("crowns", "books"):
            if f" {found}." in text:
                pattern = rf"\d+ {found}"
                return block(f"import re\nstop(re.search(r'{pattern}', find('{found}'))[0], '')")
        return at_login(text)

    return reply


def _environ() -> dict[str, str]:
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return {**environ, "PYTHONPATH": str(ROOT)}


def started(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start the main command in a folder."""
    command = [sys.executable, "-m", "ck_main.main", "--plain", *args]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, env=_environ(), stdin=null, stderr=null)


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the main command in a folder to its end."""
    return subprocess.run(
        [sys.executable, "-m", "ck_main.main", "--plain", *args],
        cwd=folder,
        env=_environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
    )


@contextmanager
def viewing(*runs: Path) -> Iterator[LocalApp]:
    """Serve the viewer."""
    app = create_app(Library(sources_of(list(runs))))
    app.start()
    try:
        yield app
    finally:
        app.stop()


def log_in(page: Page, actions: int = 0) -> None:
    """Log in on the login page that take over shows.

    Args:
        page: the viewer.
        actions: how many actions the person did before.
    """
    picture = page.get_by_role("application")
    page.get_by_text("Elements (").click()
    done = page.locator(".done-list li")
    page.get_by_role("button", name="textbox 'Name'").click()
    expect(done).to_have_count(actions + 1)
    picture.focus()
    page.keyboard.type("ada")
    expect(done).to_have_count(actions + 2)
    page.get_by_role("button", name="textbox 'Password'").click()
    expect(done).to_have_count(actions + 3)
    picture.focus()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(done).to_have_count(actions + 4)
    expect(page.locator(".browser")).to_contain_text("account")


def answer_of(rows: Path) -> str:
    """Return the answer in the only row of a file."""
    (row,) = rows.read_text().splitlines()
    return str(json.loads(row)["eval"]["pred"])
