"""Shared files in Chromium: the page opens from the disk and stays inert, the video plays."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from viewer_runs import RunWriter

from ck_main.share import main

pytestmark = [pytest.mark.browser, pytest.mark.integration]

HOSTILE = """</script><script>window.owned = 1</script><img src=x onerror="window.owned = 2">
<style>body { display: none }</style><svg onload="window.owned = 3"></svg><!--<script>
{{constructor.constructor('window.owned = 4')()}} ${window.owned = 5} \u2028 \u202e </textarea>
<iframe src="http://127.0.0.1:9/x"></iframe><a href="javascript:window.owned = 6">link</a>"""


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that records what it asks for and complains about, in `seen`."""
    opened = chromium.new_page(viewport={"width": 1280, "height": 860})
    yield opened
    opened.close()


def watch(page: Page) -> list[str]:
    seen: list[str] = []
    page.on("request", lambda request: seen.append(f"request {request.url[:60]}"))
    page.on("console", lambda line: seen.append(f"console {line.text}"))
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog {dialog.message}"))
    return seen


def picture(colour: str) -> dict[str, Any]:
    out = io.BytesIO()
    Image.new("RGB", (720, 405), colour).save(out, "WEBP")
    image = f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"
    return {"image": image, "width": 1280, "height": 720, "url": f"http://s.test/{HOSTILE}"}


def write_run(folder: Path, text: str, *, pictured: bool) -> None:
    run = RunWriter(folder, f"task {text}", answer=text)
    calls = (("click", {"id": 3}, f"click [3] link '{text}': {text}"),)
    run.step(
        0,
        thought=f"THOUGHT {text}",
        code=f"print('''{text}''')",
        observation=text,
        page=f"[1] RootWebArea 'Shop'\n\t[3] link 'PAGE {text}'",
        calls=calls,
    )
    if pictured:
        run.append("picture", picture("white"), i=0)
        box = {"call": 0, "targets": [[100, 100, 200, 50]]}
        run.append("picture", {**picture("white"), **box}, i=0)
        run.append("picture", picture("green"), i=0)
    run.finish(text)


def open_step(page: Page, file: Path) -> None:
    """Open a shared page at the only step of its run."""
    page.goto(file.as_uri())
    page.get_by_text("THOUGHT").first.click()
    expect(page.get_by_role("heading", name="Page")).to_be_visible()


@pytest.mark.parametrize("pictured", [True, False])
def test_hostile_texts_stay_inert_in_the_shared_page(
    tmp_path: Path, page: Page, pictured: bool
) -> None:
    write_run(tmp_path / "run", HOSTILE, pictured=pictured)
    file = tmp_path / "shared page.html"
    assert main([str(tmp_path / "run"), "--html", str(file)]) == 0
    seen = watch(page)
    open_step(page, file)
    assert page.evaluate("window.owned") is None
    assert page.locator("iframe, img[onerror], svg[onload], a[href^='javascript']").count() == 0
    requests = [line for line in seen if not line.startswith("request data:")]
    assert requests == [f"request {file.as_uri()[:60]}"]


def test_labels_are_shown_if_their_file_is_named(tmp_path: Path, page: Page) -> None:
    write_run(tmp_path / "run", "Help", pictured=False)
    place = {"id": "task Help", "run": "main-task Help"}
    call = {**place, "session": "main-task Help", "step": 0, "call": 0, "phase": "action"}
    file, labels = tmp_path / "run.html", tmp_path / "l.jsonl"
    lines = [
        {"target": place, "label": "bad", "comment": f"COMMENT {HOSTILE}", "who": "ann-b"},
        {"target": call, "reply": f"BETTER {HOSTILE}", "who": "ann-b"},
    ]
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = [str(tmp_path / "run"), "--html", str(file), "--force"]
    assert main(options) == 0 and "COMMENT" not in file.read_text()
    assert main([*options, "--labels", str(labels)]) == 0
    assert "ann-b" not in file.read_text()
    page.goto(file.as_uri())
    label = page.get_by_role("region", name="Label")
    expect(page.get_by_role("link", name="Runs")).to_have_count(0)  # there is only one
    expect(label).to_contain_text("bad")
    expect(label).to_contain_text("COMMENT </script><script>window.owned = 1")
    page.get_by_text("THOUGHT").first.click()
    page.get_by_role("link", name="action").click()
    expect(label).to_contain_text("corrected")
    label.get_by_text("Correction").click()
    expect(label).to_contain_text("BETTER </script>")
    assert page.evaluate("window.owned") is None


def test_a_page_with_pictures_shows_them_with_the_target(tmp_path: Path, page: Page) -> None:
    write_run(tmp_path / "run", "Help", pictured=True)
    file = tmp_path / "run.html"
    assert main([str(tmp_path / "run"), "--html", str(file)]) == 0
    open_step(page, file)
    image, mark = page.locator(".picture img"), page.locator(".picture rect.target")
    expect(mark).to_be_visible()
    assert page.evaluate("document.querySelector('.picture img').naturalWidth") == 720
    frame, marked = image.bounding_box(), mark.bounding_box()
    assert frame is not None and marked is not None
    scale = frame["width"] / 1280
    assert abs(marked["x"] - frame["x"] - 100 * scale) < 3
    assert abs(marked["y"] - frame["y"] - 100 * scale) < 3
    assert abs(marked["width"] - 200 * scale) < 4
    expect(page.get_by_text("1 of 2")).to_be_visible()
    page.get_by_role("button", name="Next screenshot").press("Enter")
    expect(page.get_by_text("After the last action")).to_be_visible()
    expect(mark).to_have_count(0)


def test_a_page_without_pictures_shows_the_text_of_the_page(tmp_path: Path, page: Page) -> None:
    write_run(tmp_path / "run", "Help", pictured=False)
    file = tmp_path / "run.html"
    assert main([str(tmp_path / "run"), "--html", str(file), "--no-prompts"]) == 0
    open_step(page, file)
    expect(page.get_by_text("PAGE Help").first).to_be_visible()
    assert page.locator("img").count() == 0


def test_the_video_plays_and_can_be_searched(tmp_path: Path, page: Page) -> None:
    write_run(tmp_path / "run", "Help", pictured=True)
    file = tmp_path / "run.webm"
    assert main([str(tmp_path / "run"), "--webm", str(file)]) == 0
    facts = page.evaluate(
        """async (source) => {
          const video = document.createElement('video');
          const met = new Promise((done) => { video.onloadeddata = done; });
          video.src = source;
          await met;
          const canvas = document.createElement('canvas');
          const colours = [];
          for (const time of [0.2, video.duration - 0.5]) {
            await new Promise((done) => { video.onseeked = done; video.currentTime = time; });
            const context = canvas.getContext('2d');
            context.drawImage(video, 0, 0);
            colours.push([...context.getImageData(20, 20, 1, 1).data.slice(0, 3)]);
          }
          return { duration: video.duration, width: video.videoWidth, colours };
        }""",
        f"data:video/webm;base64,{base64.b64encode(file.read_bytes()).decode()}",
    )
    assert facts["width"] == 720 and facts["duration"] > 4
    start, end = facts["colours"]
    assert min(start) > 230 and end[1] > 90 and max(end[0], end[2]) < 60
