"""Measure the viewer in Chromium: large outputs, long runs, scrolling and search.

    python benchmarks/viewer.py [--rows 10000] [--steps 1000]

An output of small runs, and a journal of one long run, both written by real agents whose model is
in this process. `first` opens them without an index of an earlier viewer; `again` with one. A
frame is the time between two animation frames of the page; a script task is a long task that
Chromium reports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from collection_model import reply

from ck_main.output.row import row_line
from ck_pro.agent import MultiStepAgent
from ck_pro.journal import Journal
from ck_pro.testing import ScriptedLLM
from ck_pro.tool import StopTool
from web_server.chromium.chromium import find_chromium

_WATCH = """() => {
    window.frames_ms = []; window.tasks_ms = [];
    let last = performance.now();
    const tick = now => { frames_ms.push(now - last); last = now; requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
    new PerformanceObserver(l => l.getEntries().forEach(e => tasks_ms.push(e.duration)))
        .observe({ type: 'longtask', buffered: false });
}"""
_SCROLL = """async ([selector, pixels, rounds]) => {
    frames_ms.length = 0; tasks_ms.length = 0;
    const box = document.querySelector(selector);
    const frame = () => new Promise(requestAnimationFrame);
    for (let i = 0; i < rounds; i++) { box.scrollTop += pixels; await frame(); }
    for (let i = 0; i < rounds; i++) {
        box.scrollTop = Math.random() * box.scrollHeight; await frame();
    }
    const sorted = frames_ms.slice().sort((a, b) => a - b);
    return { frames: sorted.length, median: sorted[sorted.length >> 1], p99: sorted[Math.floor(
        sorted.length * 0.99)], longest_task: Math.max(0, ...tasks_ms) };
}"""


def write_runs(folder: Path, rows: int, steps: int) -> None:
    """Write an output of many small runs, and the journal of a long one."""
    folder.mkdir()
    small = _run(5, None, folder)
    with (folder / "many.jsonl").open("w") as out:
        line = row_line(small).decode()
        sid = small["session"]["id"]
        for n in range(rows):
            row = line.replace('"id": "small"', f'"id": "task{n:05}"', 1).replace(sid, f"{n:032x}")
            out.write(row.rstrip("\n") + "\n")
    _run(steps, folder / "long" / "thousand", folder)


def _run(steps: int, journal_folder: Path | None, folder: Path) -> dict[str, Any]:
    """Run an agent; return its row."""
    model = ScriptedLLM(lambda messages, _: reply(messages, light=True))
    agent = MultiStepAgent(model=model, tools=[StopTool()], max_steps=steps, stuck_limit=10_000)
    task = f"Count in {steps} steps."
    if journal_folder is None:
        session = agent.run(task, workdir=folder / "work")
    else:
        with Journal(journal_folder) as journal:
            session = agent.run(task, journal=journal, workdir=folder / "work")
    score = {"pred": "x", "gold": "x", "corr": 1}
    return {"id": "small", "task": task, "answer": "x", "session": session.to_dict(), "eval": score}


def measure(page: Page, source: Path, environment: dict[str, str], *, long: bool) -> dict[str, Any]:
    """Open a source in a new viewer; return milliseconds."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "ck_main.view", str(source), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as viewer:
        assert viewer.stdout is not None
        try:
            url = viewer.stdout.readline().strip()
            found = {"command": time.perf_counter() - began}
            opened = time.perf_counter()
            page.goto(url)
            page.get_by_role("row").nth(1).wait_for()
            found["table"] = time.perf_counter() - opened
            page.evaluate(_WATCH)
            if long:
                opened = time.perf_counter()
                page.get_by_role("row").nth(1).click()
                page.get_by_role("treeitem").nth(1).wait_for()
                found["run"] = time.perf_counter() - opened
                scrolled = page.evaluate(_SCROLL, ["[role=tree]", 400, 120])
                opened = time.perf_counter()
                for _ in range(20):
                    before = page.url
                    page.keyboard.press("j")
                    page.wait_for_function("url => location.href !== url", arg=before)
                found["step by key"] = (time.perf_counter() - opened) / 20
            else:
                box = "() => document.querySelector('[role=table], [role=grid], table')"
                selector = page.evaluate_handle(box).evaluate(
                    "e => { while (e && e.scrollHeight <= e.clientHeight + 50)"
                    " e = e.parentElement || document.scrollingElement;"
                    " e.id = e.id || 'scrolled'; return '#' + e.id; }"
                )
                scrolled = page.evaluate(_SCROLL, [selector, 400, 120])
            milliseconds = {name: round(value * 1000) for name, value in found.items()}
            return milliseconds | {name: round(value, 1) for name, value in scrolled.items()}
        finally:
            viewer.terminate()


@click.command(help=__doc__)
@click.option("--rows", default=10_000, show_default=True)
@click.option("--steps", default=1_000, show_default=True)
def main(rows: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made) / "runs"
        write_runs(folder, rows, steps)
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(made) / "cache")}
        browser = playwright.chromium.launch(executable_path=find_chromium())
        for source, long in ((folder / "many.jsonl", False), (folder / "long", True)):
            size = sum(f.stat().st_size for f in [source, *source.rglob("*")] if f.is_file())
            for name in ("first", "again"):
                page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
                found = measure(page, source, environment, long=long)
                print(source.name, f"({size:,} bytes)", name, json.dumps(found))
        browser.close()


if __name__ == "__main__":
    main()
