"""Run tasks on a Ray cluster of several nodes and kill one node half-way.

    python tests/fault/ray_nodes.py [--tasks 10] [--workers 4] [--nodes 2] [--kill node|raylet]

All nodes are on this machine: a head, which the command's driver joins, and others, each started by
`ray start`. `--kill node` kills one of the others with all its processes, like a power cut.
`--kill raylet` kills only Ray's process of that node; the rest must then end without help. The
output is checked as in the campaign. Also, each node must run tasks and never more than one browser
server. Prints a JSON report; exit code 1 if there are problems.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from campaign import CALLS_OF_KIND, RUN_SECONDS, Campaign, become_subreaper  # noqa: E402
from campaign_kills import Process, below  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import make_tasks  # noqa: E402

from ck_main.demo_site import DemoSite  # noqa: E402
from ck_pro.testing import ChatCall, FakeChatServer  # noqa: E402
from web_server.chromium.folder import sweep  # noqa: E402

CPUS = "1"
"""Of each node: four tasks at once."""
STORE_BYTES = "80000000"
STARTS = 6
SERVER, TASK, RAYLET = "server_child.py", "ray::work_on", "raylet/raylet --"
OURS = (SERVER, TASK, "_ck_worker", "--user-data-dir", "ray::Desk", "ray::NodeBrowser")
"""In the command lines of what must not outlive a run, on nodes that do."""
PORTS = (
    *("--dashboard-agent-grpc-port", "--dashboard-agent-listen-port"),
    *("--metrics-export-port", "--runtime-env-agent-port"),
)
"""Where Ray may choose them, it waits 15 s for its agents, and a busy machine needs longer."""


class Node:
    """A node of a Ray cluster: `ray start --block` and its descendants.

    Args:
        name: for reports.
        log: its log file.
        folder: for the temporary files of its processes.
        head: address of the head; None starts a head on a free port.
    """

    def __init__(self, name: str, log: Path, folder: Path, head: str | None = None):
        self.name, self.log = name, log
        self.address = head or f"127.0.0.1:{free_port()}"
        self.tasks: set[int] = set()
        """Ids of the processes that were seen with a task."""
        self.servers = 0
        """The most browser servers at once."""
        for _ in range(STARTS):
            self._start(folder, [] if head else ["--head", "--include-dashboard", "false"])
            if self._came_up():
                return
        raise RuntimeError(f"the Ray node {name} does not come up: see {self.log}")

    def _start(self, folder: Path, head: list[str]) -> None:
        where = ["--port", self.address.rpartition(":")[2]] if head else ["--address", self.address]
        ports = [word for option in PORTS for word in (option, str(free_port()))]
        sizes = ["--num-cpus", CPUS, "--object-store-memory", STORE_BYTES]
        script = str(Path(sys.executable).with_name("ray"))
        command = [script, "start", *head, *where, *ports, *sizes, "--disable-usage-stats"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--node-ip-address", "127.0.0.1", "--block"],
                env={**os.environ, "TMPDIR": str(folder)},
                stdout=log,
                stderr=log,
            )

    def _came_up(self) -> bool:
        """Wait until the node runs; return False if it ended."""
        while self.process.poll() is None:
            if b"Ray runtime started" in self.log.read_bytes():
                return True
            time.sleep(0.1)
        self.kill()
        return False

    def look(self) -> None:
        """Record the node's current processes."""
        commands = self.processes()
        self.tasks |= {p.pid for p in commands if TASK in p.command}
        servers = {p.pid: p.parent for p in commands if SERVER in p.command}
        # a process that is forking appears twice
        self.servers = max(self.servers, sum(p not in servers for p in servers.values()))

    def processes(self) -> list[Process]:
        """Return the node's processes."""
        return below(self.process.pid)

    def kill(self, only: str = "") -> None:
        """Kill -9 the node's processes, or those with `what` in the command line."""
        found = [p.pid for p in self.processes() if only in p.command]
        for pid in [*found, *([] if only else [self.process.pid])]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def stop(self) -> None:
        """Stop the node with SIGTERM."""
        self.process.terminate()
        self.process.wait()


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Watch(threading.Thread):
    """Watches all nodes while tasks run, and kills one half-way.

    Args:
        nodes: all nodes; the first is the head and is not killed.
        kill: "node", "raylet" or "".
        half: set when half of the tasks are done.
        run: its report gets the problems.
    """

    def __init__(self, nodes: list[Node], kill: str, half: threading.Event, run: Campaign):
        super().__init__(name="watch", daemon=True)
        self.nodes, self.kill, self.half, self.run_ = nodes, kill, half, run
        self.ended = threading.Event()

    def run(self) -> None:
        """Watch until `ended` is set."""
        wanted = bool(self.kill)
        while not self.ended.wait(0.2):
            for node in self.nodes:
                node.look()
            if wanted and self.half.is_set():
                wanted = not any(self._killed(node) for node in self.nodes[1:])

    def _killed(self, node: Node) -> bool:
        """Kill a node on which a task uses a browser."""
        commands = [p.command for p in node.processes()]
        busy = [sum(what in c for c in commands) for what in (TASK, SERVER, "--type=renderer")]
        if not all(busy):
            return False
        node.kill(RAYLET if self.kill == "raylet" else "")
        killed = {"kind": self.kill, "node": node.name, "tasks": busy[0], "of": len(commands)}
        self.run_.report.kills.append(killed)
        return True


