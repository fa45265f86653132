"""Write encoded video frames as a WebM file, after the element tables of webmproject.org. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CLUSTER_MS = 30_000
"""Time in one cluster; the time of a block in it has 16 bits."""


@dataclass(frozen=True)
class Chunk:
    """An encoded frame.

    Attributes:
        data: in VP8.
        time: milliseconds from the start.
        key: whether it can be decoded without the frames before it.
    """

    data: bytes
    time: int
    key: bool


def webm_file(chunks: Sequence[Chunk], width: int, height: int, duration: int) -> bytes:
    """Return a WebM file with one VP8 track.

    Args:
        chunks: in order.
        width, height: in pixels.
        duration: milliseconds.
    """
    info = _element(
        0x1549A966,
        _number(0x2AD7B1, 1_000_000),  # a unit of time is a millisecond
        _element(0x4489, struct.pack(">d", float(duration))),
        _element(0x4D80, b"ck-pro"),
        _element(0x5741, b"ck-pro"),
    )
    video = _element(0xE0, _number(0xB0, width), _number(0xBA, height))
    track = [_number(0xD7, 1), _number(0x73C5, 1), _number(0x83, 1), _number(0x9C, 0)]
    tracks = _element(0x1654AE6B, _element(0xAE, *track, _element(0x86, b"V_VP8"), video))
    clusters, cues, at = list[bytes](), list[bytes](), len(info) + len(tracks)
    for group in _groups(chunks):
        if group[0].key:
            place = _element(0xB7, _number(0xF7, 1), _number(0xF1, at))
            cues.append(_element(0xBB, _number(0xB3, group[0].time), place))
        clusters.append(_cluster(group))
        at += len(clusters[-1])
    header = _element(
        0x1A45DFA3,
        *(_number(*pair) for pair in ((0x4286, 1), (0x42F7, 1), (0x42F2, 4), (0x42F3, 8))),
        _element(0x4282, b"webm"),
        _number(0x4287, 4),
        _number(0x4285, 2),
    )
    index = [_element(0x1C53BB6B, *cues)] if cues else []
    return header + _element(0x18538067, info, tracks, *clusters, *index)


def _groups(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Yield the frames of each cluster; one starts at each key frame."""
    group: list[Chunk] = []
    for chunk in chunks:
        if group and (chunk.key or chunk.time - group[0].time > _CLUSTER_MS):
            yield group
            group = []
        group.append(chunk)
    if group:
        yield group


def _cluster(group: list[Chunk]) -> bytes:
    start = group[0].time
    blocks = [
        _element(0xA3, b"\x81", struct.pack(">hB", c.time - start, 0x80 * c.key), c.data)
        for c in group
    ]
    return _element(0x1F43B675, _number(0xE7, start), *blocks)


def _number(name: int, value: int) -> bytes:
    return _element(name, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))


def _element(name: int, *content: bytes) -> bytes:
    data = b"".join(content)
    head = name.to_bytes((name.bit_length() + 7) // 8, "big")
    return head + b"\x01" + len(data).to_bytes(7, "big") + data
