"""`manual`: a person completes the prompts, at the terminal or in the browser."""

from __future__ import annotations

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme


def _check(argument: str) -> None:
    if argument:
        _port(argument)


def _port(argument: str) -> int:
    from ck_pro.model.seat.backend import read_port

    try:
        return read_port(argument)
    except ConfigError as e:
        raise ConfigError(f"{e}; known are manual, manual:web and manual:web?port=N") from None


def _open(argument: str, access: Access) -> Backend:
    if argument:
        from ck_pro.model.seat.backend import SeatBackend

        return SeatBackend(_port(argument))
    from ck_pro.model.backends.manual import ManualBackend

    return ManualBackend()


SCHEME = Scheme(
    "manual",
    "manual[:web]",
    "you, at the terminal or through a pipe; with `:web`, in the browser",
    _open,
    _check,
    interactive=True,
    offline=True,
)
