"""Stop two runners of one output repeatedly; the same commands resume them.

    python tests/fault/stops.py [--tasks 12] [--stops 4] [--seed 1] [--only NAME,...]

The command is real, with a model over HTTP and computations as tasks. There are five forms:
`plain`; `shard`, where each runner has half of the tasks; `tries`, where the first two of three
attempts fail and end with advice; `rerun`, where all rows are wrong and run again; and `limits`,
where each command may use only a few calls, in tokens or in money. The signals are SIGINT, SIGTERM,
SIGHUP (from a closing terminal) and two at once. Checks at the end: one right row per task, no
attempt repeated, no limit exceeded, and no finished model call repeated by a resumed run. Prints a
JSON report; exit code 1 if there are problems.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from campaign import CALLS_OF_KIND, RUN_SECONDS, Campaign, Report, become_subreaper  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import KINDS, make_tasks  # noqa: E402

from ck_main.demo_site import DemoSite  # noqa: E402
from ck_pro.language import text_of  # noqa: E402
from ck_pro.testing import ChatCall, FakeChatServer  # noqa: E402

WORKERS = 3
CALLS = CALLS_OF_KIND["compute"]
TOKENS = 15
"""Of each reply of the server."""
LIMIT_CALLS = 20
"""Of one command, where it is limited."""
PRICE = 0.001
"""USD for a prompt token; the server says that each prompt has ten."""
SIGNALS = ((signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGTERM))
STOPPED = (130, -signal.SIGHUP, -signal.SIGTERM, -signal.SIGINT)
FORMS: dict[str, Sequence[Sequence[str]]] = {
    "plain": ((), ()),
    "shard": (("--shard", "1/2"), ("--shard", "2/2")),
    "tries": (("--tries", "3", "--until", "em", "--reflect"),) * 2,
    "rerun": (("--rerun", "wrong"),) * 2,
    "limits": (
        ("--run-max-tokens", str(LIMIT_CALLS * TOKENS)),
        ("--run-max-money", str(LIMIT_CALLS * 10 * PRICE)),
    ),
}
"""The options of the two runners."""


class Model:
    """A rule-based model that counts its calls.

    Attributes:
        wrong: whether to give wrong answers.
        form: form of the race.
        calls: number of calls.
        stop_at: sets `due` at this call.
    """

    def __init__(self, form: str):
        self.form, self.wrong = form, False
        self.calls, self.stop_at = 0, 0
        self.advice = 0
        self.due = threading.Event()
        self._lock = threading.Lock()

    def reply(self, call: ChatCall) -> str:
        """Return the reply to a call."""
        texts = [text_of(m["content"]) for m in call.messages]
        with self._lock:
            self.calls += 1
            if self.stop_at and self.calls >= self.stop_at:
                self.due.set()
        if len(texts) > 1 and "advise it" in texts[0]:
            with self._lock:
                self.advice += 1
            return "Count once more."
        said = answer(call.messages)
        few = self.form == "tries" and len(texts) > 1 and texts[1].count("Count once more") < 2
        return said.replace("len(found))", "len(found) + 1)") if self.wrong or few else said


class Racer:
    """One of the two runners: a command that is restarted until it has nothing left to do.

    Args:
        run: the campaign.
        more: its options.
    """

    def __init__(self, run: Campaign, more: Sequence[str]):
        self.run, self.command = run, [*run.command, *more]
        self.limited = any("--run-max" in word for word in more)
        self.codes: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.over = False

    def look(self) -> None:
        """Start the command if it does not run and has work left."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return
            self.codes.append(code)
            self.process = None
            expected = (*STOPPED, *([7] if self.limited else []))
            if code == 0 or code not in expected:
                self.over = True
                if code != 0:
                    self.run.report.problems.append(f"ended with {code}: {self.run.last_line()}")
        if not self.over:
            self.run.command = self.command
            self.process = self.run.start()

    def stop(self, numbers: Sequence[int]) -> bool:
        """Send signals if the command runs."""
        if self.process is None or self.process.poll() is not None:
            return False
        for number in numbers:
            self.process.send_signal(number)
        return True


