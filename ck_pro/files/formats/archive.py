"""ZIP, tar, gzip, bzip2 and xz archives: a list of members, each of which is read as a file."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..document import Document, Facts, Part
from ..inside import lines_inside
from ..limits import MAX_MEMBERS
from ..problem import ToolError
from ..unpacking import save

_COMPRESSED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
_CONTENTS = "contents"


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    packed: int
    note: str = ""


class Reader(Document):
    """An archive. Its first part lists the members; each member is a part."""

    def facts(self) -> Facts:
        members = self._members
        total = sum(member.size for member in members)
        hidden = [f"{m.name!r} {m.note}" for m in members if m.note]
        hidden += [f"{m.name!r} leads outside its folder" for m in members if _leads_outside(m)]
        facts = [f"{len(members):,} files"] + [f"{total:,} bytes unpacked"] * bool(total)
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        members = [Part(m.name, f"member {m.name!r}", is_file=True) for m in self._members]
        return [Part(_CONTENTS, "contents"), *members]

    def blocks(self, part: str) -> Iterator[str]:
        sizes = {}
        for member in self._members:
            size = f"{member.size:,} bytes" if member.size or not member.packed else "size unknown"
            sizes[member.name] = f"{size} ({member.note})" if member.note else size
        return lines_inside(self, sizes)

    def member(self, part: str) -> Path | None:
        found = next((m for m in self._members if m.name == part), None)
        if found is None:
            return None
        if found.note:
            raise ToolError(f"{part!r} {found.note}: it cannot be read")
        return self._save(found)

    @functools.cached_property
    def _members(self) -> list[_Member]:
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive:
                found = [_of_zip(info) for info in archive.infolist() if not info.is_dir()]
        elif self._is_tar():
            with tarfile.open(self.path) as tar:
                found = []
                for one in tar:
                    if not one.isdir():
                        found.append(_of_tar(one))
                    if len(found) > MAX_MEMBERS:
                        break
        else:
            found = [_Member(self.path.stem or "content", 0, self.path.stat().st_size)]
        if len(found) > MAX_MEMBERS:
            raise ToolError(f"the archive has more than {MAX_MEMBERS:,} members")
        return found

    def _is_tar(self) -> bool:
        try:
            with tarfile.open(self.path) as tar:
                return tar.next() is not None  # zeros are an empty archive
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError):
            return False

    def _save(self, member: _Member) -> Path:
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive, archive.open(member.name) as source:
                return save(source, member.name, member.packed)
        if self._is_tar():
            with tarfile.open(self.path) as tar:
                inner = tar.extractfile(member.name)
                assert inner is not None
                return save(inner, member.name, self.path.stat().st_size)
        with self.path.open("rb") as file:
            start = file.read(8)
        for mark, opened in _COMPRESSED.items():
            if start.startswith(mark):
                with opened(self.path) as source:
                    return save(source, member.name, member.packed)
        raise ToolError("the archive is damaged")


def _of_zip(info: zipfile.ZipInfo) -> _Member:
    note = "is encrypted" if info.flag_bits & 1 else ""
    return _Member(info.filename, info.file_size, info.compress_size, note)


def _of_tar(info: tarfile.TarInfo) -> _Member:
    note = "" if info.isfile() else "is a link or a device"
    return _Member(info.name, info.size, 0, note)


def _leads_outside(member: _Member) -> bool:
    path = member.name.replace("\\", "/")
    return path.startswith("/") or ".." in path.split("/") or path[1:2] == ":"
