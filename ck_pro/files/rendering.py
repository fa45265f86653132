"""`render`: a page, slide, sheet or image as a picture file."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

from .child import in_child
from .document import Reading
from .kinds import Kind
from .limits import CALL_SECONDS
from .opening import file_at, open_part
from .problem import ToolError, library

_MAX_SIDE = 6000
_INSTEAD = "read its text and tables, or give a PDF of it"
_CAUSES = "it is damaged, or its name lacks the usual ending, such as .docx"
_WITH_HIDDEN_SLIDES = (
    'pdf:impress_pdf_Export:{"ExportHiddenSlides":{"type":"boolean","value":"true"}}'
)
"""Without them, the number of a page is not the number of a slide. It needs LibreOffice 7.4."""
_MAX_DPI = 400
_MAX_IMAGE = 80_000_000
"""Pixels of a picture that is read."""


def render(
    path: str,
    page: int = 1,
    dpi: int = 150,
    crop: list[float] | None = None,
    side: int = _MAX_SIDE,
) -> str:
    """Write a page of a file as a PNG picture into the working directory, and return its path."""
    if not 10 <= dpi <= _MAX_DPI:
        raise ToolError(f"dpi must be from 10 to {_MAX_DPI}, not {dpi}")
    stem = re.sub(r"[^\w.-]+", "_", Path(path).stem)[:80]
    return in_child(lambda: _render(Path(path), page, dpi, crop, side, f"{stem}-page{page}"))


def _render(path: Path, page: int, dpi: int, crop: list[float] | None, side: int, stem: str) -> str:
    path, kind = file_at(str(path))
    if kind.format == "image":
        picture = upright_image(path, page)
    elif kind.format == "pdf":
        picture = _page_of_pdf(path, page, dpi)
    elif kind.format.startswith("office."):
        picture = _page_of_pdf(_as_pdf(path, kind), page, dpi)
    else:
        open_part(path, kind, None, Reading())
        raise ToolError(f"a file of the kind {kind.name} cannot be rendered; read its text")
    if crop is not None:
        picture = _cropped(picture, crop)
    if max(picture.size) > side:
        picture.thumbnail((side, side))
    for number in itertools.count(1):
        target = Path(f"{stem}.png" if number == 1 else f"{stem}-{number}.png")
        with contextlib.suppress(FileExistsError), target.open("xb") as file:
            picture.save(file, "PNG")
            break
    return str(target)


def upright_image(path: Path, page: int) -> Any:
    """Return a frame of an image, upright and without transparency, as a person would see it."""
    images: Any = library("PIL.Image", "Pillow", "images")
    images.MAX_IMAGE_PIXELS = _MAX_IMAGE
    with warnings.catch_warnings():
        warnings.simplefilter("error", images.DecompressionBombWarning)
        picture = images.open(path)
        if picture.width * picture.height > _MAX_IMAGE:
            raise ToolError(f"the image has more than {_MAX_IMAGE:,} pixels")
        if not 1 <= page <= getattr(picture, "n_frames", 1):
            frames = getattr(picture, "n_frames", 1)
            raise ToolError(f"there is no page {page}; the image has {frames}")
        picture.seek(page - 1)
        picture = library("PIL.ImageOps", "Pillow", "images").exif_transpose(picture)
        if picture.mode[0] in "IF":  # more than 8 bits: conversion would cut them off
            low, high = picture.getextrema()
            scale = 255 / ((high - low) or 1)
            picture = picture.convert("F").point(lambda value: value * scale - low * scale)
        if not picture.has_transparency_data:
            return picture.convert("RGB")
        paper = images.new("RGBA", picture.size, "white")
        return images.alpha_composite(paper, picture.convert("RGBA")).convert("RGB")


def _page_of_pdf(path: Path, page: int, dpi: int) -> Any:
    pdfium = library("pypdfium2", "pypdfium2", "PDF files")
    pdf = pdfium.PdfDocument(path)
    if not 1 <= page <= len(pdf):
        raise ToolError(f"there is no page {page}; the file has pages 1 to {len(pdf)}")
    pdf.init_forms()
    one = pdf[page - 1]
    scale = min(dpi / 72, _MAX_SIDE / max(one.get_size()))
    return one.render(scale=scale, may_draw_forms=True).to_pil()


def _as_pdf(path: Path, kind: Kind) -> Path:
    """Convert an office file by LibreOffice; a presentation with its hidden slides.

    Raises:
        ToolError: it is not installed, or fails.
    """
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        raise ToolError(f"rendering Office files needs LibreOffice, not installed; {_INSTEAD}")
    target = _WITH_HIDDEN_SLIDES if "presentation" in kind.name else "pdf"
    folder = tempfile.mkdtemp(prefix="rendered-")
    options = ["--headless", "--norestore", f"-env:UserInstallation=file://{folder}/profile"]
    subprocess.run(
        [program, *options, "--convert-to", target, "--outdir", folder, str(path)],
        capture_output=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    made = Path(folder) / f"{path.stem}.pdf"
    if not made.exists():
        raise ToolError(f"LibreOffice cannot convert the file: {_CAUSES}; {_INSTEAD}")
    return made


def _cropped(picture: Any, crop: list[float]) -> Any:
    """Cut a picture to left, top, right and bottom, each as a share from 0 to 1."""
    if len(crop) != 4 or not (0 <= crop[0] < crop[2] <= 1 and 0 <= crop[1] < crop[3] <= 1):
        raise ToolError("crop must be [left, top, right, bottom], each a share from 0 to 1")
    width, height = picture.size
    left, top, right, bottom = crop
    box = (left * width, top * height, max(right * width, 1), max(bottom * height, 1))
    return picture.crop(tuple(round(side) for side in box))