def race(folder: Path, form: str, count: int, stops: int, seed: int) -> Report:
    """Run one form and check its output."""
    chance = random.Random(f"{form} {seed}")
    model = Model(form)
    with DemoSite() as site, FakeChatServer(model.reply) as server:
        tasks = make_tasks(count * len(KINDS), site.origin, site.data)[:: len(KINDS)]
        price = {"prompt": PRICE * 1e6, "cached": PRICE * 1e6, "completion": 0.0}
        priced: dict[str, Any] = {"model": {"price": price}}
        settings = {"max_steps": 20, "web_agent": priced, **priced}
        run = Campaign(folder, tasks, settings, server.url, WORKERS)
        if form == "rerun":
            model.wrong = True
            run.report.exit_codes.append(run.start().wait(RUN_SECONDS))
            model.wrong, model.calls = False, 0
        command = run.command
        racers = [Racer(run, more) for more in FORMS[form]]
        expected = count * CALLS * (3 if form == "tries" else 1)
        for number in range(stops + 1):
            model.due.clear()
            share = (expected - model.calls) / (stops + 1 - number)
            model.stop_at = model.calls + max(1, round(share * chance.uniform(0.3, 1.0)))
            last = number == stops
            while not all(r.over for r in racers) and (last or not model.due.wait(0.05)):
                for racer in racers:
                    racer.look()
                if last:
                    threading.Event().wait(0.05)
            signals, victim = chance.choice(SIGNALS), chance.choice(racers)
            if not last and victim.stop(signals):
                names = "+".join(signal.Signals(s).name for s in signals)
                run.report.kills.append({"kind": names, "at_call": model.calls})
        run.command = command
        run.report.calls = model.calls
        run.report.exit_codes += [code for racer in racers for code in racer.codes]
        if form == "tries":  # the journals belong to the attempts
            run.check_rows()
            run.check_left()
        else:
            run.check()
        check_form(run, form, model, expected, len(racers))
        run.close()
    return run.report


def check_form(run: Campaign, form: str, model: Model, expected: int, racers: int) -> None:
    """Check the requirements of a form."""
    problems, rows = run.report.problems, run.rows()
    stops = sum(code != 0 for code in run.report.exit_codes)
    # each stop may lose one call per worker in flight, and an interrupted step repeats its call
    most = expected + model.advice + stops * WORKERS * 2
    if model.calls > most:
        problems.append(f"{model.calls} calls of the model, {most} at most")
    for row in rows:
        info = row["session"]["info"]
        if info.get("attempts", 1) != (2 if form == "rerun" else 1):
            problems.append(f"{row['id']}: {info['attempts']} attempts")
        if form == "tries":
            problems += check_tries(row)
    again = Counter(p.name for p in run.output.with_suffix("").glob("*/attempt-*"))
    if again != (Counter({"attempt-1": len(rows)}) if form == "rerun" else Counter()):
        problems.append(f"attempts made anew: {dict(again)}")
    if form == "rerun":
        superseded = run.output.with_suffix(".superseded.jsonl").read_bytes().splitlines()
        names = sorted(json.loads(line)["id"] for line in superseded)
        if names != sorted(t["id"] for t in run.tasks):
            problems.append(f"superseded: {names}")
    if form == "limits":
        check_limits(run, stops, model)


def check_tries(row: dict[str, Any]) -> list[str]:
    """Check for two failed attempts with advice and a right one, each in a separate session."""
    before = row.get("previous_failed_sessions") or []
    found = []
    if [bool(b["eval"].get("feedback")) for b in before] != [True, True]:
        found.append(f"{row['id']}: {len(before)} failed tries, not 2 with advice")
    sessions = {b["session"]["id"] for b in before} | {row["session"]["id"]}
    numbers = [c["number"] for c in row["sel_cands"]]
    if len(sessions) != 3 or numbers != [1, 2, 3] or row["sel_idx"] != 2:
        found.append(f"{row['id']}: tries {numbers}, {len(sessions)} sessions, {row['sel_idx']}")
    return found


def check_limits(run: Campaign, stops: int, model: Model) -> None:
    """Check that each command used its limit and at most the calls in flight beyond it."""
    problems = run.report.problems
    ended = Counter(run.report.exit_codes)
    if not ended[7]:
        problems.append("no command reached its limit")
    if ended[7] * LIMIT_CALLS > model.calls:
        problems.append(f"{ended[7]} commands ended at {LIMIT_CALLS} calls, {model.calls} in all")
    if model.calls > sum(ended.values()) * (LIMIT_CALLS + WORKERS):
        problems.append(f"{model.calls} calls by {sum(ended.values())} commands: over their limits")


def main() -> int:
    """Run the chosen forms."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--stops", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(FORMS)}")
    parser.add_argument("--folder", type=Path, help="keep everything here; must not exist")
    given = parser.parse_args()
    become_subreaper()
    names = given.only.split(",") if given.only else list(FORMS)
    with tempfile.TemporaryDirectory(prefix="stops-") as made:
        folder = given.folder or Path(made)
        reports = {
            name: race(folder / name, name, given.tasks, given.stops, given.seed) for name in names
        }
    print(json.dumps({name: asdict(report) for name, report in reports.items()}, indent=1))
    return 1 if any(r.problems for r in reports.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
