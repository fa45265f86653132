"""A program that is the browser server as a child that leaves with its parent.

It runs `python -m web_server` with the same arguments, and ends it when standard input closes.
That happens when the parent says so by closing its end, and also when the parent is killed. (The
kernel's parent-death signal would not do: it comes when the *thread* that started us ends.)

It is run by its path, since the rest of `ck_web` need not be loaded for it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading

_GRACE = 10.0


def main() -> None:
    """Run the browser server until it ends or standard input closes."""
    threading.Thread(target=_leave_at_end_of_input, name="parent-watch", daemon=True).start()
    sys.argv[0] = "web_server"
    del sys.path[0]  # our own folder, whose modules are not meant to be found by their bare names
    runpy.run_module("web_server", run_name="__main__", alter_sys=True)


def _leave_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    # a server that does not heed the signal is not left behind
    threading.Event().wait(_GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
