"""Images: size, metadata, frames, and the text that a recogniser finds, if one is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ..document import Document, Facts, Part
from ..limits import CALL_SECONDS
from ..problem import library
from ..rendering import upright_image

_MAX_METADATA = 300


class Reader(Document):
    """An image."""

    def facts(self) -> Facts:
        tags = library("PIL.ExifTags", "Pillow", "images").TAGS
        with self._opened() as image:
            facts = [f"{image.width} x {image.height} pixels", f"mode {image.mode}"]
            if getattr(image, "n_frames", 1) > 1:
                facts.append(f"{image.n_frames} frames")
            hidden = [
                f"metadata {tags.get(number, number)}: {str(value)[:_MAX_METADATA]}"
                for number, value in image.getexif().items()
            ]
            for name, value in image.info.items():
                if isinstance(value, str):
                    hidden.append(f"metadata {name}: {value[:_MAX_METADATA]}")
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("text", "recognised text")]

    def blocks(self, part: str) -> Iterator[str]:
        program = shutil.which("tesseract")
        if program is None:
            yield f"(an image; look({self.shown!r}) shows it)\n"
            return
        data = io.BytesIO()
        upright_image(self.path, 1).save(data, "PNG")
        done = subprocess.run(
            [program, "-", "-"],
            input=data.getvalue(),
            capture_output=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace").strip()
        yield f"{text}\n" if text else "(an image, in which no text was recognised)\n"

    def _opened(self) -> Any:
        images = library("PIL.Image", "Pillow", "images")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return images.open(self.path)
