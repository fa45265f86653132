"""`manual`: a person completes the prompts."""

from __future__ import annotations

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme


def _check(argument: str) -> None:
    if argument:
        raise ConfigError("manual has no argument")


def _open(argument: str, access: Access) -> Backend:
    from ck_pro.model.backends.manual import ManualBackend

    return ManualBackend()


SCHEME = Scheme(
    "manual",
    "manual",
    "you, at the terminal or through a pipe",
    _open,
    _check,
    interactive=True,
    offline=True,
)
