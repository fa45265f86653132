"""The functions that agents call: describe, read, search, and tables as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from .child import in_child
from .document import Document, Facts, Part, Reading, Row
from .kinds import Kind, size_text
from .limits import MAX_HITS, MAX_TEXT
from .marks import states
from .opening import kind_of_file, load_reader, open_part, split_path
from .problem import ToolError

_T = TypeVar("_T")
_MAX_LISTED = 40
_DEFAULT = Reading()


def describe_file(path: str) -> str:
    """Return the kind and size of a file, its parts, and what is hidden in it."""
    return _prepared(path, lambda where, kind, inside: _describe(path, where, kind, inside))


def read_document(
    path: str,
    part: str | int | None = None,
    changes: str = "mark",
    authors: list[str] | None = None,
    hidden: str = "mark",
) -> str:
    """Return the text of a file from a part on, as far as a result goes."""
    reading = _reading(changes, authors, hidden)
    return _prepared(
        path, lambda where, kind, inside: _read(str(where), kind, _joined(inside, part), reading)
    )


def search_file(path: str, text: str) -> str:
    """Return the places where a text occurs in a file, with their parts."""
    return _prepared(path, lambda where, kind, inside: _search(path, where, kind, inside, text))


def read_table(path: str, part: str | int | None = None, n: int = 1) -> list[Row]:
    """Return the n-th table of a part as rows of cells."""
    return _prepared(
        path, lambda where, kind, inside: _table(str(where), kind, _joined(inside, part), n)
    )


def _prepared(path: str, read: Callable[[Path, Kind, str | None], _T]) -> _T:
    """Load the reader in this process, so that the next call need not, and read in a child."""
    where, inside = split_path(path)
    kind = kind_of_file(where)
    if kind.format:
        load_reader(kind)
    return in_child(lambda: read(where, kind, inside))


def _joined(inside: str | None, part: str | int | None) -> str | None:
    """Return the name of a part of a file, which may be inside another one."""
    names = [str(name) for name in (inside, part) if name is not None]
    return "/".join(names) or None


def _reading(changes: str, authors: list[str] | str | None, hidden: str) -> Reading:
    if changes not in ("mark", "accept", "reject"):
        raise ToolError(f"changes must be 'mark', 'accept' or 'reject', not {changes!r}")
    if hidden not in ("mark", "omit"):
        raise ToolError(f"hidden must be 'mark' or 'omit', not {hidden!r}")
    named = [authors] if isinstance(authors, str) else authors
    return Reading(changes, None if named is None else tuple(named), hidden)  # type: ignore[arg-type]


# --- describe ---


def _describe(path: str, where: Path, kind: Kind, inside: str | None) -> str:
    if not kind.format:
        return f"{path}: {kind.name}, {_size(where)}; no reader opens it"
    kind, document, part, _ = open_part(where, kind, inside, Reading())
    if part is not None:
        raise ToolError(f"there is no file {part!r} in {str(where)!r}")
    where = document.path
    found, parts = document.facts(), document.parts()
    lines = [f"{path}: " + ", ".join([kind.name, _size(where), *found.facts])]
    lines += _listed("hidden", found)
    if len(parts) > 1:
        lines.append(f"parts ({len(parts):,}): {_names(parts)}")
    lines.append(_next_call(path, kind, parts))
    return "\n".join(lines)


def _next_call(path: str, kind: Kind, parts: Sequence[Part]) -> str:
    """Return the line that names the call for the content."""
    if kind.format == "audio":
        return f"listen to it: transcribe({path!r})"
    if kind.format == "image":
        return f"look at it: look({path!r})"
    first = _call(path, parts[0].name if len(parts) > 1 else None)
    if kind.format == "archive":
        return f"list the files inside, also those in inner archives and e-mails: {first}"
    return f"read it: {first}"


def _listed(what: str, found: Facts) -> list[str]:
    if not found.hidden:
        return [f"{what}: nothing found"]
    shown = [f"- {line}" for line in found.hidden[:_MAX_LISTED]]
    if len(found.hidden) > _MAX_LISTED:
        shown.append(f"- and {len(found.hidden) - _MAX_LISTED:,} more")
    return [f"{what} (a person may not see it at once):", *shown]


def _names(parts: Sequence[Part]) -> str:
    names = [part.name for part in parts[:_MAX_LISTED]]
    if all(name.isdigit() for name in names):
        return f"{parts[0].name} to {parts[-1].name}"
    more = f", and {len(parts) - _MAX_LISTED:,} more" if len(parts) > _MAX_LISTED else ""
    return ", ".join(map(repr, names)) + more


def _size(path: Path) -> str:
    return size_text(path.stat().st_size)


# --- read ---


def _read(path: str, kind: Kind, part: str | None, reading: Reading) -> str:
    kind, document, inner, prefix = open_part(Path(path), kind, part, reading)
    parts = document.parts()
    name, piece = _piece(inner, parts)
    index = 0 if name is None else _index(parts, name, kind)
    texts: list[str] = []
    size = 0
    while index < len(parts):
        now = parts[index]
        if now.is_file:
            break
        text, more = _slice(document, now.name, piece)
        label = "" if len(parts) == 1 and piece == 1 and not more else _heading(now, piece, more)
        if texts and size + len(label) + len(text) > MAX_TEXT:
            break
        texts.append(label + text)
        size += len(texts[-1]) + 1
        if more:
            texts.append(f"[more: {_call(path, f'{prefix}{now.name}:{piece + 1}', reading)}]")
            return "\n".join(texts)
        piece = 1
        index += 1
        if inner is not None:
            break
    return "\n".join([*texts, _following(path, parts, index, prefix, reading)])


def _following(path: str, parts: Sequence[Part], index: int, prefix: str, reading: Reading) -> str:
    """Return the line that ends a result: how to read on."""
    if index == len(parts):
        return "[end of the file]"
    calls = [_call(path, prefix + part.name, reading) for part in parts[index : index + 1]]
    if not parts[index].is_file:
        return f"[{parts[index].title} follows: {calls[0]}]"
    return f"[{len(parts) - index:,} files inside, the first: {calls[0]}]"


def _heading(part: Part, piece: int, more: bool) -> str:
    which = f", piece {piece}" if more or piece > 1 else ""
    return f"== {part.title}{which} ==\n"


def _piece(part: str | None, parts: Sequence[Part]) -> tuple[str | None, int]:
    """Split "Sheet1:2" into the name of the part and the number of the piece."""
    if part is None or any(p.name == part for p in parts):
        return part, 1
    name, colon, number = part.rpartition(":")
    known = not name or any(p.name == name for p in parts)
    if colon and known and number.isdigit() and int(number) > 0:
        return name or parts[0].name, int(number)
    return part, 1


def _index(parts: Sequence[Part], name: str, kind: Kind) -> int:
    for index, part in enumerate(parts):
        if part.name == name:
            return index
    wanted = name.casefold()
    near = [n for n, p in enumerate(parts) if wanted in (p.name.casefold(), p.title.casefold())]
    if len(near) == 1:
        return near[0]
    raise ToolError(f"no part {name!r} in this file ({kind.name}); it has {_names(parts)}")


def _slice(document: Document, part: str, piece: int) -> tuple[str, bool]:
    """Return the piece of a part's text, and whether more follows."""
    for number, (text, more) in enumerate(_slices(document.blocks(part)), 1):
        if number == piece:
            return text, more
    raise ToolError(f"part {part!r} has no piece {piece}")


