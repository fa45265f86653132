"""The file view of a worker: the list of files that its code can read.

It has the system's programs, libraries and public data, the Python installation with its packages,
and the files that the caller names. It has no home directory, project, `.env`, task file, output
folder or working directory of another task.
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
    *("texmf", "R", "java-*", "ImageMagick-*", "libreoffice"),
)
"""Folders and links in `/etc` that programs need and that hold no secrets."""
_COPIED = (
    *("passwd", "group", "nsswitch.conf", "host.conf", "hosts", "resolv.conf", "protocols"),
    *("services", "mime.types", "timezone", "ld.so.cache", "locale.alias", "ssl/openssl.cnf"),
    *("bash.bashrc", "profile"),
)
"""Small files in `/etc`. They are copied, which is faster than a mount."""
_INSTALLED = ("bin", "include", "lib", "lib64", "libexec", "share", "ssl", "etc/fonts")
"""Parts of a Python installation, whose folder may also contain a project."""
_OWN = ("/proc", "/dev", "/sys")
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
_MAX_LINKS = 40


def session_paths(workdir: Path, readable: Sequence[str] = ()) -> dict[str, Any]:
    """Describe the files that a worker can read and write.

    Args:
        workdir: the working directory, a path without symbolic links.
        readable: more files and folders, from `check_readable`.

    Returns:
        `workdir`; `show`: readable files, and folders with everything below; `links`: symbolic
        link on the way to them -> its target; `copies`: small system files; `folders`: the parent
        folders of all these, outermost first.
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
    """Return the part of `session_paths` that does not depend on the working directory."""
    show, links = _follow_all((*_installation(), *readable))
    links |= _follow_all(_SCRATCH)[1]
    # a path inside another one needs no entry
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
    """Return the parent folders of a path, without the root."""
    return [str(folder) for folder in Path(path).parents][:-1]


def check_readable(
    readable: Iterable[str | os.PathLike[str]], workdir: Path | None = None
) -> tuple[str, ...]:
    """Return the absolute paths of files and folders that the code may read.

    Args:
        readable: the paths.
        workdir: the working directory, if known.

    Raises:
        ConfigError: a path does not exist, is not allowed, or leads through the working directory,
            where the code could redirect it.
    """
    if isinstance(readable, str | os.PathLike):
        readable = [readable]
    return tuple(_checked(os.fspath(one), workdir) for one in readable)


def _checked(given: str, workdir: Path | None) -> str:
    path = os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111
    problem = None
    if not given or not os.path.exists(path):  # noqa: PTH110
        problem = "does not exist"
    else:
        real, links = _follow(path)
        if real == "/" or any(inside(real, top) for top in _OWN):
            problem = "is too much to show; name the folders that the code needs"
        elif workdir is not None and _leads_through(str(workdir), real, (path, *links)):
            problem = "is in the working directory, which the code can read already"
    if problem is not None:
        raise ConfigError(f"readable: {given!r} {problem}")
    return path


def _leads_through(folder: str, real: str, links: Iterable[str]) -> bool:
    return real != folder and any(inside(one, folder) for one in (real, *links))


def inside(path: str, top: str) -> bool:
    """Return whether a path is a folder or below it."""
    return path == top or path.startswith(top.rstrip("/") + "/")


@functools.lru_cache(maxsize=1)
def _installation() -> tuple[str, ...]:
    """Return the existing paths of the system and of this interpreter."""
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
        except OSError:  # not readable, for the code neither
            pass
    return [] if empty else [pattern]


def _library_folders() -> list[str]:
    """Return the folders of `LD_LIBRARY_PATH` without the project or the home directory in them."""
    hidden = [os.path.realpath(path) for path in (".", os.path.expanduser("~"))]  # noqa: PTH111
    given = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [
        path
        for path in given
        if path.startswith("/")
        and not any(inside(one, os.path.realpath(path)) for one in hidden)
        and os.path.isdir(path)  # noqa: PTH112
    ]


@functools.lru_cache(maxsize=1)
def _copies() -> tuple[str, ...]:
    paths = (f"/etc/{name}" for name in _COPIED)
    return tuple(path for path in paths if os.path.isfile(path))  # noqa: PTH113


def _follow_all(paths: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    targets: dict[str, None] = {}
    links: dict[str, str] = {}
    for path in paths:
        real, found = _follow(path)
        targets[real] = None
        links.update(found)
    return list(targets), links


def _follow(path: str) -> tuple[str, dict[str, str]]:
    """Resolve a path; return its target, and the symbolic links on the way."""
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
        if len(links) == _MAX_LINKS:
            return os.path.realpath(path), links
        links[at_link] = target
        at = "/" if target.startswith("/") else at
        left += target.split("/")[::-1]
    return at, links
