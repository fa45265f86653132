"""A demonstration: a person in the browser does one task of the demo, and a trainer loads it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from loaders import OFFLINE, export
from paths import ROOT
from person_browser import opened_page
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PROBE = Path(__file__).parents[1] / "support" / "trl_probe.py"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command of the demo, with one task, waiting for a person."""
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    command = [sys.executable, "-m", "ck_main.demo", "--plain", "-m", "manual:web"]
    with subprocess.Popen(
        [*command, "--ids", "navigate", "-o", "runs/demo.jsonl"],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """Return the address that the command prints."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"You are the model: open (\S+)", line):
            return found[1]
    raise AssertionError("the command printed no address")


def reply(page: Page, agent: str, step: int, thought: str, code: str = "") -> None:
    """Write and send a reply; without code, that which the page has written."""
    heading = page.get_by_role("heading", name=f"{agent} action, step {step}", exact=True)
    expect(heading).to_be_visible(timeout=60_000)
    page.get_by_label("Thought").fill(thought)
    if code:
        page.get_by_label("Code", exact=True).fill(code)
    expect(page.get_by_label("Dry run")).to_contain_text("This code runs")
    page.keyboard.press("Control+Enter")
    expect(heading).to_be_hidden()


def do_the_task(page: Page) -> None:
    task = page.locator(".task-text").inner_text()
    code = f"r = web_agent({task!r})\nstop(r['output'], r['log'])"
    reply(page, "ck_agent", 0, "The web agent can look.", code)
    page.get_by_role("button", name="link 'About'").last.click()
    reply(page, "ck_agent/web_agent", 0, "The team is on the page About.")
    expect(page.get_by_text("Head of the calibration laboratory").first).to_be_visible()
    expect(page.locator(".frame img")).to_be_visible()
    reply(page, "ck_agent/web_agent", 1, "Since 2009.", "stop('2009', 'the table on About')")


def test_a_demonstration_is_exported_and_prepared_for_training_by_trl(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    with opened_page(address(demo), allowed=("net::ERR",)) as page:
        expect(page.locator(".task-text")).to_be_visible(timeout=60_000)
        do_the_task(page)
        said, _ = demo.communicate(timeout=120)
    assert demo.returncode == 0, said
    (row,) = (json.loads(s) for s in (tmp_path / "runs/demo.jsonl").read_text().splitlines())
    assert row["eval"]["corr"] == 1 and row["eval"]["pred"] == "2009"

    path = export("sft", tmp_path / "train.jsonl", "-i", tmp_path / "runs/demo.jsonl")
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["metadata"]["model"] for r in rows] == ["manual"] * 3
    written = [r["completion"][0]["content"] for r in rows]
    assert any(re.search(r"Thought: .*\n```python\nclick\(id=\d+\)\n```", text) for text in written)

    if find_spec("trl") is None:
        pytest.skip("pip install --no-deps trl")
    done = subprocess.run(
        [sys.executable, str(PROBE), str(path)],
        env={**os.environ, **OFFLINE, "HF_HOME": str(tmp_path / "hf")},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    prepared = json.loads(done.stdout)
    assert prepared["rows"] == 3
    for text, completion in zip(prepared["completions"], written, strict=True):
        assert text == f"{completion}</assistant>"
