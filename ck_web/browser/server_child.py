"""Program: run the browser server as a child process that exits with its parent.

It runs `python -m web_server` with the same arguments, and stops it when standard input closes.
The parent closes it to stop the server; it also closes if the parent is killed. (The kernel's
parent-death signal does not work: it comes when the *thread* that started the child ends.)

After a line `SECONDS URL IDS FILE` on standard input, the server keeps running while it has a
browser that was parked when standard input closed, or whose id starts with one of IDS (commas
between them, "-" for none), at most SECONDS from the line on. URL is its own address. It removes
FILE at the end.

It is started by its path, without loading the rest of `ck_web`.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path

_GRACE = 10.0
_POLL_SECONDS = 1.0
_MAX_SECONDS = 24 * 3600.0


def main() -> None:
    """Run the browser server until it ends or standard input closes."""
    token = os.environ.get("CK_WEB_TOKEN", "")
    watch = threading.Thread(target=_watch, args=(token,), name="parent-watch", daemon=True)
    watch.start()
    sys.argv[0] = "web_server"
    del sys.path[0]  # this folder: its modules must not be importable as top-level modules
    runpy.run_module("web_server", run_name="__main__", alter_sys=True)


def _watch(token: str) -> None:
    buffer = b""
    until, url, ids, file = 0.0, "", "", ""
    while piece := os.read(0, 4096):
        *lines, buffer = (buffer + piece).split(b"\n")
        if lines:
            seconds, url, ids, file = lines[-1].decode().split(" ", 3)
            until = time.monotonic() + min(float(seconds), _MAX_SECONDS)
    if until:
        _discard_output()
        _wait_for_kept(url, token, until, set(ids.split(",")))
        with contextlib.suppress(OSError):
            Path(file).unlink()
    os.kill(os.getpid(), signal.SIGTERM)
    # a server that ignores the signal must exit too
    threading.Event().wait(_GRACE)
    os._exit(1)


def _discard_output() -> None:
    """Send output to the null device: the parent, which read it, has exited."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _wait_for_kept(url: str, token: str, until: float, held: set[str]) -> None:
    """Wait until the currently parked browsers and the held ones are closed, or time is over."""
    found = _browsers(url, token) if time.monotonic() < until else []
    kept = {each["browserId"] for each in found if each.get("parked") or each["browserId"] in held}
    while kept and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        kept &= {each["browserId"] for each in _browsers(url, token)}


def _browsers(url: str, token: str) -> list[dict[str, object]]:
    """Return the leased browsers; empty if the server does not reply."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{url}/status", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_GRACE) as reply:
            found: list[dict[str, object]] = json.load(reply)["browsers"]
            return found
    except (OSError, ValueError, KeyError):
        return []


if __name__ == "__main__":
    main()
