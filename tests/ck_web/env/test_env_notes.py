"""Screenshots, cookie banners, obstacles and suspension of a `WebEnv`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import web_env

from ck_web.env import Pictures, WebEnv
from web_server.contract import FEATURES

pytestmark = pytest.mark.integration


BIG_PICTURE = {"3": {"role": "Canvas", "box": "0,0,1200,700"}}


def _sees(env: WebEnv) -> bool:
    return bool(env.observe().image)


def test_screenshots_follow_the_pictures_setting(wire: FakeWire, tmp_path: Path) -> None:
    def env(pictures: Pictures) -> WebEnv:
        settings = {"server_url": wire.url}
        return WebEnv(settings, workdir=tmp_path, target_url=SHOP, pictures=pictures)

    off, asked, auto, on = (env(p) for p in get_args(Pictures))
    assert [_sees(e) for e in (off, asked, auto, on)] == [False, False, False, True]
    assert wire.requests[-1][1]["imageFormat"] == "jpeg"
    wire.elements = BIG_PICTURE
    assert [_sees(e) for e in (off, asked, auto, on)] == [False, False, True, True]
    wire.elements = {}
    for e in (off, asked, auto):
        said = e.step_state("screenshot 1")
        assert ("no screenshots" in said) is (e is off)
    assert [_sees(e) for e in (off, asked, auto)] == [False, True, True]
    asked.step_state("click [5]")
    acted = wire.acted
    assert acted[-1]["screenshot"] == "none", "one screenshot per step is enough"
    for e in (off, on, asked, auto):
        e.close()


def test_actions_without_effect_cause_a_screenshot_and_a_note(
    wire: FakeWire, tmp_path: Path
) -> None:
    settings = {"server_url": wire.url}
    env = WebEnv(settings, workdir=tmp_path, target_url=SHOP, pictures="auto")
    for _ in range(2):
        env.step_state("scroll down")
    env.step_state("wait")
    assert "changed nothing" not in env.observe().text
    wire.browsers["b1"]["events"].append("something happened")
    env.step_state("scroll down")
    for _ in range(3):
        assert not _sees(env)
        env.step_state("click [99]")
    seen = env.observe()
    assert seen.image and "Note: the last 3 actions changed nothing on the page" in seen.text
    env.step_state("type [4] x")
    assert not _sees(env)
    env.close()


BANNER = [
    "[1] RootWebArea 'Shop'",
    "[2] StaticText 'top'",
    "\t[3] link 'Lamps'",
    "\t[6] dialog 'Cookies'",
    "\t\t[7] StaticText 'We use cookies'",
    "\t\t[8] button 'Reject all'",
]


def test_a_cookie_banner_is_answered_when_it_appears(wire: FakeWire, tmp_path: Path) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    wire.removes["8"] = 2
    env = web_env(wire, tmp_path)
    text = env.observe().text
    assert "[8]" not in text and "Note: a cookie banner was answered with button 'Reject" in text
    assert "banner" not in env.observe().text
    wire.pages["http://shop.test/lamps"] = ("Lamps", BANNER)
    line = env.step_state("click [3]")
    assert line.endswith("; a cookie banner was answered with button 'Reject all'")
    env.close()


def test_a_banner_that_returns_is_only_reported(wire: FakeWire, tmp_path: Path) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    env = web_env(wire, tmp_path)
    for _ in range(3):
        env.step_state("goto http://shop.test/lamps")
        env.step_state("goback")
    clicks = [b for b in wire.acted if b["actionName"] == "click"]
    assert len(clicks) == 2
    assert "Note: the page shows a cookie banner; answer it with [8] button 'Reject all'" in (
        env.observe().text
    )
    env.close()


def test_a_banner_that_the_model_opened_is_left_to_it(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.pages[SHOP] = ("Shop", BANNER)
    assert "[6] dialog 'Cookies'" in env.step_state("scroll down")
    assert wire.count("performAction") == 1
    env.close()


def test_a_banner_that_appears_late_is_answered(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    wire.pages[SHOP] = ("Shop", BANNER)
    wire.removes["8"] = 2
    text = env.observe().text
    assert "[8]" not in text and "Note: a cookie banner was answered with button 'Reject" in text
    env.close()


@pytest.mark.parametrize("setting", ["report", "off"])
def test_banners_can_be_reported_or_ignored(wire: FakeWire, tmp_path: Path, setting: str) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    env = web_env(wire, tmp_path, cookie_banners=setting)
    assert ("shows a cookie banner" in env.observe().text) is (setting == "report")
    assert wire.count("performAction") == 0
    env.close()


def test_a_login_page_is_noted(wire: FakeWire, tmp_path: Path) -> None:
    lines = ["[1] RootWebArea 'Sign in'", "\t[3] textbox 'Password'"]
    wire.pages[SHOP] = ("Sign in", lines)
    env = web_env(wire, tmp_path)
    assert "Note: the page asks for a login" in env.observe().text
    env.close()


def test_a_suspended_browser_is_used_again(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    left = env.suspend()
    where = {"server": wire.url, "browserId": "b1", "pageId": "0", "downloads": {}}
    rules = {"rules": {"allow": [], "block": []}}
    assert left == {**where, "url": SHOP, "features": sorted(FEATURES), **rules}
    assert wire.browsers["b1"]["parked"] is True
    assert env.suspend() is None and list(wire.browsers) == ["b1"]
    other = WebEnv({"server_url": wire.url}, workdir=tmp_path, suspended={**left, "server": "x"})
    assert other.get_state().browser_id == "b2"
    same = WebEnv(
        {"server_url": wire.url}, workdir=tmp_path, suspended=left, last_url="http://x.test/"
    )
    assert same.get_state().step_url == SHOP
    other.close()
    same.close()
    assert not wire.browsers
