"""Start Ray on this machine, or join a cluster, with progress messages and patience.

Ray's own timeouts do not fit a command line. It gives its processes 15 and 30 s to start, which a
busy machine exceeds. If no process listens at an address, it retries silently for minutes.
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
_POLL_SECONDS = 0.2


def check_ray() -> None:
    """Raise ConfigError if Ray is not installed."""
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ConfigError('--ray needs the package ray: pip install "ck-pro[ray]"') from None


@contextmanager
def joined(address: str, note: Callable[[str], None], stop: threading.Event) -> Iterator[None]:
    """Within this context, this process is the driver of a Ray cluster, unless `stop` is set.

    Args:
        address: see `RayRunner`.
        note: called with one line if joining takes long.
        stop: ends the wait.

    Raises:
        EnvironmentFailure: the cluster cannot be joined.
    """
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
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
    """Start Ray on this machine; retry, because a busy machine exceeds Ray's fixed timeouts."""
    for number in range(1, _START_ATTEMPTS + 1):
        try:
            return _init_ray("local", note, include_dashboard=False)
        except EnvironmentFailure as e:
            if stop.is_set():
                return None
            if number == _START_ATTEMPTS:
                raise EnvironmentFailure(f"{e}; try again when this machine is less busy") from None
            note(f"{e}; starting it again ({number + 1} of {_START_ATTEMPTS})")
    return None


def _init_ray(address: str, note: Callable[[str], None], **settings: Any) -> None:
    """Join or start Ray.

    Raises:
        EnvironmentFailure: Ray reported an error.
    """
    import ray

    slow = f"--ray {address}: still waiting for Ray"
    if address != "local":
        slow += "; if the cluster requires a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    timer = threading.Timer(_SLOW_SECONDS, note, [slow])
    timer.daemon = True
    timer.start()
    try:
        with _own_signals():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as e:  # noqa: BLE001 - Ray raises errors of any class
        raise EnvironmentFailure(f"--ray {address}: {last_line(e)}") from None
    finally:
        timer.cancel()


def _await_listener(address: str, note: Callable[[str], None], stop: threading.Event) -> None:
    """Wait until a process listens at HOST:PORT.

    Raises:
        EnvironmentFailure: no process listens there in time.
    """
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return  # "auto": Ray itself reports a missing cluster at once
    deadline = time.monotonic() + _JOIN_SECONDS
    reported = False
    while not stop.is_set():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _JOIN_SECONDS).close()
            return
        except (OSError, OverflowError) as e:
            if time.monotonic() > deadline:
                raise EnvironmentFailure(
                    f"--ray {address}: no cluster responds ({e}); check the address"
                ) from None
        if not reported:
            note(f"waiting for Ray at {address} ({_JOIN_SECONDS:g} s at most)")
            reported = True
        stop.wait(_POLL_SECONDS)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore this process's signal handlers, which Ray replaces."""
    main = threading.current_thread() is threading.main_thread()
    numbers = STOPPING if main else ()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def last_line(error: BaseException) -> str:
    """Return the last line of a Ray error, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
