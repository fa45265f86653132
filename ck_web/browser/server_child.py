"""A program that is the browser server as a child that leaves with its parent.

It runs `python -m web_server` with the same arguments, and ends it when standard input closes.
That happens when the parent says so by closing its end, and also when the parent is killed. (The
kernel's parent-death signal would not do: it comes when the *thread* that started us ends.)

A line `SECONDS URL NOTE` on standard input lets it stay after that for as long as it holds a
browser that was parked then, at most so many seconds from the line on. URL is its own address; NOTE
is a file that it removes at its end.

It is run by its path, since the rest of `ck_web` need not be loaded for it.
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
_LOOK_SECONDS = 1.0
_MOST_SECONDS = 24 * 3600.0


def main() -> None:
    """Run the browser server until it ends or standard input closes."""
    token = os.environ.get("CK_WEB_TOKEN", "")
    watch = threading.Thread(target=_watch, args=(token,), name="parent-watch", daemon=True)
    watch.start()
    sys.argv[0] = "web_server"
    del sys.path[0]  # our own folder, whose modules are not meant to be found by their bare names
    runpy.run_module("web_server", run_name="__main__", alter_sys=True)


def _watch(token: str) -> None:
    told = b""
    until, url, note = 0.0, "", ""
    while piece := os.read(0, 4096):
        *lines, told = (told + piece).split(b"\n")
        if lines:
            seconds, url, note = lines[-1].decode().split(" ", 2)
            until = time.monotonic() + min(float(seconds), _MOST_SECONDS)
    if until:
        _silence()
        _stay(url, token, until)
        with contextlib.suppress(OSError):
            Path(note).unlink()
    os.kill(os.getpid(), signal.SIGTERM)
    # a server that does not heed the signal is not left behind
    threading.Event().wait(_GRACE)
    os._exit(1)


def _silence() -> None:
    """Nothing reads our output any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _stay(url: str, token: str, until: float) -> None:
    """Return when the browsers that are parked now are gone, or the time is over."""
    kept = {each["browserId"] for each in _browsers(url, token) if each.get("parked")}
    while kept and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        kept &= {each["browserId"] for each in _browsers(url, token)}


def _browsers(url: str, token: str) -> list[dict[str, object]]:
    """The leased browsers; none if the server does not answer."""
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
