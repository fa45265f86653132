"""Writes OLE compound files (Microsoft, [MS-CFB]), and Outlook messages in them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


class _Entry:
    def __init__(self, name: str, data: bytes | None):
        self.name, self.data = name, data
        self.children: dict[str, _Entry] = {}
        self.number, self.right, self.child, self.start = 0, _FREE, _FREE, _END
        self.size = 0

    def packed(self) -> bytes:
        name = self.name.encode("utf-16-le") + b"\0\0"
        kind = 5 if self.number == 0 else 1 if self.data is None else 2
        head = name.ljust(64, b"\0") + struct.pack("<HBB", len(name), kind, 1)
        links = struct.pack("<III", _FREE, self.right, self.child)
        return head + links + bytes(36) + struct.pack("<IQ", self.start, self.size)


def write_ole(path: Path, streams: Mapping[str, bytes]) -> None:
    """Write a compound file.

    Args:
        path: of the file.
        streams: path of each stream, such as "storage/stream", and its bytes.
    """
    root = _Entry("Root Entry", None)
    for name, data in streams.items():
        *folders, last = name.split("/")
        at = root
        for folder in folders:
            at = at.children.setdefault(folder, _Entry(folder, None))
        at.children[last] = _Entry(last, data)
    entries = _numbered(root)
    sectors: list[bytes] = []
    fat: list[int] = []
    mini, mini_fat = bytearray(), list[int]()
    for entry in entries[1:]:
        if entry.data is None:
            continue
        entry.size = len(entry.data)
        if entry.size >= _CUTOFF:
            entry.start = _append(sectors, fat, entry.data)
        elif entry.data:
            entry.start = len(mini_fat)
            count = -(-entry.size // _MINI)
            mini_fat += [*range(entry.start + 1, entry.start + count), _END]
            mini += entry.data.ljust(count * _MINI, b"\0")
    root.start, root.size = _append(sectors, fat, bytes(mini)), len(mini)
    mini_start = _append(sectors, fat, b"".join(struct.pack("<I", n) for n in mini_fat), b"\xff")
    folder = _append(sectors, fat, b"".join(entry.packed() for entry in entries))
    tables = 1
    while len(fat) + tables > tables * (_SECTOR // 4):
        tables += 1
    first = len(sectors)
    fat += [_FAT] * tables
    table = b"".join(struct.pack("<I", n) for n in fat).ljust(tables * _SECTOR, b"\xff")
    minis = -(-len(mini_fat) * 4 // _SECTOR)
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(10)
    header += struct.pack("<IIIIIIII", tables, folder, 0, _CUTOFF, mini_start, minis, _END, 0)
    header += struct.pack("<109I", *range(first, first + tables), *[_FREE] * (109 - tables))
    path.write_bytes(header + b"".join(sectors) + table)


def _numbered(root: _Entry) -> list[_Entry]:
    """Number the entries and link them: siblings as a chain, in the order that readers expect."""
    entries = [root]
    for entry in entries:
        children = sorted(entry.children.values(), key=lambda e: (len(e.name), e.name.upper()))
        for child in children:
            child.number = len(entries)
            entries.append(child)
        if children:
            entry.child = children[0].number
        for child, following in pairwise(children):
            child.right = following.number
    return entries


def _append(sectors: list[bytes], fat: list[int], data: bytes, fill: bytes = b"\0") -> int:
    if not data:
        return _END
    start, count = len(sectors), -(-len(data) // _SECTOR)
    padded = data.ljust(count * _SECTOR, fill)
    sectors += [padded[at : at + _SECTOR] for at in range(0, len(padded), _SECTOR)]
    fat += [*range(start + 1, start + count), _END]
    return start


def write_word_97(path: Path) -> None:
    """A Word 97 document: changes by two authors, hidden text, a field, a table, a footnote."""
    runs: list[tuple[str, bytes]] = [
        ("Ship on ", b""),
        ("Monday", struct.pack("<HBHH", 0x0800, 1, 0x4863, 1)),
        ("Friday", struct.pack("<HBHH", 0x0801, 1, 0x4804, 1)),
        (" at noon", struct.pack("<HBHH", 0x0801, 1, 0x4804, 2)),
        (".\r", b""),
        ("Dock 12", struct.pack("<HB", 0x083C, 1)),
        ("\rPage \x13 PAGE \x147\x15\rbox\x077\x07\x07end\r", b""),
        ("No ferry in July.\r", b""),
    ]
    text = "".join(words for words, _ in runs)
    note = len(runs[-1][0])
    start, page = 0x800, 0xC00
    main = bytearray(page + _SECTOR)
    struct.pack_into("<H8xH", main, 0, 0xA5EC, 0x0200)
    struct.pack_into("<II", main, 0x4C, len(text) - note, note)
    main[start : start + len(text)] = text.encode("cp1252")
    ends, at, free = [start], start, _SECTOR - 2
    for number, (words, properties) in enumerate(runs):
        at += len(words)
        ends.append(at)
        if properties:
            free -= (len(properties) + 2) // 2 * 2
            main[page + free : page + free + 1 + len(properties)] = (
                bytes([len(properties)]) + properties
            )
            main[page + 4 * (len(runs) + 1) + number] = free // 2
    struct.pack_into(f"<{len(ends)}I", main, page, *ends)
    main[page + _SECTOR - 1] = len(runs)
    pieces = struct.pack("<II", 0, len(text)) + struct.pack("<HIH", 0, start * 2 | 1 << 30, 0)
    names = b"".join(struct.pack("<H", len(n)) + n.encode("utf-16-le") for n in ("?", "Ann", "Bob"))
    tables = (
        (0x00FA, struct.pack("<III", start, at, page // _SECTOR)),
        (0x01A2, b"\x02" + struct.pack("<I", len(pieces)) + pieces),
        (0x0232, struct.pack("<HHH", 0xFFFF, 3, 0) + names),
    )
    table = b""
    for place, data in tables:
        struct.pack_into("<II", main, place, len(table), len(data))
        table += data
    write_ole(path, {"WordDocument": bytes(main), "1Table": table})


# --- Outlook messages ([MS-OXMSG]) ---

Properties = Mapping[int, str | bytes | int]


def message_streams(
    properties: Properties,
    recipients: tuple[Properties, ...] = (),
    attachments: tuple[Properties | dict[str, bytes], ...] = (),
    header: int = 32,
) -> dict[str, bytes]:
    """Return the streams of an Outlook message.

    Args:
        properties: values by the number of the property.
        recipients: their properties.
        attachments: their properties; or the streams of an attached message.
        header: bytes before the properties; 24 for an attached message.
    """
    made = _properties(properties, header)
    for number, one in enumerate(recipients):
        folder = f"__recip_version1.0_#{number:08X}/"
        made.update({folder + name: data for name, data in _properties(one, 8).items()})
    for number, one in enumerate(attachments):
        folder = f"__attach_version1.0_#{number:08X}/"
        if any(isinstance(key, str) for key in one):
            inner = {f"__substg1.0_3701000D/{name}": data for name, data in one.items()}
            inner |= _properties({0x3705: 5}, 8)
        else:
            inner = _properties({0x3705: 1, **one}, 8)  # type: ignore[dict-item]
        made.update({folder + name: data for name, data in inner.items()})
    return made


def _properties(values: Properties, header: int) -> dict[str, bytes]:
    listed, made = bytes(header), dict[str, bytes]()
    for number, value in values.items():
        if isinstance(value, int):
            kind = 0x40 if value >> 32 else 0x03
            listed += struct.pack("<HHIQ", kind, number, 6, value)
            continue
        kind = 0x1F if isinstance(value, str) else 0x102
        data = value.encode("utf-16-le") if isinstance(value, str) else value
        listed += struct.pack("<HHIQ", kind, number, 6, len(data))
        made[f"__substg1.0_{number:04X}{kind:04X}"] = data
    return {"__properties_version1.0": listed, **made}
