"""Files inside files: the list of all levels, limits, and what a call leaves on the disk."""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from sample_files import write_png, write_wav

from ck_pro.files import ToolError, describe_file, limits, read_document, read_table, render

pytestmark = pytest.mark.integration

LIST = "backup/mail.tar.gz/2024/a.eml/list.zip/data/lots.csv"


def zipped(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def write_backup(path: Path) -> None:
    """Write a ZIP with a tar archive with an e-mail with a ZIP with a table."""
    mail = EmailMessage()
    mail.set_content("See the list.")
    packed = zipped({"data/lots.csv": b"lot;n\nL1;7\n"})
    mail.add_attachment(packed, "application", "zip", filename="list.zip")
    tar_data = io.BytesIO()
    with tarfile.open(fileobj=tar_data, mode="w:gz") as tar:
        info = tarfile.TarInfo("2024/a.eml")
        info.size = len(mail.as_bytes())
        tar.addfile(info, io.BytesIO(mail.as_bytes()))
    path.write_bytes(zipped({"backup/mail.tar.gz": tar_data.getvalue(), "note": b"hello"}))


def test_the_contents_list_the_files_of_all_levels_with_their_kinds(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    write_backup(path)
    assert "list the files inside" in describe_file(str(path))
    text = read_document(str(path))
    assert f"{LIST}\t11 bytes\tCSV table\n" in text
    assert "backup/mail.tar.gz/2024/a.eml\t" in text and "\te-mail\n" in text
    assert "note\t5 bytes\ttext\n" in text
    assert read_table(str(path), LIST) == [["lot", "n"], ["L1", "7"]]


def test_a_list_of_many_or_large_files_inside_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = zipped({f"{n}.txt": b"x" for n in range(300)})
    noise = bytes(range(256)) * 8
    path = tmp_path / "all.zip"
    path.write_bytes(zipped({"large.bin": noise * 40, "many.zip": inner, "last.zip": inner}))
    monkeypatch.setattr("ck_pro.files.inside.INSIDE_BYTES", 60_000)
    text = read_document(str(path))
    assert "large.bin\t81,920 bytes\tnot opened: " in text
    assert "last.zip" in text and len(text.splitlines()) < limits.MAX_INSIDE + 10


def test_a_member_that_cannot_be_opened_does_not_end_the_list(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(zipped({"bad.zip": b"PK\x03\x04" + bytes(50), "b.txt": b"hello"}))
    text = read_document(str(path))
    assert "bad.zip\t54 bytes\tdamaged ZIP archive\n" in text and "b.txt\t5 bytes\ttext\n" in text


def test_a_call_leaves_no_unpacked_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write_backup(tmp_path / "all.zip")
    assert "L1;7" in read_document(str(tmp_path / "all.zip" / LIST))
    with pytest.raises(ToolError, match="no part 'x'"):
        read_document(str(tmp_path / "all.zip" / "x"))
    assert [one.name for one in tmp_path.iterdir()] == ["all.zip"]


def test_one_call_unpacks_no_more_than_its_limit_in_all_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_pro.files.unpacking._left", [100])
    (tmp_path / "a.zip").write_bytes(zipped({"b.txt": b"x" * 101}))
    with pytest.raises(ToolError, match=r"'b\.txt' unpacks to more than the limit of this call"):
        read_document(str(tmp_path / "a.zip"), "b.txt")


def test_a_file_inside_is_named_by_a_path_that_other_calls_accept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_wav(tmp_path / "a.wav")
    write_png(tmp_path / "a.png")
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.write("a.wav")
        archive.write("a.png")
    assert "listen to it: transcribe('all.zip/a.wav')" in describe_file("all.zip/a.wav")
    assert "transcribe('all.zip/a.wav') returns" in read_document("all.zip/a.wav")
    assert "look at it: look('all.zip/a.png')" in describe_file("all.zip/a.png")


def test_a_picture_never_replaces_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_png(tmp_path / "a.png")
    (tmp_path / "a-page1.png").write_text("an input of the task")
    assert render("a.png") == "a-page1-2.png"
    assert (tmp_path / "a-page1.png").read_text() == "an input of the task"
