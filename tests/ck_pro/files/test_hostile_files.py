"""Hostile and damaged files cost one error line, whatever the library does with them."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_files import WRITERS, write_docx

from ck_pro.files import ToolError, child, describe_file, limits, read_document
from ck_pro.files.child import in_child
from ck_pro.files.unpacking import check_size

pytestmark = pytest.mark.integration


def test_a_bomb_in_an_archive_is_refused(samples: Path) -> None:
    with pytest.raises(ToolError, match="a bomb"):
        read_document(str(samples / "all.zip"), "bomb.txt")


def test_an_office_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.docx"
    write_docx(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", b" " * (64 << 20))
    with pytest.raises(ToolError, match="a bomb"):
        describe_file(str(path))


def test_an_office_file_with_xml_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "entities.docx"
    body = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document>&a;</w:document>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", body)
    with pytest.raises(ToolError, match="declares XML entities: refused"):
        read_document(str(path))


def test_nesting_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "0.zip"
    path.write_bytes(b"x")
    for level in range(1, 8):
        outer = tmp_path / f"{level}.zip"
        with zipfile.ZipFile(outer, "w") as archive:
            archive.write(path, path.name)
        path = outer
    part = "/".join(f"{level}.zip" for level in range(6, -1, -1))
    with pytest.raises(ToolError, match="nested more than 4 levels deep"):
        read_document(str(path), part)


def test_a_reader_that_crashes_hangs_or_fills_the_memory_costs_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ToolError, match=r"its reader crashed \(signal 9\)"):
        in_child(lambda: os.kill(os.getpid(), 9))
    monkeypatch.setattr(child, "CALL_SECONDS", 0.2)
    with pytest.raises(ToolError, match=r"stopped after 0.2 s; read a smaller part"):
        in_child(lambda: os.read(os.pipe()[0], 1))
    monkeypatch.undo()
    with pytest.raises(ToolError, match="needs more than 1536 MB of memory"):
        in_child(lambda: bytearray(limits.CALL_MEMORY + (64 << 20)))
    with pytest.raises(ToolError, match=r"the file is damaged.*KeyError: 'x'"):
        in_child(lambda: {}["x"])


def test_sizes_are_checked_while_unpacking() -> None:
    check_size("small", 1000, 1)
    with pytest.raises(ToolError, match="unpacks to more than 1024 MB"):
        check_size("large", limits.MAX_UNPACKED + 1, 0)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("name", [name for name in WRITERS if name != "all.zip"])
def test_a_damaged_file_gives_text_or_one_error_line(
    samples: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    content = bytearray((samples / name).read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 20))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / name
    path.write_bytes(bytes(content))
    for read in (describe_file, read_document):
        try:
            assert isinstance(read(str(path)), str)
        except ToolError as error:
            assert "\n" not in str(error)
