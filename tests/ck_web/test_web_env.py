"""`WebEnv` against a fake server: observing, acting, files, and every way it can go wrong."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import get_args

import pytest
from fake_wire import PNG, SHOP, FakeWire
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import BrowserAction, CodeAction, ErrorObservation
from ck_pro.exceptions import BrowserServerError, ToolError
from ck_web import downloads
from ck_web.env import Pictures, WebEnv
from ck_web.files import read_inside, safe_name, write_inside

pytestmark = pytest.mark.integration


def _env(wire: FakeWire, workdir: Path, url: str = SHOP, **settings: object) -> WebEnv:
    return WebEnv({"server_url": wire.url, **settings}, workdir=workdir, target_url=url)


def test_observe_and_act(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    seen = env.observe()
    assert seen.text.startswith("URL: http://shop.test/\nTab 0 (current): Shop\n[1] RootWebArea")
    assert env.step_state("click [3] Lamps") == (
        "click [3] link 'Lamps': now at http://shop.test/lamps ('Lamps'), "
        "whose elements you see next"
    )
    state = env.get_state()
    assert (state.curr_step, state.title, state.action_string) == (
        1,
        "Lamps",
        "click [3] link 'Lamps'",
    )
    assert env.step_state("goback").startswith("goback: now at http://shop.test/ ")
    line = env.step_state("type [4] lamp")
    assert line == (
        "type [4] textbox \"Search it's\" 'lamp': now on the page: "
        "[4] textbox 'Search it's' value: lamp"
    )
    assert wire.requests[-1][1]["needEnter"] is True
    assert wire.requests[-1][1]["targetElementName"] == "Search it's"
    assert env.step_state("scroll down") == "scroll down: done"
    env.step_state("wait 2")
    assert wire.requests[-1][1]["timeout"] == 2000
    env.step_state("goto localhost:81/x")
    assert wire.requests[-1][1]["actionValue"] == "http://localhost:81/x"
    env.close()
    env.close()
    assert not wire.browsers
    with pytest.raises(BrowserServerError, match="closed"):
        env.observe()


def test_what_happened_is_told_once(wire: FakeWire, tmp_path: Path) -> None:
    alert = "alert 'Hi' was accepted"
    wire.pages[SHOP] = ("Shop", [*wire.pages[SHOP][1], f"\t[0] alert '{alert}'"])
    replies = [f"clicked; {alert}", "clicked; nothing changed", "not opened"]
    wire.replies["click"] = deque(replies)
    env = _env(wire, tmp_path)
    for event, told in zip(
        [alert, alert, "blocked: not opened"],
        [f"clicked; {alert}", f"clicked; {alert}", "blocked: not opened"],
        strict=True,
    ):
        wire.browsers["b1"]["events"].append(event)
        assert env.step_state("click [4]").partition('": ')[2] == told
    wire.browsers["b1"]["events"].append(alert)
    assert env.observe().text.count(alert) == 1
    assert ": now there ('Lamps')" in env.step_state("goto http://shop.test/lamps")
    env.close()


def test_an_older_server_that_does_not_observe_with_the_action(
    wire: FakeWire, tmp_path: Path
) -> None:
    wire.alone = True
    env = _env(wire, tmp_path)
    assert env.step_state("click 3").startswith("click [3] link 'Lamps': now at")
    env.close()


def test_faults_of_the_model_are_observations(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    assert env.step_state("click [99]") == "click [99] failed: no element 99 on this page"
    assert env.step_state("goback") == "goback failed: there is no page to go back to"
    assert env.get_state().error_message == "there is no page to go back to"
    assert env.step_state("fly [3]").startswith("not done: unknown action 'fly'")
    assert isinstance(env.execute(CodeAction(code="1")), ErrorObservation)
    assert isinstance(
        env.execute(BrowserAction(name="click", target="99", arguments={})), ErrorObservation
    )
    env.close()


def test_a_lost_browser_is_not_the_models_fault(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    wire.browsers.clear()
    with pytest.raises(BrowserServerError, match="lease may have ended"):
        env.step_state("click [3]")
    with pytest.raises(BrowserServerError):
        env.observe()
    env.close()


def test_a_browser_is_given_back_when_opening_fails(wire: FakeWire, tmp_path: Path) -> None:
    wire.fail("openPage", 500)
    with pytest.raises(BrowserServerError, match="injected fault"):
        _env(wire, tmp_path)
    assert wire.count("closeBrowser") == 1 and not wire.browsers


def test_downloads_come_into_the_working_directory(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    line = env.step_state("click [5]")
    assert line.endswith(
        "done; downloaded a file; your code can open the download as 'downloads/data set.csv'"
    )
    assert (tmp_path / "downloads" / "data set.csv").read_bytes() == b"a,b\n1,2\n"
    text = env.observe().text
    assert text.endswith("Downloaded files: downloads/data set.csv") and "Note:" not in text
    wire.browsers["b1"]["events"].append("a dialog was dismissed")
    assert "Note: a dialog was dismissed\n" in env.observe().text
    assert "Note:" not in env.observe().text
    assert wire.count("getFile") == 1
    assert env.step_state('save "downloads/data set.csv" out/copy.csv').endswith(
        "saved as 'out/copy.csv'"
    )
    assert (tmp_path / "out" / "copy.csv").read_bytes() == b"a,b\n1,2\n"
    assert "no downloaded file 'x.csv'" in env.step_state("save x.csv y.csv")
    outside = env.step_state("save x-1 ../y.csv")
    assert "is not a file in the working directory" in outside
    env.close()


def test_a_download_that_cannot_be_had_is_told_and_the_run_goes_on(
    wire: FakeWire, tmp_path: Path
) -> None:
    env = _env(wire, tmp_path)
    wire.fail("getFile", 404)
    assert "could not be copied" in env.step_state("click [5]")
    assert env.get_state().downloaded_file_path == ()
    env.close()


def test_screenshots_on_request(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    assert env.observe().image == ""
    assert "saved as 'shot.png'" in env.step_state("screenshot 1 shot.png")
    assert (tmp_path / "shot.png").read_bytes() == PNG
    assert env.observe().image.startswith("data:image/png;base64,iVBOR")
    assert "boxed_screenshot" not in env.state()
    env.step_state("screenshot 0")
    assert env.observe().image == ""
    env.close()


def test_a_page_too_long_is_cut_and_said(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path, max_page_chars=60)
    text = env.observe().text
    assert "(the page text is longer" in text and "[5]" not in text
    env.close()


def test_a_loop_of_actions_tells_what_each_changed(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    said = [env.step_state(f"type [4] {word}") for word in ("a", "b", "b")]
    assert [s.rpartition(": ")[2] for s in said] == ["a", "b", "done"]
    assert env.take_log() == said and env.take_log() == []
    env.close()


def test_the_page_is_read_whole_or_in_parts(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    parts = [f"Part {n} of 3\n\ntext {n}\n" for n in (1, 2, 3)]
    wire.replies["read"] = deque([*parts, parts[1], "unnumbered", "Part 1 of 99\n\nlong"])
    wire.replies["find"] = deque(["found 'lamp' in 1 lines:\n[3] link 'Lamps'"])
    assert env.step_state("read") == "text 1\n\ntext 2\n\ntext 3\n"
    assert [b["actionValue"] for b in wire.acted] == ["1", "2", "3"]
    assert env.step_state("read 2") == "Part 2 of 3\n\ntext 2\n"
    assert env.step_state("read") == "unnumbered"
    assert env.step_state("read").endswith("(74 further parts: read(26) and so on)")
    assert env.step_state("find lamp").endswith("\n[3] link 'Lamps'")
    assert wire.requests[-1][1]["text"] == "lamp" and not wire.requests[-1][1]["observe"]
    assert env.take_log() == []
    env.close()


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("hover [3]", {"actionName": "hover", "targetId": "3"}),
        ("press Control+a Enter", {"actionName": "press", "keys": ["Control+a", "Enter"]}),
        ("press [4] Escape", {"targetId": "4", "keys": ["Escape"]}),
        ("drag [3] to [5]", {"targetId": "3", "toId": "5"}),
        ("drag [3] to 7,8", {"x": 7, "y": 8}),
        ('select [4] ["a", "b"]', {"actionName": "select_option", "values": ["a", "b"]}),
        ("drag [3] by 40,-5", {"targetId": "3", "deltaX": 40, "deltaY": -5}),
        ("select_text [3] lamps", {"actionName": "select_text", "targetId": "3", "text": "lamps"}),
        ("click_at [3] 1 2 double", {"actionName": "double_click_at", "targetId": "3", "x": 1}),
        ("move [3] 1 2", {"actionName": "move", "targetId": "3", "y": 2}),
        ("drag_path [3] 1,2 3,4", {"targetId": "3", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}),
        ("type_text hi[ENTER]", {"actionName": "type_text", "text": "hi", "needEnter": True}),
        ("scroll_in [3] up", {"actionName": "scroll_in", "actionValue": "up"}),
        ("scroll_to lamps", {"actionName": "scroll_to", "text": "lamps"}),
        ("click_at 1 2 right Control", {"x": 1, "y": 2, "button": "right", "keys": ["Control"]}),
        ("click_at 1 2 double", {"actionName": "double_click_at"}),
        ("drag_path 1,2 3,4", {"path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}),
        ("wheel 300 0 at 5,6", {"deltaX": 0, "deltaY": 300, "x": 5, "y": 6}),
        ("new_tab shop.test", {"actionName": "new_tab", "actionValue": "https://shop.test"}),
        ("switch_tab 1", {"actionName": "switch_tab", "actionValue": "1"}),
        ("wait_for 2s", {"actionName": "wait_for", "timeout": 2000, "text": ""}),
        ("wait_for Done", {"timeout": 10_000, "text": "Done"}),
        ("answer_dialog dismiss", {"actionValue": "dismiss"}),
        ("answer_dialog accept Ann", {"actionValue": "accept", "text": "Ann"}),
    ],
)
def test_further_actions_on_the_wire(
    wire: FakeWire, tmp_path: Path, action: str, fields: dict[str, object]
) -> None:
    env = _env(wire, tmp_path)
    assert " failed" not in env.step_state(action)
    sent = wire.requests[-1][1]
    assert {name: sent[name] for name in fields} == fields
    env.close()


def test_what_the_wire_cannot_carry_is_told(wire: FakeWire, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1_500_000))
    env = _env(wire, tmp_path)
    asked = len(wire.requests)
    said = env.step_state(f"type [4] {'x' * 1_000_001}")
    assert " failed: not possible: actionValue: " in said and len(said) < 300
    assert " failed: not possible: x: " in env.step_state(f"move {'9' * 400} 1")
    assert len(wire.requests) == asked
    env.step_state("upload [4] large")
    assert len(wire.requests[-1][1]["files"][0]["buffer"]) == 2_000_000
    env.close()


def test_uploads_come_from_the_working_directory_alone(wire: FakeWire, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s")
    (work / "a.csv").write_bytes(b"1,2")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "door").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    env = _env(wire, work)
    env.step_state('upload [4] a.csv "./a.csv"')
    one, two = wire.requests[-1][1]["files"]
    assert one == two == {"name": "a.csv", "mimeType": "text/csv", "buffer": "MSwy"}
    asked = len(wire.requests)
    for path in ("../secret", "link", "door/secret", str(tmp_path / "secret"), "pipe", "x", "."):
        assert " failed: " in env.step_state(f"upload [4] {path}"), path
    assert len(wire.requests) == asked
    with pytest.raises(ToolError, match="more than 1 bytes"):
        read_inside(work, "a.csv", 1)
    env.close()


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("../../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".bashrc", "bashrc"),
        ("/", "download"),
        ("a\0b\n.csv", "a_b_.csv"),
        ("\u202egpj.exe", "_gpj.exe"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
    ],
)
def test_hostile_names_of_downloads(wire: FakeWire, tmp_path: Path, name: str, copy: str) -> None:
    (tmp_path / "work").mkdir()
    env = _env(wire, tmp_path / "work")
    wire.files["DownloadedFiles/b1/x-1"] = (name, b"data")
    env.step_state("click [5]")
    assert env.get_state().downloaded_file_path == (f"downloads/{copy}",)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [copy]
    env.close()


def test_a_link_in_the_place_of_the_downloads_leads_nowhere(wire: FakeWire, tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir(), outside.mkdir()
    (work / "downloads").symlink_to(outside)
    env = _env(wire, work)
    assert "could not be copied" in env.step_state("click [5]")
    assert not os.listdir(outside)
    env.close()


def test_downloads_too_large_are_not_copied(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_FILE", 7)
    env = _env(wire, tmp_path)
    assert "has 8 bytes: too large, not copied" in env.step_state("click [5]")
    monkeypatch.setattr(downloads, "MAX_FILE", 9)
    monkeypatch.setattr(downloads, "MAX_TOTAL", 7)
    wire.files["more"] = ("more.csv", b"12345678")
    wire.browsers["b1"]["files"].append("more")
    assert "this run's downloads are too large" in env.observe().text
    assert env.get_state().downloaded_file_path == () and not os.listdir(tmp_path)
    env.close()


# --- pictures, banners, walls --------------------------------------------------------------------

BIG_PICTURE = {"3": {"role": "Canvas", "box": "0,0,1200,700"}}


def _sees(env: WebEnv) -> bool:
    return bool(env.observe().image)


def test_when_pictures_are_sent(wire: FakeWire, tmp_path: Path) -> None:
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
    assert acted[-1]["screenshot"] == "none", "a picture for each step is enough"
    for e in (off, on, asked, auto):
        e.close()


def test_an_agent_without_progress_is_shown_a_picture_and_told(
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


def test_a_cookie_banner_is_answered_once_it_is_there(wire: FakeWire, tmp_path: Path) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    wire.goes["8"] = 2
    env = _env(wire, tmp_path)
    text = env.observe().text
    assert "[8]" not in text and "Note: a cookie banner was answered by button 'Reject" in text
    assert "banner" not in env.observe().text
    wire.pages["http://shop.test/lamps"] = ("Lamps", BANNER)
    line = env.step_state("click [3]")
    assert line.endswith("; a cookie banner was answered by button 'Reject all'")
    env.close()


def test_a_banner_that_comes_back_is_told_only(wire: FakeWire, tmp_path: Path) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    env = _env(wire, tmp_path)
    for _ in range(3):
        env.step_state("goto http://shop.test/lamps")
        env.step_state("goback")
    clicks = [b for b in wire.acted if b["actionName"] == "click"]
    assert len(clicks) == 2
    assert "Note: a cookie banner is shown; answer it by [8] button 'Reject all'" in (
        env.observe().text
    )
    env.close()


def test_choices_that_the_model_opened_are_left_to_it(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    wire.pages[SHOP] = ("Shop", BANNER)
    assert "[6] dialog 'Cookies'" in env.step_state("scroll down")
    assert wire.count("performAction") == 1
    env.close()


def test_a_banner_that_comes_late_by_itself_is_answered(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    wire.pages[SHOP] = ("Shop", BANNER)
    wire.goes["8"] = 2
    text = env.observe().text
    assert "[8]" not in text and "Note: a cookie banner was answered by button 'Reject" in text
    env.close()


@pytest.mark.parametrize("setting", ["report", "off"])
def test_banners_are_left_alone_on_demand(wire: FakeWire, tmp_path: Path, setting: str) -> None:
    wire.pages[SHOP] = ("Shop", BANNER)
    env = _env(wire, tmp_path, cookie_banners=setting)
    assert ("a cookie banner is shown" in env.observe().text) is (setting == "report")
    assert wire.count("performAction") == 0
    env.close()


def test_a_login_wall_is_told(wire: FakeWire, tmp_path: Path) -> None:
    lines = ["[1] RootWebArea 'Sign in'", "\t[3] textbox 'Password'"]
    wire.pages[SHOP] = ("Sign in", lines)
    env = _env(wire, tmp_path)
    assert "Note: the page asks for a login" in env.observe().text
    env.close()


def test_a_browser_is_left_and_taken_up_again(wire: FakeWire, tmp_path: Path) -> None:
    env = _env(wire, tmp_path)
    left = env.suspend()
    assert left == {"server": wire.url, "browserId": "b1", "pageId": "0", "downloads": {}}
    assert env.suspend() is None and list(wire.browsers) == ["b1"]
    other = WebEnv({"server_url": wire.url}, workdir=tmp_path, left={**left, "server": "x"})
    assert other.get_state().browser_id == "b2"
    same = WebEnv({"server_url": wire.url}, workdir=tmp_path, left=left, last_url="http://x.test/")
    assert same.get_state().step_url == SHOP
    other.close()
    same.close()
    assert not wire.browsers


def test_downloads_are_copied_once_for_a_browser_that_is_taken_up_again(
    wire: FakeWire, tmp_path: Path
) -> None:
    env = _env(wire, tmp_path)
    env.step_state("click [5]")
    left = json.loads(json.dumps(env.suspend()))
    again = WebEnv({"server_url": wire.url}, workdir=tmp_path, left=left)
    assert again.observe().text.endswith("Downloaded files: downloads/data set.csv")
    assert wire.count("getFile") == 1 and os.listdir(tmp_path / "downloads") == ["data set.csv"]
    assert "saved as 'b.csv'" in again.step_state('save "downloads/data set.csv" b.csv')
    again.close()


# --- files ---------------------------------------------------------------------------------------


@given(st.text(max_size=300))
def test_safe_names_are_names(name: str) -> None:
    safe = safe_name(name)
    assert safe and "/" not in safe and "\\" not in safe and not safe.startswith(".")
    assert "\0" not in safe and len(safe.encode()) <= 120
    assert safe_name(safe) == safe


def test_names_keep_what_matters() -> None:
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("Bericht für Mai.csv") == "Bericht für Mai.csv"
    assert safe_name("x" * 200 + ".csv").endswith("x.csv")
    assert safe_name("...") == "download"


def test_equal_names_do_not_replace_each_other(tmp_path: Path) -> None:
    assert write_inside(tmp_path, "a.csv", b"1", unique=True) == "a.csv"
    assert write_inside(tmp_path, "a.csv", b"2", unique=True) == "a-2.csv"
    assert write_inside(tmp_path, "a.csv", b"3") == "a.csv"
    assert (tmp_path / "a.csv").read_bytes() == b"3"
    assert write_inside(tmp_path, str(tmp_path / "b"), b"4") == "b"
    assert sorted(os.listdir(tmp_path)) == ["a-2.csv", "a.csv", "b"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", ".", "link/x", "a\0b", "full"])
def test_no_path_leads_outside(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "full" / "of").mkdir(parents=True)
    with pytest.raises(ToolError) as e:
        write_inside(root, path, b"x")
    assert "\n" not in str(e.value)
    assert not os.listdir(outside)
    assert sorted(os.listdir(root)) == ["full", "link"]


def test_a_link_in_the_place_of_the_file_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "out.csv").symlink_to(victim)
    write_inside(tmp_path, "out.csv", b"new")
    assert victim.read_text() == "untouched"
    assert not (tmp_path / "out.csv").is_symlink()
