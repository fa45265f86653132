"""Uploads: written to the session's own folder, given to pages by path, gone with the session."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st
from server_client import Client
from server_process import serving
from server_site import Site

from web_server.contract import UploadFile
from web_server.errors import BadRequest, NotFound, ServerError, TooLarge
from web_server.session.downloads import Downloads
from web_server.session.uploads import Uploads, file_name


def _sent(name: str, content: bytes) -> UploadFile:
    return UploadFile(name=name, buffer=base64.b64encode(content).decode())


def _uploads(folder: Path, max_bytes: int = 1000) -> Uploads:
    downloads = Downloads("me", folder, 1000, lambda line: None, lambda frame: True)
    return Uploads(folder / "uploads", downloads, max_bytes)


def test_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    files = [_sent("../a b.txt", b"one"), _sent("a b.txt", b"two"), _sent("", b"")]
    kept = asyncio.run(_uploads(tmp_path).keep(files))
    assert [path.read_bytes() for path in kept] == [b"one", b"two", b""]
    assert [path.name for path in kept] == ["a b.txt", "a b.txt", "file"]
    assert all(path.is_relative_to(tmp_path / "uploads") for path in kept)


@pytest.mark.parametrize(
    ("file", "error"),
    [
        (UploadFile(name="x", buffer="?"), BadRequest),
        (UploadFile(name="x", buffer="QUI"), BadRequest),
        (UploadFile(name="x", buffer="ü" * 4), BadRequest),
        ("DownloadedFiles/me/../../x", NotFound),
        ("DownloadedFiles/other/x", NotFound),
        ("/etc/passwd", NotFound),
        ("", NotFound),
    ],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, file: UploadFile | str, error: type[ServerError]
) -> None:
    with pytest.raises(error):
        asyncio.run(_uploads(tmp_path).keep([file]))
    assert not [path for path in tmp_path.glob("uploads/**/*") if path.is_file()]


def test_a_session_uploads_so_much_and_no_more(tmp_path: Path) -> None:
    uploads = _uploads(tmp_path, 10)
    asyncio.run(uploads.keep([_sent("a", b"123456")]))
    with pytest.raises(TooLarge, match="10 bytes together"):
        asyncio.run(uploads.keep([_sent("b", b"123456")]))
    asyncio.run(uploads.keep([_sent("c", b"123")]))


@given(st.text())
@example("a" * 300 + ".tar.gz")
@example("東京" * 100 + ".txt")
@example("..")
@example("C:\\temp\\x.txt")
@example("a\0b\n")
def test_every_name_is_one_path_component(name: str) -> None:
    made = file_name(name.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    assert made not in ("", ".", "..") and "/" not in made and "\0" not in made
    assert len(made.encode()) <= 255


@pytest.mark.browser
def test_a_large_file_reaches_the_page_and_goes_with_the_session(server_site: Site) -> None:
    with serving(server_site, max_browsers=1) as server:
        with Client(server.url, server_site.url) as client:
            client.open("/upload")
            files = [
                {"name": "Büro & 東京.csv", "buffer": base64.b64encode(b"a,b").decode()},
                {
                    "name": "big.bin",
                    "buffer": base64.b64encode(b"x" * 60_000_000 + b"end").decode(),
                },
            ]
            tree = client.act("upload", "button 'Files'", files=files)
            assert "Büro & 東京.csv 3 text/csv, big.bin 60000003" in tree
            client.act("click", "button 'Read'")
            client.act("wait_for", text="ends in end")  # the page reads it in its own time
            folder = server._pool.leases[client.browser].session.folder
            assert len(list(folder.glob("uploads/*/*"))) == 2
        assert not folder.exists()
        body = b'{"files": "' + b"x" * 101_000_000 + b'"}'
        refused = requests.post(f"{server.url}/performAction", data=body, timeout=120)
        assert refused.status_code == 413 and "100,000,000 bytes" in refused.json()["error"]
