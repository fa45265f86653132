"""How fast the browser server acts and observes, against the floors of the same run.

    python benchmarks/web.py [--rounds 15] [--sessions 8]

Pages are generated: a tiny one, an article of 3,500 elements, a table of 10,000. Measured is one
click with the new observation ready, through HTTP, settling included. The floors do the least
that could do: Playwright's click, or the mouse at a point, then one walk over the page from
inside it. All are interleaved, so that a noisy machine is noisy for all; ratios are what to read.
"""

from __future__ import annotations

import asyncio
import http.server
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import click
import requests
from playwright.async_api import async_playwright

from web_server.chromium import find_chromium, launch_flags
from web_server.memory import tree_bytes
from web_server.policy import Policy
from web_server.pool import PoolOptions
from web_server.server import Server

HEAD = """<!doctype html><title>{}</title><button id="b" onclick="
document.getElementById('o').textContent=++n">Count</button><p id="o">0</p><script>n=0</script>"""
ARTICLE = "".join(
    f"<h2>Part {i}</h2>"
    + "".join(
        f"<p>Line {j} of <a href='#{j}'>a link</a> and <b>more</b> text</p>" for j in range(9)
    )
    for i in range(97)
)
TABLE = "<table>" + "".join(
    f"<tr><td>{i}</td><td>name {i}</td><td><a href='#{i}'>open</a></td><td>{i * 7}</td></tr>"
    for i in range(1667)
)
PAGES = {
    "tiny": HEAD.format("Tiny"),
    "article": HEAD.format("Article") + ARTICLE,
    "table": HEAD.format("Table") + TABLE + "</table>",
}
WALK = """() => {
  const lines = [];
  const visit = (node) => {
    if (node.nodeType === 3) { const t = node.data.trim(); if (t) lines.push(t); return; }
    if (node.nodeType !== 1) return;
    const box = node.getBoundingClientRect();
    if (box.width && box.bottom > 0 && box.top < innerHeight) lines.push(node.tagName);
    for (const child of node.childNodes) visit(child);
  };
  visit(document.body);
  return lines.join('\\n');
}"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path.strip("/"), "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Ours:
    """One session of the server, on one page, over HTTP."""

    def __init__(self, server: str, site: str) -> None:
        self.server = server
        self.http = requests.Session()
        self.http.trust_env = False
        begun = time.perf_counter()
        self.browser = self.post("getBrowser")["browserId"]
        self.lean = {
            "browserId": self.browser,
            "pageId": "0",
            "observe": True,
            "screenshot": "none",
            "html": False,
            "fulltree": False,
            "snapshot": False,
        }
        reply = self.post("openPage", **self.lean, url=site)
        self.opened_ms = (time.perf_counter() - begun) * 1000
        tree = reply["observation"]["yaml"]
        self.button = tree.split("] button 'Count'")[0].rsplit("[", 1)[1]

    def post(self, route: str, **body: Any) -> dict[str, Any]:
        reply = self.http.post(f"{self.server}/{route}", json=body, timeout=120)
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def click(self, **more: Any) -> None:
        body = {**self.lean, **more}
        self.post("performAction", **body, actionName="click", targetId=self.button)

    def close(self) -> None:
        self.post("closeBrowser", browserId=self.browser)
        self.http.close()


async def measure(server: str, site: str, rounds: int) -> dict[tuple[str, str], float]:
    """Medians in ms by (page, way)."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(),
            args=[f for f in launch_flags() if "proxy" not in f and "resolver" not in f],
        )
        for name in PAGES:
            page = await browser.new_page(viewport={"width": 1280, "height": 720})
            await page.goto(f"{site}/{name}")
            box = await page.locator("#b").bounding_box()
            assert box is not None
            at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            ours = await asyncio.to_thread(Ours, server, f"{site}/{name}")
            times[name, "new session"].append(ours.opened_ms)

            async def locator_click(page: Any = page) -> None:
                await page.click("#b")
                await page.evaluate(WALK)

            async def mouse_click(page: Any = page, at: Any = at) -> None:
                await page.mouse.click(*at)
                await page.evaluate(WALK)

            async def our_click(ours: Ours = ours) -> None:
                await asyncio.to_thread(ours.click)

            async def our_click_seen(ours: Ours = ours) -> None:
                await asyncio.to_thread(ours.click, screenshot="plain", imageFormat="jpeg")

            ways: dict[str, Callable[[], Awaitable[None]]] = {
                "floor: click + walk": locator_click,
                "floor: mouse + walk": mouse_click,
                "ours": our_click,
                "ours + jpeg": our_click_seen,
            }
            for _ in range(rounds):
                for way, work in ways.items():
                    begun = time.perf_counter()
                    await work()
                    times[name, way].append((time.perf_counter() - begun) * 1000)
            await asyncio.to_thread(ours.close)
            await page.close()
        await browser.close()
    return {key: statistics.median(values) for key, values in times.items()}


def memory(server: str, site: str, sessions: int) -> list[tuple[int, float]]:
    """(number of sessions, MB of the whole process tree) as sessions are added."""
    opened: list[Ours] = []
    rows = [(0, tree_bytes() / 1e6)]
    for count in (1, 4, sessions):
        while len(opened) < count:
            opened.append(Ours(server, f"{site}/article"))
        rows.append((count, tree_bytes() / 1e6))
    for ours in opened:
        ours.close()
    return rows


@click.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--sessions", default=8, show_default=True)
def main(rounds: int, sessions: int) -> None:
    """Print the medians, their ratios to the floors, and memory by sessions."""
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{origin.server_port}"
    policy = Policy.of(allow=[f"127.0.0.1:{origin.server_port}"])
    server = Server(PoolOptions(find_chromium(), policy, max_browsers=sessions + 1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        medians = asyncio.run(measure(server.url, site, rounds))
        rows = memory(server.url, site, sessions)
    finally:
        server.stop()
        thread.join()
        origin.shutdown()
    ways = list(dict.fromkeys(way for _, way in medians))
    print(f"{'ms':24}" + "".join(f"{name:>10}" for name in PAGES))
    for way in ways:
        print(f"{way:24}" + "".join(f"{medians[name, way]:10.0f}" for name in PAGES))
    for floor in ("floor: click + walk", "floor: mouse + walk"):
        ratios = [medians[name, "ours"] / medians[name, floor] for name in PAGES]
        print(f"{'ours / ' + floor:24}" + "".join(f"{ratio:10.2f}" for ratio in ratios))
    for count, size in rows:
        print(f"{count} sessions: {size:.0f} MB")


if __name__ == "__main__":
    main()
