"""Ten small tasks for small models: arithmetic, files, and pages of a site on loopback.

    python -m benchmarks.small_tasks -m http://localhost:8080 -o runs/small [-- --profile small]

Options after `--` go to `python -m ck_main.main` and `python -m ck_web.main`, which run the tasks.
"""

from __future__ import annotations

import argparse
import http.server
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from benchmarks.loopback_site import LoopbackSite

STOCK = [("hammer", 14, 12), ("saw", 9, 20), ("drill", 3, 89), ("ladder", 5, 45)]
_ROWS = "".join(f"<tr><td>{n}<td>{count}<td>{price} EUR" for n, count, price in STOCK)
PAGES = {
    "/": "<h1>Corner shop</h1><p>Open since 1987.</p><a href=/stock>Stock</a> "
    "<a href=/news>News</a> <a href=/order>Order</a>",
    "/stock": f"<h1>Stock</h1><table><tr><th>Item<th>Count<th>Price{_ROWS}</table>",
    "/news": "<h1>News</h1><ul><li>New saws<li>Holiday on 3 May<li>Parking is free</ul>"
    "<p>Contact: <a href=/contact>Contact</a></p>",
    "/contact": "<h1>Contact</h1><p>Call Mira Olsen, phone 555-0142.</p>",
    "/order": "<h1>Order</h1><form method=post action=/order><label>Item <input name=item></label>"
    "<label>Number <input name=number></label><button>Send order</button></form>",
}


class Pages(http.server.BaseHTTPRequestHandler):
    """The site: static pages, and a form that confirms an order with a code."""

    def do_GET(self) -> None:
        """Send a page."""
        body = PAGES.get(self.path)
        self._send(200 if body else 404, body or "<h1>Not found</h1>")

    def do_POST(self) -> None:
        """Confirm an order: the code consists of the number and the item."""
        length = int(self.headers.get("Content-Length", "0"))
        given = parse_qs(self.rfile.read(length).decode())
        item, number = (given.get(n, ["?"])[0] for n in ("item", "number"))
        self._send(200, f"<h1>Thank you</h1><p>Order code: {number}-{item[:3].upper()}-7</p>")

    def _send(self, status: int, body: str) -> None:
        data = f"<!doctype html><title>Corner shop</title>{body}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class SmallTask(NamedTuple):
    """A task with its right answer.

    Attributes:
        question: the text of the task.
        answer: the right answer.
        page: path of its start page; "" for a task without a browser.
        file: text of its file `notes.txt`; "" for none.
    """

    id: str
    question: str
    answer: str
    page: str = ""
    file: str = ""


_NOTES = "Keys: drawer 4\nWifi password: maple-77\nMeeting: Tuesday\n"
_NUMBERS = "\n".join(str(n * n - 3) for n in range(2, 12))
TASKS = (
    SmallTask("product", "What is 173 * 28? Answer with the number only.", "4844"),
    SmallTask("letters", "How often does the letter s occur in 'possessiveness'?", "6"),
    SmallTask("days", "How many days are between 2024-02-10 and 2024-03-15?", "34"),
    SmallTask("notes", "What is the wifi password in notes.txt?", "maple-77", file=_NOTES),
    SmallTask("sum", "What is the sum of the numbers in notes.txt?", "475", file=_NUMBERS),
    SmallTask("value", "What is the price of the saw, in EUR? Number only.", "20", page="/stock"),
    SmallTask("count", "How many items does the list of news have?", "3", page="/news"),
    SmallTask("link", "What is the phone number of the contact?", "555-0142", page="/news"),
    SmallTask("form", "Order 6 of the item drill. What is the code?", "6-DRI-7", page="/order"),
    SmallTask("year", "Since which year is the shop open?", "1987", page="/"),
)


def run(tasks: Sequence[SmallTask], module: str, output: Path, options: Sequence[str]) -> None:
    """Run tasks with a command of this project; it skips those with a row in the output."""
    path = output.with_suffix(".tasks.json")
    lines = []
    for task in tasks:
        line = {"id": task.id, "question": task.question, "answer": task.answer}
        if task.file:
            folder = path.parent / f"{output.stem}-files" / task.id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "notes.txt").write_text(task.file)
            line["file_name"] = str((folder / "notes.txt").resolve())
        if task.page:
            line["target_url"] = task.page
        lines.append(line)
    path.write_text(json.dumps(lines))
    command = [sys.executable, "-m", module, "-i", path, "-o", output, "--plain", *options]
    subprocess.run([*map(str, command)], check=False)


def report(tasks: Sequence[SmallTask], outputs: Sequence[Path]) -> int:
    """Print one line per task; return how many are right."""
    rows = {}
    for output in outputs:
        for line in output.read_text().splitlines() if output.exists() else ():
            row = json.loads(line)
            rows[row["id"]] = row
    right = 0
    for task in tasks:
        if task.id not in rows:
            print(f"{task.id:8} no row")
            continue
        row = rows[task.id]
        info = row["session"]["info"]
        used = info["call_stat"]["__ALL__"]
        right += row["eval"]["corr"] == 1
        verdict = "right" if row["eval"]["corr"] == 1 else "WRONG"
        print(
            f"{task.id:8} {verdict} {used['llm_call']:3} calls {used['total_tokens']:7,} tokens  "
            f"{info['stop_reason']}: {info['final_results']['output']!r:.60}"
        )
    print(f"{right} of {len(tasks)} right")
    return right


def main() -> int:
    """Run and report; the exit code is 0 if at least one task is right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_tasks")
    parser.add_argument("-m", "--model", required=True, help="call target of all agents")
    parser.add_argument("-o", "--output", type=Path, required=True, help="prefix of the row files")
    parser.add_argument("--only", default="", help="ids of tasks, separated by commas")
    parser.add_argument("options", nargs="*", help="options of the commands, after --")
    args = parser.parse_args()
    names = {n for n in args.only.split(",") if n}
    tasks = [t for t in TASKS if not names or t.id in names]
    args.output.parent.mkdir(parents=True, exist_ok=True)
    outputs = [args.output.with_name(f"{args.output.name}-{n}.jsonl") for n in ("main", "web")]
    common = ["-m", args.model, *args.options]
    plain, paged = [t for t in tasks if not t.page], [t for t in tasks if t.page]
    if plain:
        run(plain, "ck_main.main", outputs[0], common)
    with LoopbackSite(Pages) as site:
        on_site = [t._replace(page=f"http://{site.host}{t.page}") for t in paged]
        allowed = ["-u", f"{{'web_env': {{'allow': ['{site.host}']}}}}"]
        if on_site:
            run(on_site, "ck_web.main", outputs[1], [*common, *allowed])
    return 0 if report(tasks, outputs) else 1


if __name__ == "__main__":
    sys.exit(main())
