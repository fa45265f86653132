"""The kind of a file, by its content; the name decides only between kinds of text."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from .encodings import utf16_without_mark

_HEAD = 8192


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: for people, such as "Word document".
        format: name of the module in `formats` whose `Reader` opens it; "" if none can.
    """

    name: str
    format: str = ""


_BY_START: tuple[tuple[bytes, Kind], ...] = (
    (b"%PDF-", Kind("PDF", "pdf")),
    (b"{\\rtf", Kind("RTF document", "office.rtf")),
    (b"SQLite format 3\0", Kind("SQLite database", "sqlite")),
    (b"PAR1", Kind("Parquet table", "parquet")),
    (b"\x89PNG\r\n\x1a\n", Kind("PNG image", "image")),
    (b"\xff\xd8\xff", Kind("JPEG image", "image")),
    (b"GIF8", Kind("GIF image", "image")),
    (b"BM", Kind("BMP image", "image")),
    (b"II*\0", Kind("TIFF image", "image")),
    (b"MM\0*", Kind("TIFF image", "image")),
    (b"ID3", Kind("MP3 audio", "audio")),
    (b"\xff\xfb", Kind("MP3 audio", "audio")),
    (b"OggS", Kind("Ogg audio", "audio")),
    (b"fLaC", Kind("FLAC audio", "audio")),
    (b"\x1f\x8b", Kind("gzip archive", "archive")),
    (b"BZh", Kind("bzip2 archive", "archive")),
    (b"\xfd7zXZ\0", Kind("xz archive", "archive")),
    (b"7z\xbc\xaf\x27\x1c", Kind("7z archive")),
    (b"Rar!", Kind("RAR archive")),
    (b"\x7fELF", Kind("ELF program")),
    (b"MZ", Kind("Windows program")),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IN_RIFF = {
    b"WAVE": Kind("WAV audio", "audio"),
    b"WEBP": Kind("WebP image", "image"),
    b"AVI ": Kind("AVI video"),
}
_IN_ZIP = (
    ("word/document.xml", Kind("Word document", "office.docx")),
    ("xl/workbook.xml", Kind("Excel workbook", "office.xlsx")),
    ("xl/workbook.bin", Kind("Excel binary workbook")),
    ("ppt/presentation.xml", Kind("PowerPoint presentation", "office.pptx")),
)
_BY_MIMETYPE = {
    "application/epub+zip": Kind("EPUB book", "epub"),
    "application/vnd.oasis.opendocument.text": Kind("OpenDocument text", "office.odt"),
    "application/vnd.oasis.opendocument.spreadsheet": Kind(
        "OpenDocument spreadsheet", "office.ods"
    ),
    "application/vnd.oasis.opendocument.presentation": Kind(
        "OpenDocument presentation", "office.odt"
    ),
}
_IN_OLE = (
    ("Workbook", Kind("Excel 97 workbook", "office.xls")),
    ("Book", Kind("Excel 97 workbook", "office.xls")),
    ("__properties_version1.0", Kind("Outlook message", "msg")),
    ("WordDocument", Kind("Word 97 document", "office.doc")),
    ("PowerPoint Document", Kind("PowerPoint 97 presentation")),
    ("EncryptedPackage", Kind("encrypted Office document")),
)
_BY_SUFFIX = {
    ".csv": Kind("CSV table", "delimited"),
    ".tsv": Kind("TSV table", "delimited"),
    ".html": Kind("HTML page", "html"),
    ".htm": Kind("HTML page", "html"),
    ".xhtml": Kind("HTML page", "html"),
    ".json": Kind("JSON", "text"),
    ".jsonl": Kind("JSON lines", "text"),
    ".ndjson": Kind("JSON lines", "text"),
    ".eml": Kind("e-mail", "mail"),
    ".mbox": Kind("mailbox", "mail"),
}
_PACKED = {
    ".zip": Kind("ZIP archive", "archive"),
    ".docx": Kind("Word document", "office.docx"),
    ".xlsx": Kind("Excel workbook", "office.xlsx"),
    ".xlsm": Kind("Excel workbook with macros", "office.xlsx"),
    ".pptx": Kind("PowerPoint presentation", "office.pptx"),
    ".epub": Kind("EPUB book", "epub"),
    ".odt": Kind("OpenDocument text", "office.odt"),
    ".ods": Kind("OpenDocument spreadsheet", "office.ods"),
    ".odp": Kind("OpenDocument presentation", "office.odt"),
    ".xls": Kind("Excel 97 workbook", "office.xls"),
    ".doc": Kind("Word 97 document", "office.doc"),
    ".ppt": Kind("PowerPoint 97 presentation"),
    ".msg": Kind("Outlook message", "msg"),
}
"""Names of packed files, for `kind_by_start`."""
OFFICE_SUFFIXES = tuple(suffix for suffix in _PACKED if suffix not in (".zip", ".epub", ".msg"))
"""Endings of files that LibreOffice renders."""
_DOCUMENT_SUFFIXES = (*_PACKED, ".pdf", ".rtf", ".eml", ".png", ".jpg", ".jpeg", ".wav", ".mp3")
TEXT = Kind("text", "text")
UNKNOWN = Kind("unknown binary file")


def kind_of(path: Path) -> Kind:
    """Return the kind of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _of_zip(path)
    return _of_ole(path) if head.startswith(_OLE) else _by_head(path, head)


def kind_by_start(path: Path) -> Kind:
    """Return the kind of a file by its first bytes and its name, without opening its parts.

    For a process outside the sandbox: it parses nothing of the file.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    packed = head.startswith((b"PK\x03\x04", _OLE))
    return _PACKED.get(path.suffix.lower(), UNKNOWN) if packed else _by_head(path, head)


def is_document(name: str) -> bool:
    """Return whether a file is a document by its name, which plain Python cannot read at once."""
    return name.lower().endswith(_DOCUMENT_SUFFIXES)


def size_text(size: float) -> str:
    """Return a number of bytes as text, such as "34.5 KB"."""
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _by_head(path: Path, head: bytes) -> Kind:
    if head.startswith(b"RIFF"):
        return _IN_RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return _of_mp4(head[8:12])
    if head[257:262] == b"ustar":
        return Kind("tar archive", "archive")
    for start, kind in _BY_START:
        if head.startswith(start) and (start not in (b"BM", b"MZ") or b"\0" in head):
            return kind
    if b"%PDF-" in head[:1024]:
        return Kind("PDF", "pdf")
    return _of_text(path, head)


def _of_zip(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            for name, kind in _IN_ZIP:
                if name in names:
                    return kind
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                declared = archive.read("mimetype").decode("ascii", "replace").strip()
                return _BY_MIMETYPE.get(declared, Kind("ZIP archive", "archive"))
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        return Kind("damaged ZIP archive")
    return Kind("ZIP archive", "archive")


def _of_ole(path: Path) -> Kind:
    """Find the kind by the names of streams, which an OLE file stores in UTF-16."""
    with path.open("rb") as file:
        start = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        content = start + file.read()
    for name, kind in _IN_OLE:
        if name.encode("utf-16-le") + b"\0\0" in content:
            return kind
    return Kind("OLE file")


def _of_mp4(brand: bytes) -> Kind:
    if brand.startswith((b"M4A", b"M4B")):
        return Kind("M4A audio", "audio")
    if brand in (b"heic", b"heix", b"mif1", b"avif"):
        return Kind("HEIC or AVIF image", "image")
    return Kind("MP4 video")


def _of_text(path: Path, head: bytes) -> Kind:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _BY_SUFFIX.get(path.suffix.lower(), TEXT)
    if b"\0" in head and not utf16_without_mark(head):
        return UNKNOWN
    named = _BY_SUFFIX.get(path.suffix.lower())
    if named is not None:
        return named
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return Kind("HTML page", "html")
    if start.startswith((b"return-path:", b"delivered-to:", b"mime-version:", b"received:")):
        return Kind("e-mail", "mail")
    return TEXT
