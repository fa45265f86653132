"""Downloads and uploads of a `WebEnv` stay in the working directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_wire import FakeWire
from hypothesis import given
from hypothesis import strategies as st
from web_scripts import web_env

from ck_pro.exceptions import ToolError
from ck_web.browser import downloads
from ck_web.browser.files import read_inside, safe_name, write_inside
from ck_web.env import WebEnv

pytestmark = pytest.mark.integration


def test_downloads_are_copied_to_the_working_directory(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
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


def test_a_failed_download_is_reported_and_the_run_continues(
    wire: FakeWire, tmp_path: Path
) -> None:
    env = web_env(wire, tmp_path)
    wire.fail("getFile", 404)
    assert "cannot copy the download" in env.step_state("click [5]")
    assert env.get_state().downloaded_file_path == ()
    env.close()


def test_uploads_come_only_from_the_working_directory(wire: FakeWire, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s")
    (work / "a.csv").write_bytes(b"1,2")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "door").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    env = web_env(wire, work)
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
def test_hostile_file_names_are_sanitized(
    wire: FakeWire, tmp_path: Path, name: str, copy: str
) -> None:
    (tmp_path / "work").mkdir()
    env = web_env(wire, tmp_path / "work")
    wire.files["DownloadedFiles/b1/x-1"] = (name, b"data")
    env.step_state("click [5]")
    assert env.get_state().downloaded_file_path == (f"downloads/{copy}",)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [copy]
    env.close()


def test_a_link_named_downloads_is_not_followed(wire: FakeWire, tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir(), outside.mkdir()
    (work / "downloads").symlink_to(outside)
    env = web_env(wire, work)
    assert "cannot copy the download" in env.step_state("click [5]")
    assert not os.listdir(outside)
    env.close()


def test_large_downloads_are_not_copied(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_FILE", 7)
    env = web_env(wire, tmp_path)
    assert "has 8 bytes: too large, not copied" in env.step_state("click [5]")
    monkeypatch.setattr(downloads, "MAX_FILE", 9)
    monkeypatch.setattr(downloads, "MAX_TOTAL", 7)
    wire.files["more"] = ("more.csv", b"12345678")
    wire.browsers["b1"]["files"].append("more")
    assert "this run's downloads are too large" in env.observe().text
    assert env.get_state().downloaded_file_path == () and not os.listdir(tmp_path)
    env.close()


def test_downloads_are_not_copied_again_after_reconnecting(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path)
    env.step_state("click [5]")
    left = json.loads(json.dumps(env.suspend()))
    again = WebEnv({"server_url": wire.url}, workdir=tmp_path, suspended=left)
    assert again.observe().text.endswith("Downloaded files: downloads/data set.csv")
    assert wire.count("getFile") == 1 and os.listdir(tmp_path / "downloads") == ["data set.csv"]
    assert "saved as 'b.csv'" in again.step_state('save "downloads/data set.csv" b.csv')
    again.close()


@given(st.text(max_size=300))
def test_safe_names_are_plain_file_names(name: str) -> None:
    safe = safe_name(name)
    assert safe and "/" not in safe and "\\" not in safe and not safe.startswith(".")
    assert "\0" not in safe and len(safe.encode()) <= 120
    assert safe_name(safe) == safe


def test_safe_names_keep_letters_and_suffix() -> None:
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("Bericht für Mai.csv") == "Bericht für Mai.csv"
    assert safe_name("x" * 200 + ".csv").endswith("x.csv")
    assert safe_name("...") == "download"


def test_files_of_equal_names_do_not_replace_each_other(tmp_path: Path) -> None:
    assert write_inside(tmp_path, "a.csv", b"1", unique=True) == "a.csv"
    assert write_inside(tmp_path, "a.csv", b"2", unique=True) == "a-2.csv"
    assert write_inside(tmp_path, "a.csv", b"3") == "a.csv"
    assert (tmp_path / "a.csv").read_bytes() == b"3"
    assert write_inside(tmp_path, str(tmp_path / "b"), b"4") == "b"
    assert sorted(os.listdir(tmp_path)) == ["a-2.csv", "a.csv", "b"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", ".", "link/x", "a\0b", "full"])
def test_no_path_leads_out_of_the_working_directory(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "full" / "of").mkdir(parents=True)
    with pytest.raises(ToolError) as e:
        write_inside(root, path, b"x")
    assert "\n" not in str(e.value)
    assert not os.listdir(outside)
    assert sorted(os.listdir(root)) == ["full", "link"]


def test_a_link_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "out.csv").symlink_to(victim)
    write_inside(tmp_path, "out.csv", b"new")
    assert victim.read_text() == "untouched"
    assert not (tmp_path / "out.csv").is_symlink()
