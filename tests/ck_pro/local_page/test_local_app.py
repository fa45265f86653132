"""The base of local pages, over real HTTP on loopback."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ck_pro.exceptions import ConfigError, InputError
from ck_pro.local_page import require_flask
from ck_pro.local_page.app import LocalApp, json_body, json_bytes, json_response

pytestmark = pytest.mark.integration


class Client:
    """A browser as far as the server sees it."""

    def __init__(self, app: LocalApp):
        self.app = app
        self.cookie = ""

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        **headers: str,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.app.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent["Cookie"] = self.cookie
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, data

    def enter(self) -> Client:
        status, headers, _ = self.ask("/?token=" + self.app.url.partition("token=")[2])
        assert status == 200
        self.cookie = headers["set-cookie"].split(";")[0]
        return self


@pytest.fixture
def app(tmp_path: Path) -> Iterator[LocalApp]:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<!doctype html>the page")
    (tmp_path / "page" / "a.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    made = LocalApp(tmp_path / "page", on_error=lambda error: "the log is in /log")

    def echo() -> Any:
        return json_response(json_body())

    def wrong() -> Any:
        raise InputError("the run is missing")

    def broken() -> Any:
        raise RuntimeError("bug")

    made.flask.add_url_rule("/api/echo", "echo", echo, methods=["POST"])
    made.flask.add_url_rule("/api/wrong", "wrong", wrong)
    made.flask.add_url_rule("/api/broken", "broken", broken)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(app: LocalApp) -> Client:
    return Client(app)


def test_without_the_key_nothing_is_served(client: Client) -> None:
    for path in ("/", "/page/a.js", "/static/enter.js", "/api/wrong", "/?token=", "/?token=x%ff"):
        status, headers, body = client.ask(path)
        assert status == 403
        assert b"the page" not in body
        assert "set-cookie" not in headers


def test_the_printed_address_sets_a_cookie_that_opens_the_page(client: Client) -> None:
    status, headers, body = client.ask("/" + client.app.url.partition("/?")[2].join(["?", ""]))
    assert (status, b"/static/enter.js" in body) == (200, True)
    assert re.search(r"HttpOnly.*SameSite=Strict", headers["set-cookie"])
    assert client.app.admission.token not in headers["set-cookie"]
    client.cookie = headers["set-cookie"].split(";")[0]
    assert client.ask("/")[2] == b"<!doctype html>the page"
    assert client.ask("/page/a.js")[0] == 200
    assert client.ask("/static/enter.js")[1]["content-type"].startswith("text/javascript")


def test_every_response_has_the_headers_that_make_content_inert(client: Client) -> None:
    refused = client.ask("/")
    client.enter()
    for status, headers, _ in (refused, client.ask("/"), client.ask("/api/none")):
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy, status
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil", "", "a:b:c"])
def test_a_foreign_host_name_is_refused_even_with_the_cookie(client: Client, host: str) -> None:
    client.enter()
    assert client.ask("/", Host=host)[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:80", "[::1]:9"])
def test_addresses_and_forwarded_ports_are_accepted(client: Client, host: str) -> None:
    assert client.enter().ask("/", Host=host)[0] == 200


def test_a_post_needs_the_header_and_a_json_object(client: Client) -> None:
    client.enter()
    assert client.ask("/api/echo", "POST", b'{"a": 1}')[0] == 403
    assert json.loads(client.ask("/api/echo", "POST", b'{"a": 1}', X_CK="1")[2]) == {"a": 1}
    for body in (b"", b"[1]", b"{", b"[" * 100_000, b"\xff"):
        status, _, answer = client.ask("/api/echo", "POST", body, X_CK="1")
        assert (status, json.loads(answer)) == (
            400,
            {"error": "the body of the request is not a JSON object"},
        )


def test_requests_that_a_page_of_another_origin_sends_are_refused(client: Client) -> None:
    client.enter()
    sent = {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"}
    assert client.ask("/page/a.js", **sent)[0] == 403
    assert client.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200


def test_errors_are_one_line_of_json(client: Client) -> None:
    client.enter()
    assert client.ask("/api/wrong")[::2] == (400, b'{"error":"the run is missing"}')
    status, _, body = client.ask("/api/broken")
    assert status == 500
    assert json.loads(body) == {"error": "internal error: RuntimeError: bug; the log is in /log"}
    assert client.ask("/api/none")[::2] == (404, b'{"error":"not found: /api/none"}')


@pytest.mark.parametrize(
    "path",
    [
        "/page/../secret.txt",
        "/page/%2e%2e/secret.txt",
        "/page/..%2fsecret.txt",
        "/page//etc/passwd",
    ],
)
def test_no_path_leaves_the_folder_of_the_page(client: Client, path: str) -> None:
    status, _, body = client.enter().ask(path)
    assert status in (308, 404)
    assert b"secret" not in body.replace(b"secret.txt", b"") and b"localhost" not in body


def test_two_servers_on_one_machine_have_different_cookies(client: Client, tmp_path: Path) -> None:
    other = LocalApp(tmp_path)
    try:
        assert other.admission.cookie != client.app.admission.cookie
        assert other.admission.token != client.app.admission.token
    finally:
        other.stop()


def test_a_port_in_use_gives_one_clear_line(app: LocalApp, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"cannot listen on 127.0.0.1:{app.port}: Address"):
        LocalApp(tmp_path, port=app.port)
    with pytest.raises(ConfigError, match=r"cannot listen on no\.such\.host\.invalid:0"):
        LocalApp(tmp_path, host="no.such.host.invalid")


def test_json_is_readable_for_browsers_whatever_it_contains() -> None:
    value = {"nan": math.nan, "list": [math.inf, "\ud800", "\U0001f600"], "tuple": (1,)}
    text = json_bytes(value).decode()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "nan": None,
        "list": [None, "\ud800", "\U0001f600"],
        "tuple": [1],
    }


def test_a_missing_flask_gives_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    require_flask("the viewer")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'the viewer needs Flask: pip install "ck-pro\[view\]"'):
        require_flask("the viewer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_blocking_server_cleanly(tmp_path: Path, number: int) -> None:
    code = (
        "import sys; from pathlib import Path; from ck_pro.local_page.app import LocalApp\n"
        "app = LocalApp(Path(sys.argv[1]))\n"
        "app.flask.add_url_rule('/api/wait', 'wait', lambda: str(app.ended.wait()))\n"
        "app.run(lambda: print(app.url, flush=True)); print('end')"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        assert (process.stdout.read(), process.stderr.read()) == ("end\n", "")
    assert process.returncode == 0