def _slices(blocks: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Group blocks into pieces of at most `MAX_TEXT` characters."""
    now: list[str] = []
    size = 0
    for block in blocks:
        for start in range(0, max(1, len(block)), MAX_TEXT):
            text = block[start : start + MAX_TEXT]
            if now and size + len(text) > MAX_TEXT:
                yield "".join(now), True
                now, size = [], 0
            now.append(text)
            size += len(text)
    yield "".join(now), False


def _call(path: str, part: str | None, reading: Reading = _DEFAULT) -> str:
    given = [repr(path)]
    if part is not None:
        given.append(f"part={part!r}")
    if reading.changes != "mark":
        given.append(f"changes={reading.changes!r}")
    if reading.authors is not None:
        given.append(f"authors={list(reading.authors)!r}")
    if reading.hidden != "mark":
        given.append(f"hidden={reading.hidden!r}")
    return f"read_document({', '.join(given)})"


# --- search and tables ---


def _search(path: str, where: Path, kind: Kind, inside: str | None, text: str) -> str:
    if not text.strip():
        raise ToolError("give the text to search for")
    kind, document, part_name, _ = open_part(where, kind, inside, Reading())
    wanted = " ".join(text.split()).casefold()
    first_word = wanted.split()[0]
    hits: list[str] = []
    total = 0
    parts = document.parts()
    if part_name is not None:
        parts = [parts[_index(parts, part_name, kind)]]
    for part in parts:
        if part.is_file:
            continue
        for block in document.plain_blocks(part.name):
            if "[" not in block and first_word not in block.casefold():
                continue
            for line in block.splitlines():
                found = next((one for one in states(line) if wanted in one.casefold()), None)
                if found is not None:
                    total += 1
                    if len(hits) < MAX_HITS:
                        hits.append(f"{part.name}: {_around(found, wanted)}")
    files = [part for part in parts if part.is_file]
    note = [f"not searched: {len(files):,} files inside ({_names(files)})"] if files else []
    note += [f"not searched: {line}" for line in document.unread]
    if not total:
        return "\n".join([f"{text!r} does not occur in the text of {path}", *note])
    first = f", first {MAX_HITS}" if total > MAX_HITS else ""
    return "\n".join([f"{total:,} lines{first}, each after the name of its part:", *hits, *note])


def _around(line: str, wanted: str) -> str:
    at = line.casefold().find(wanted)
    start, end = max(0, at - 100), at + len(wanted) + 200
    return ("..." if start else "") + line[start:end] + ("..." if end < len(line) else "")


def _table(path: str, kind: Kind, part: str | None, n: int) -> list[Row]:
    kind, document, inner, _ = open_part(Path(path), kind, part, Reading())
    parts = document.parts()
    names = [part.name for part in parts if not part.is_file]
    if inner is not None:
        names = [parts[_index(parts, inner, kind)].name]
    seen = 0
    for name in names:
        tables = document.tables(name)
        if n <= seen + len(tables):
            return tables[n - seen - 1]
        seen += len(tables)
    raise ToolError(f"{path!r} has {seen} tables there, so no table {n}")
