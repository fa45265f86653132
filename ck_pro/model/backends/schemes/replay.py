"""`replay:FILE`: the replies of a recording, or of a whole run."""

from __future__ import annotations

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme

_OPTIONS = {"": True, "check=on": True, "check=off": False}


def _check(argument: str) -> None:
    path, _, option = argument.partition("?")
    if not path:
        raise ConfigError("the file is missing")
    if option not in _OPTIONS:
        raise ConfigError(f"unknown option '{option}'")


def _open(argument: str, access: Access) -> Backend:
    from ck_pro.model.recordings.replay import ReplayBackend

    _check(argument)
    path, _, option = argument.partition("?")
    return ReplayBackend(path, check=_OPTIONS[option])


SCHEME = Scheme(
    "replay",
    "replay:FILE[?check=off]",
    "a recording, or the journals or rows of a run",
    _open,
    _check,
    offline=True,
)
