"""The web agent with the real browser server and a real Chromium."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pages_site import Page, browser_settings, serve
from PIL import Image
from web_scripts import EMPTY_PLAN, code

from ck_pro.exceptions import BrowserServerError
from ck_pro.journal import Journal, read_events
from ck_pro.language import text_of
from ck_pro.model import CallContext
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent, WebEnv
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser

HOME = """<title>Shop</title><h1>Shop</h1>
<form action="/search"><label>Find <input name="q"></label><button>Go</button></form>
<label>Sort <select><option>Name</option><option>Price</option></select></label>
<a href="/prices.csv">Price list</a> <a href="/lamps" target="_blank">Lamps</a>
<button disabled>Buy</button>
<button onclick="this.insertAdjacentHTML('afterend', '<p>Thank you</p>')">Like</button>
<button onclick="alert('Not today')">Ask</button>
<div style="height: 3000px"></div><p>The end</p>"""


PRICES = Page(
    "item,price\nlamp,20\nbulb,3\n",
    headers={
        "Content-Type": "text/csv",
        "Content-Disposition": 'attachment; filename="price list.csv"',
    },
)


def _results(path: str) -> str:
    return f"<title>Results</title><p>You asked for {path.partition('q=')[2]}</p>"


PAGES = {
    "/": HOME,
    "/search": _results,
    "/prices.csv": PRICES,
    "/lamps": "<title>Lamps</title><h1>All lamps</h1>",
}


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    """Settings of a browser on a small web site; the module keeps its server."""
    with serve(PAGES) as url:
        yield browser_settings(target_url=f"{url}/")
        shared_servers.stop_servers()


def _id(page: str, element: str) -> int:
    found = re.search(rf"\[(\d+)\] {element}", page)
    assert found, f"no {element} on the page:\n{page}"
    return int(found[1])


def test_every_action_on_a_real_page(settings: dict[str, Any], tmp_path: Path) -> None:
    env = WebEnv(settings, workdir=tmp_path)
    page = env.observe().text
    assert page.splitlines()[1:3] == ["Tab 0 (current): Shop", "[1] RootWebArea 'Shop'"]

    assert "Thank you" in env.step_state(f"click [{_id(page, 'button .Like')}] Like")
    assert "value: Price" in env.step_state(f"select [{_id(page, 'combobox')}] price".title())
    assert "failed: " in env.step_state(f"click [{_id(page, 'button .Buy')}]")
    assert "failed: " in env.step_state("click [98765]")
    assert "Not today" in env.step_state(f"click [{_id(page, 'button .Ask')}]")

    line = env.step_state(f"click [{_id(page, 'link .Price list')}]")
    assert line.endswith("your code can open the download as 'downloads/price list.csv'")
    (name,) = env.get_state().downloaded_file_path
    assert (tmp_path / name).read_text().startswith("item,price\nlamp,20")

    assert "scrollbar" in env.step_state("scroll down")
    env.step_state("scroll up")
    field = _id(env.observe().text, "textbox")
    assert "value: two words" in env.step_state(f"type [{field}] two words[NOENTER]")
    assert "/search?q=desk+lamp ('Results')" in env.step_state(f"type [{field}] desk lamp")
    assert "You asked for" in env.observe().text
    assert "('Shop')" in env.step_state("goback")
    assert "('Lamps')" in env.step_state(f"click [{_id(env.observe().text, 'link .Lamps')}]")
    assert "Tab 1 (current): Lamps" in env.observe().text
    assert ": now there ('Results')" in env.step_state(f"goto {settings['target_url']}search?q=x")
    assert "not opened" in env.step_state("goto file:///etc/passwd")
    env.step_state("restart")
    assert "saved as 'page.png'" in env.step_state("screenshot 1 page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    assert env.observe().image.startswith("data:image/jpeg;base64,")
    env.close()


@pytest.mark.worker
def test_a_task_is_solved_in_a_real_browser(settings: dict[str, Any], tmp_path: Path) -> None:
    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        page = text_of(messages[-1]["content"])
        if context.phase == "plan":
            return code(EMPTY_PLAN)
        if context.step == 0:
            return code(f"click(id={_id(page, 'link .Price list')})")
        read = "import csv\nrows = list(csv.DictReader(open('downloads/price list.csv')))"
        return code(f"{read}\nstop(str(sum(int(r['price']) for r in rows)), 'added up')")

    agent = WebAgent(model=ScriptedLLM(answer), web_env=settings)
    session = agent.run("Add up the price list", workdir=tmp_path)
    assert session.final_results == {"output": "23", "log": "added up"}, session.to_dict()


@pytest.mark.worker
def test_the_journal_has_a_picture_of_each_action_with_its_target(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    def answer(messages: list[dict[str, Any]], context: CallContext) -> str:
        page = text_of(messages[-1]["content"])
        if context.step == 0:
            field, like = _id(page, "textbox .Find"), _id(page, "button .Like")
            return code(f"click({like})\ntype({field}, 'lamp')")
        return code("stop('done')")

    agent = WebAgent(
        model=ScriptedLLM(answer), web_env={**settings, "step_pictures": True}, planning="off"
    )
    with Journal(tmp_path / "journal") as journal:
        agent.run("Find lamps", workdir=tmp_path / "work", journal=journal)
    events = read_events(tmp_path / "journal")
    shown, like, field, results = (e["data"] for e in events if e["kind"] == "picture")
    for picture in (shown, like, field, results):
        image = Image.open(BytesIO(b64decode(picture["image"].partition(",")[2])))
        assert (image.format, image.size) == ("WEBP", (720, 405))
    assert like["targets"][0] in shown["elements"].values()
    (x, y, width, height), *more = field["targets"]
    assert not more and 0 < x < 1280 and 0 < y < 720 and width > 50 and height > 10
    assert like["image"] == shown["image"] != field["image"] != results["image"]
    assert results["url"].endswith("/search?q=lamp") and "call" not in results


def test_runs_share_one_server_and_its_exit_is_reported(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    a, b = (WebEnv({**settings, "max_browsers": 2}, workdir=tmp_path) for _ in range(2))
    assert a.sandbox and b.sandbox and a.sandbox.url == b.sandbox.url
    assert a.sandbox.id != b.sandbox.id
    server = a._browser.lease.server
    assert server is b._browser.lease.server and server is not None
    server.stop()
    with pytest.raises(BrowserServerError, match="the browser server exited"):
        a.observe()
    a.close()
    b.close()
    c = WebEnv({**settings, "max_browsers": 2}, workdir=tmp_path)
    assert c.observe().text
    c.close()


def test_a_missing_chromium_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BrowserServerError, match=r"did not start: .*/no/chromium") as e:
        WebEnv({"chromium": "/no/chromium"}, workdir=tmp_path)
    assert "\n" not in str(e.value)
