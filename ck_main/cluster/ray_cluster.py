"""Joining Ray: one that is started here, or a cluster that is there already, however slowly.

The waits of Ray itself are no good for a person: what it starts has 15 and 30 s to come up, which
a busy machine exceeds, and at an address where nothing listens it tries for minutes, in silence.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ck_main.runner.signals import STOPPING
from ck_pro.exceptions import ConfigError, EnvironmentFailure

_START_ATTEMPTS = 6
_JOIN_SECONDS = 30.0
_SLOW_SECONDS = 20.0
_LOOK_SECONDS = 0.2


def check_ray() -> None:
    """Raise ConfigError if Ray is not installed."""
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ConfigError('--ray needs the package ray: pip install "ck-pro[ray]"') from None


@contextmanager
def joined(address: str, note: Callable[[str], None], stop: threading.Event) -> Iterator[None]:
    """While it is entered, we are the driver of a Ray cluster, unless `stop` was set before.

    Args:
        address: see `RayRunner`.
        note: told, if it takes long.
        stop: ends the wait.

    Raises:
        EnvironmentFailure: it cannot be joined.
    """
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to Ray's makers
    if address == "local":
        _start_ray(note, stop)
    else:
        _await_listener(address, note, stop)
        if not stop.is_set():
            _init_ray(address, note)
    try:
        yield
    finally:
        with _own_signals():
            ray.shutdown()


def _start_ray(note: Callable[[str], None], stop: threading.Event) -> None:
    """Start Ray here, again if it does not come up: where much else runs, its own time limits for
    its parts are too short (15 s for an agent, 30 s for the node), and none can be set."""
    for number in range(1, _START_ATTEMPTS + 1):
        try:
            return _init_ray("local", note, include_dashboard=False)
        except EnvironmentFailure as e:
            if stop.is_set():
                return None
            if number == _START_ATTEMPTS:
                raise EnvironmentFailure(f"{e}; try again when less runs here") from None
            note(f"{e}; it is started again ({number + 1} of {_START_ATTEMPTS})")
    return None


def _init_ray(address: str, note: Callable[[str], None], **settings: Any) -> None:
    """Join or start Ray.

    Raises:
        EnvironmentFailure: it did not work.
    """
    import ray

    slow = f"--ray {address}: Ray takes its time"
    if address != "local":
        slow += "; a cluster that asks for a token wants RAY_AUTH_MODE=token and its token here too"
    told = threading.Timer(_SLOW_SECONDS, note, [slow])
    told.daemon = True
    told.start()
    try:
        with _own_signals():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as e:  # noqa: BLE001 - Ray raises plain ones, for whatever went wrong there
        raise EnvironmentFailure(f"--ray {address}: {last_line(e)}") from None
    finally:
        told.cancel()


def _await_listener(address: str, note: Callable[[str], None], stop: threading.Event) -> None:
    """Wait until something listens at HOST:PORT; Ray itself would try for minutes, in silence.

    Raises:
        EnvironmentFailure: nothing did in time.
    """
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return  # "auto": Ray looks for it on this machine, and says at once if it is not there
    deadline = time.monotonic() + _JOIN_SECONDS
    told = False
    while not stop.is_set():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _JOIN_SECONDS).close()
            return
        except (OSError, OverflowError) as e:
            if time.monotonic() > deadline:
                raise EnvironmentFailure(
                    f"--ray {address}: nothing answers there ({e}); is a cluster there?"
                ) from None
        if not told:
            note(f"waiting for Ray at {address} ({_JOIN_SECONDS:g} s at most)")
            told = True
        stop.wait(_LOOK_SECONDS)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Put back what Ray does to the signals that stop us."""
    main = threading.current_thread() is threading.main_thread()
    numbers = STOPPING if main else ()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def last_line(error: BaseException) -> str:
    """The last line of what an error of Ray's says, which is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
