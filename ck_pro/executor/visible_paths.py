"""The file view of a worker: an allow-list of what its code can read.

It holds the system's programs, libraries and public data, the Python installation with its
packages, and what the caller names. Everything else does not exist for the code: home, the
project, its `.env`, task files, the output folder, the work folders of other tasks.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ConfigError
from ck_pro.executor.zygotes import package_folders

_UNIX_PARTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec")
_SYSTEM = (
    *(f"/{part}" for part in _UNIX_PARTS),
    *(f"/usr/{part}" for part in (*_UNIX_PARTS, "share", "include", "games")),
    *(f"/usr/local/{part}" for part in (*_UNIX_PARTS, "share", "include", "games")),
    "/usr/local/cuda*",
    *("/nix/store", "/gnu/store", "/run/current-system/sw"),
    *("/var/lib/texmf", "/var/cache/fontconfig", "/sys/devices/system"),
)
_SETTINGS = (
    *("alternatives", "fonts", "localtime", "os-release", "crypto-policies"),
    *("ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates/extracted"),
    *("texmf", "R", "java-*", "ImageMagick-*"),
)
"""Folders and links of `/etc` that programs need and that hold no secret."""
_COPIED = (
    *("passwd", "group", "nsswitch.conf", "host.conf", "hosts", "resolv.conf", "protocols"),
    *("services", "mime.types", "timezone", "ld.so.cache", "locale.alias", "ssl/openssl.cnf"),
    *("bash.bashrc", "profile"),
)
"""Small files of `/etc`: copied, since that costs less than a mount."""
_INSTALLED = ("bin", "include", "lib", "lib64", "libexec", "share", "ssl", "etc/fonts")
"""Parts of a Python installation. The folder itself may hold a project as well."""
_OWN = ("/proc", "/dev", "/sys")
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
_MOST_LINKS = 40


def session_places(workdir: Path, readable: Sequence[str] = ()) -> dict[str, Any]:
    """Describe what a worker can read and write.

    Args:
        workdir: the working directory, without symbolic links on its way.
        readable: further files and folders, as `check_readable` gives them.

    Returns:
        `workdir`; `show`: files and folders that can be read, with all that is below; `links`:
        symbolic links on the way to them, with their targets; `copies`: small files of the system;
        `folders`: those above all these, outermost first.
    """
    work = str(workdir)
    base = _view(tuple(readable))
    above = [path for path in _above(work) if path not in base["folders"]]
    above = [path for path in above if not any(inside(path, top) for top in base["show"])]
    return {
        "workdir": work,
        "show": [path for path in base["show"] if path != work],
        "links": {path: to for path, to in base["links"].items() if not inside(path, work)},
        "copies": base["copies"],
        "folders": [*base["folders"], *sorted(above)],
    }


@functools.lru_cache(maxsize=64)
def _view(readable: tuple[str, ...]) -> dict[str, Any]:
    """What `session_places` gives, save for the working directory."""
    show, links = _follow_all((*_installation(), *readable))
    links |= _follow_all(_SCRATCH)[1]
    # what is inside another place needs none of its own
    show = [path for path in show if not any(inside(path, top) for top in show if top != path)]

    def is_apart(path: str) -> bool:
        return not any(inside(path, top) for top in show)

    links = {path: target for path, target in links.items() if is_apart(path)}
    copies = [path for path in _copies() if is_apart(path)]
    folders = {one for path in (*show, *links, *copies) for one in _above(path)}
    return {
        "show": show,
        "links": links,
        "copies": copies,
        "folders": sorted(filter(is_apart, folders)),
    }


def _above(path: str) -> list[str]:
    """The folders that a path is in, without the root."""
    return [str(folder) for folder in Path(path).parents][:-1]


def check_readable(readable: Iterable[str | os.PathLike[str]], workdir: Path) -> tuple[str, ...]:
    """Give absolute paths of what the code shall be able to read.

    Raises:
        ConfigError: one does not exist, cannot be shown, or leads through the working directory,
            where the code could make it lead elsewhere.
    """
    if isinstance(readable, str | os.PathLike):
        readable = [readable]
    return tuple(_checked(os.fspath(one), str(workdir)) for one in readable)


def _checked(given: str, workdir: str) -> str:
    path = os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111
    problem = None
    if not given or not os.path.exists(path):  # noqa: PTH110
        problem = "does not exist"
    else:
        real, links = _follow(path)
        if real == "/" or any(inside(real, top) for top in _OWN):
            problem = "cannot be shown to the code; name the folders that it needs"
        elif real != workdir and any(inside(one, workdir) for one in (path, real, *links)):
            problem = "is in the working directory, which the code can read anyway"
    if problem is not None:
        raise ConfigError(f"CodeExecutor: readable: {given!r} {problem}")
    return path


def inside(path: str, top: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == top or path.startswith(top.rstrip("/") + "/")


@functools.lru_cache(maxsize=1)
def _installation() -> tuple[str, ...]:
    """The places of the system and of this interpreter that exist."""
    found = [path for pattern in _SYSTEM for path in _existing(pattern)]
    found += [path for name in _SETTINGS for path in _existing(f"/etc/{name}")]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        found += [path for name in _INSTALLED for path in _existing(f"{prefix}/{name}")]
        found += _existing(f"{prefix}/pyvenv.cfg")
    found += package_folders()
    found += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [sys.executable, *_library_folders()]
    return tuple(path for path in dict.fromkeys(found) if path and os.path.exists(path))  # noqa: PTH110


def _existing(pattern: str) -> list[str]:
    if "*" in pattern:
        return sorted(glob.glob(pattern))  # noqa: PTH207
    empty = not os.path.isfile(pattern)  # noqa: PTH113
    if empty and os.path.isdir(pattern):  # noqa: PTH112
        try:
            empty = not os.listdir(pattern)  # noqa: PTH208
        except OSError:  # the code may not read it either
            pass
    return [] if empty else [pattern]


def _library_folders() -> list[str]:
    """Folders of `LD_LIBRARY_PATH`, but for those that hold the project or the home directory."""
    kept = [os.path.realpath(path) for path in (".", os.path.expanduser("~"))]  # noqa: PTH111
    given = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [
        path
        for path in given
        if path.startswith("/")
        and not any(inside(one, os.path.realpath(path)) for one in kept)
        and os.path.isdir(path)  # noqa: PTH112
    ]


@functools.lru_cache(maxsize=1)
def _copies() -> tuple[str, ...]:
    paths = (f"/etc/{name}" for name in _COPIED)
    return tuple(path for path in paths if os.path.isfile(path))  # noqa: PTH113


def _follow_all(paths: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    places: dict[str, None] = {}
    links: dict[str, str] = {}
    for path in paths:
        real, found = _follow(path)
        places[real] = None
        links.update(found)
    return list(places), links


def _follow(path: str) -> tuple[str, dict[str, str]]:
    """Resolve a path; give the symbolic links on the way as well."""
    links: dict[str, str] = {}
    at, left = "/", path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)  # noqa: PTH120
            continue
        at_link = os.path.join(at, name)  # noqa: PTH118
        try:
            target = os.readlink(at_link)  # noqa: PTH115
        except OSError:
            at = at_link
            continue
        if len(links) == _MOST_LINKS:
            return os.path.realpath(path), links
        links[at_link] = target
        at = "/" if target.startswith("/") else at
        left += target.split("/")[::-1]
    return at, links
