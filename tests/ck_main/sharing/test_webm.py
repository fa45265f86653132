"""The WebM file: elements with right sizes, a cluster per key frame, and an index to them."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from ck_main.sharing.webm import Chunk, webm_file

_PARENTS = {0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0, 0x1F43B675, 0x1C53BB6B}
_PARENTS |= {0xBB, 0xB7}
SEGMENT, CLUSTER, BLOCK, TIME, CUE_TIME, CUE_PLACE = 0x18538067, 0x1F43B675, 0xA3, 0xE7, 0xB3, 0xF1


def parsed(data: bytes, at: int, end: int) -> list[tuple[int, int, object]]:
    """Parse elements: number, place, and content."""
    found: list[tuple[int, int, object]] = []
    while at < end:
        start, first = at, data[at]
        length = 8 - first.bit_length() + 1
        name = int.from_bytes(data[at : at + length], "big")
        at += length
        assert data[at] == 1
        size = int.from_bytes(data[at + 1 : at + 8], "big")
        at += 8
        assert at + size <= end
        content = data[at : at + size]
        found.append((name, start, parsed(data, at, at + size) if name in _PARENTS else content))
        at += size
    assert at == end
    return found


CHUNKS = st.lists(
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 40_000), st.booleans()),
    min_size=1,
    max_size=20,
)


@given(CHUNKS)
def test_each_frame_is_found_again_at_its_time(given_chunks: list[tuple[bytes, int, bool]]) -> None:
    chunks, time = list[Chunk](), 0
    for n, (data, step, key) in enumerate(given_chunks):
        chunks.append(Chunk(data, time, key or n == 0))
        time += step
    file = webm_file(chunks, 720, 468, time)
    header, segment = parsed(file, 0, len(file))
    assert (0x4282, b"webm") in [(name, content) for name, _, content in header[2]]
    inside = segment[2]
    assert isinstance(inside, list)
    read, places = list[Chunk](), {}
    for name, place, content in inside:
        if name != CLUSTER:
            continue
        assert isinstance(content, list)
        start = int.from_bytes(content[0][2], "big")
        assert content[0][0] == TIME
        places[start] = place
        for block_name, _, block in content[1:]:
            assert block_name == BLOCK and block[0] == 0x81
            offset, flags = struct.unpack(">hB", block[1:4])
            read.append(Chunk(block[4:], start + offset, bool(flags & 0x80)))
    assert read == chunks
    first = inside[0][1]  # positions count from the first element of the segment
    [index] = [content for name, _, content in inside if name == 0x1C53BB6B]
    assert isinstance(index, list)
    for _, _, cue in index:
        facts = {name: content for name, _, content in cue}
        place = {name: content for name, _, content in facts[0xB7]}[CUE_PLACE]
        time, offset = (int.from_bytes(v, "big") for v in (facts[CUE_TIME], place))
        assert places[time] == first + offset
