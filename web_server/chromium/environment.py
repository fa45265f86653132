"""The environment variables of Chromium and of Playwright's process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "DISPLAY",
        "XAUTHORITY",
        "LD_LIBRARY_PATH",
        "CHROME_DEVEL_SANDBOX",
        "SYSTEMROOT",
    }
)
_PREFIXES = ("LC_", "XDG_", "FONTCONFIG_", "PLAYWRIGHT_")


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that child processes get: no keys, tokens or proxies."""
    return {
        name: text
        for name, text in environment.items()
        if name in _NAMES or name.startswith(_PREFIXES)
    }


@contextmanager
def reduced(**changes: str) -> Iterator[None]:
    """Reduce the environment of this process while a child process starts.

    Playwright's process always inherits the environment.

    Args:
        changes: variables to set meanwhile.
    """
    before = dict(os.environ)
    kept = {**passed_on(before), **changes}
    try:
        for name in before.keys() - kept.keys():
            del os.environ[name]
        os.environ.update(kept)
        yield
    finally:
        for name in kept.keys() - before.keys():
            os.environ.pop(name, None)
        os.environ.update(before)
