"""Opens a file by its kind, also a file inside a file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from .document import Document, Reading
from .kinds import Kind, kind_of
from .limits import MAX_NESTING
from .problem import ToolError


def split_path(path: str) -> tuple[Path, str | None]:
    """Split a path such as "all.zip/a.docx" into the file on the disk and the part inside it."""
    where = Path(path)
    if not where.exists():
        for outer in where.parents:
            if outer.is_file():
                return outer, str(where.relative_to(outer))
    return where, None


def kind_of_file(path: Path) -> Kind:
    """Return the kind of a file.

    Raises:
        ToolError: there is no such file, or it cannot be read.
    """
    if not path.exists():
        raise ToolError(f"{str(path)!r} does not exist")
    if not path.is_file():
        raise ToolError(f"{str(path)!r} is not a regular file")
    try:
        return kind_of(path)
    except OSError as error:
        raise ToolError(f"{str(path)!r}: {error.strerror}") from None


def open_file(path: Path, kind: Kind, reading: Reading) -> Document:
    """Open a file of a kind.

    Raises:
        ToolError: there is no reader for its kind, or the file is damaged.
    """
    if not kind.format:
        raise ToolError(f"{path.name!r} is a file of the kind {kind.name}, which no reader opens")
    return load_reader(kind)(path, reading)


def load_reader(kind: Kind) -> type[Document]:
    """Return the class that reads a kind of file."""
    module = importlib.import_module(f".formats.{kind.format}", __package__)
    return cast("type[Document]", module.Reader)


def open_part(
    path: Path, kind: Kind, part: str | None, reading: Reading
) -> tuple[Kind, Document, str | None, str]:
    """Open the file that a part belongs to: the file itself, or a file inside it.

    Args:
        path: of the outer file.
        kind: of the outer file.
        part: such as "3", "Sheet1:2" or "inner.zip/notes.txt".
        reading: how to treat hidden parts.

    Returns:
        The kind, the document, the part of that document (None: from its start), and the prefix of
        its parts in `path`, such as "inner.zip/".
    """
    document = open_file(path, kind, reading)
    prefix = ""
    whole = part
    for _ in range(MAX_NESTING + 1):
        found = None if part is None else _inner(document, part)
        if found is None or part is None:
            return kind, document, part, prefix
        name, inner = found
        kind = kind_of_file(inner)
        document = open_file(inner, kind, reading)
        prefix += f"{name}/"
        document.shown = f"{path}/{prefix}"[:-1]
        part = part[len(name) + 1 :] or None
    raise ToolError(f"{whole!r} is nested more than {MAX_NESTING} levels deep")


def file_at(path: str) -> tuple[Path, Kind]:
    """Return a file and its kind; a file inside another one is unpacked.

    Raises:
        ToolError: there is no such file, or it cannot be read.
    """
    outer, inside = split_path(path)
    kind = kind_of_file(outer)
    if inside is None:
        return outer, kind
    kind, document, part, _ = open_part(outer, kind, inside, Reading())
    if part is not None:
        raise ToolError(f"there is no file {part!r} in {str(outer)!r}")
    return document.path, kind


def _inner(document: Document, part: str) -> tuple[str, Path] | None:
    """Return the longest member that a part begins with, and its path."""
    names = [p.name for p in document.parts() if part == p.name or part.startswith(f"{p.name}/")]
    for name in sorted(names, key=len, reverse=True):
        path = document.member(name)
        if path is not None:
            return name, path
    return None
