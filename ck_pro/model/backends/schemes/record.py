"""`record:FILE:TARGET`: another target completes the prompts, and its replies are recorded."""

from __future__ import annotations

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme, check_target, open_target


def _check(argument: str) -> None:
    path, _, inner = argument.partition(":")
    if not path or not inner:
        raise ConfigError("the file or the target is missing")
    check_target(inner)


def _inner(argument: str) -> str:
    return argument.partition(":")[2]


def _open(argument: str, access: Access) -> Backend:
    from ck_pro.model.recordings.record import RecordBackend

    path, _, inner = argument.partition(":")
    return RecordBackend(path, open_target(inner, access))


SCHEME = Scheme(
    "record",
    "record:FILE:TARGET",
    "TARGET; its replies are written to FILE",
    _open,
    _check,
    inner=_inner,
)