def run_on(nodes: list[Node], kill: str, half: threading.Event, run: Campaign) -> None:
    """Run the command; kill a node if `kill` names one."""
    watch = Watch(nodes, kill, half, run)
    watch.start()
    began = time.monotonic()
    run.report.exit_codes.append(run.start().wait(RUN_SECONDS))
    run.report.seconds = round(time.monotonic() - began, 1)
    watch.ended.set()
    watch.join()
    if run.report.exit_codes != [0]:
        run.report.problems.append(f"exit code {run.report.exit_codes}: {run.last_line()}")
    if kill and not run.report.kills:
        run.report.problems.append("there was no node to kill")


def check_nodes(run: Campaign, nodes: list[Node]) -> None:
    """Check that each node ran tasks with one browser server, and no process outlives the run."""
    for node in nodes:
        if not node.tasks:
            run.report.problems.append(f"{node.name}: had no task")
        if node.servers > 1:
            run.report.problems.append(f"{node.name}: {node.servers} browser servers at once")
        print(f"{node.name}: {len(node.tasks)} processes with tasks", file=sys.stderr)
    deadline = time.monotonic() + 60.0
    while left := [p for n in nodes for p in n.processes() if any(o in p.command for o in OURS)]:
        if time.monotonic() > deadline:
            said = [f"left on a node: {p.pid} {p.command[:120]}" for p in left]
            run.report.problems.extend(said)
            break
        time.sleep(0.2)


def main() -> int:
    """Run the tasks and check the output."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=2, help="besides the head")
    parser.add_argument("--kill", choices=("node", "raylet"), default="")
    parser.add_argument("--folder", type=Path, help="keep everything here; must not exist")
    given = parser.parse_args()
    become_subreaper()
    # a head creates a token or reads the one in the home folder; the others need the same
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    calls: Counter[str] = Counter()
    half = threading.Event()

    def reply(call: ChatCall) -> str:
        calls["all"] += 1
        if calls["all"] >= given.tasks * min(CALLS_OF_KIND.values()) // 2:
            half.set()
        return answer(call.messages)

    with (
        tempfile.TemporaryDirectory(prefix="ray-nodes-") as made,
        DemoSite() as site,
        FakeChatServer(reply) as model,
        ExitStack() as at_end,
    ):
        tasks = make_tasks(given.tasks, site.origin, site.data)
        host = site.origin.partition("://")[2]
        settings = {"max_steps": 20, "web_agent": {"max_steps": 20, "web_env": {"allow": [host]}}}
        run = Campaign(
            given.folder or Path(made) / "run", tasks, settings, model.url, given.workers
        )
        at_end.callback(run.close)
        began = time.monotonic()
        nodes: list[Node] = []
        for name in ("head", *(f"node-{n + 1}" for n in range(given.nodes))):
            log = run.folder / f"{name}.log"
            nodes.append(Node(name, log, run.temporary, nodes[0].address if nodes else None))
            at_end.callback(nodes[-1].kill)
        print(f"{len(nodes)} nodes after {time.monotonic() - began:.0f} s", file=sys.stderr)
        local = run.command
        run.command = [*local, "--ray", nodes[0].address]
        run_on(nodes, given.kill, half, run)
        run.report.calls = calls["all"]
        check_nodes(run, nodes)
        for node in reversed(nodes):
            node.stop()
        run.command = local  # the local runner has nothing left to do
        if given.kill == "node":  # a power cut: the next server removes the leftovers
            sweep(run.temporary)
        run.check()
        run.check_again()
    print(json.dumps({"ray": asdict(run.report)}, indent=1))
    return 1 if run.report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
