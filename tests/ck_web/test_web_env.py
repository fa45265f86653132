"""`WebEnv` against a fake server: observing, acting, files, and every way it can go wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_wire import PNG, FakeWire
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.events import BrowserAction, CodeAction, ErrorObservation
from ck_pro.exceptions import BrowserServerError, ToolError
from ck_web.env import WebEnv
from ck_web.files import safe_name, write_inside

pytestmark = pytest.mark.integration

SHOP = "http://shop.test/"


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
        "type [4] textbox \"Search it's\" 'lamp': new on the page: "
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
