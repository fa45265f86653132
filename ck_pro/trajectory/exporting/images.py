"""Where the images of an export go: a folder beside the output, each under its hash, once."""

from __future__ import annotations

from pathlib import Path

from ck_pro.exceptions import OutputError
from ck_pro.trajectory.formats.chat import MEDIA_TYPES, Image, MessageError


class ImageFolder:
    """The folder `<output without its ending>_images`, made when the first image comes.

    Args:
        output: path of the export.
        inside: the output is a folder, and the files that name the images are in it.
    """

    def __init__(self, output: Path, *, inside: bool = False):
        self.path = output.with_name(f"{output.with_suffix('').name}_images")
        self._prefix = "../" if inside else ""
        self.written = 0
        """Images that this export put there; equal ones and those of earlier exports are not."""

    def put(self, image: Image) -> str:
        """Store an image; returns its path relative to the file that names it.

        Raises:
            MessageError: it cannot be read, or is of a kind that trainers do not load.
            InputError: it cannot be written.
        """
        check_image(image)
        name = image.name
        self._write(self.path / name, image.data)
        return f"{self._prefix}{self.path.name}/{name}"

    def _write(self, target: Path, data: bytes) -> None:
        partial = target.with_name(f".{target.name}.partial")
        try:
            if not target.exists():  # asked of the disk: there may be too many to remember
                self.path.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(data)
                partial.replace(target)
                self.written += 1
        except OSError as e:
            raise OutputError(f"cannot write the image {target}: {e.strerror}") from None


def check_image(image: Image) -> None:
    """Return if trainers can load the image.

    Raises:
        MessageError: they cannot.
    """
    if image.ext not in MEDIA_TYPES:
        raise MessageError("image of a kind that trainers do not load", image.ext)
    if not image.data:
        raise MessageError("unreadable image")
