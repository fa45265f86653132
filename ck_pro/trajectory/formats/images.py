"""Store the images of an export in a folder beside the output, each once, named by its hash."""

from __future__ import annotations

from pathlib import Path

from ck_pro.exceptions import OutputError
from ck_pro.trajectory.reading.messages import MEDIA_TYPES, Image, MessageError


class ImageFolder:
    """The folder `<output without its suffix>_images`, created with the first image.

    Args:
        output: path of the export.
        inside: whether the output is a folder that contains the files that refer to the images.
        stores: whether to write the files; without it, `put` only checks an image.
    """

    def __init__(self, output: Path, *, inside: bool = False, stores: bool = True):
        self._stores = stores
        self.path = output.with_name(f"{output.with_suffix('').name}_images")
        self._prefix = "../" if inside else ""
        self.written = 0
        """Number of files that this export created."""

    def put(self, image: Image) -> str:
        """Store an image; return its path relative to the file that refers to it.

        Raises:
            MessageError: the image cannot be read, or trainers do not load its type.
            OutputError: it cannot be written.
        """
        check_image(image)
        name = image.name
        if self._stores:
            self._write(self.path / name, image.data)
        return f"{self._prefix}{self.path.name}/{name}"

    def _write(self, target: Path, data: bytes) -> None:
        partial = target.with_name(f".{target.name}.partial")
        try:
            if not target.exists():  # the disk remembers; memory may not hold all names
                self.path.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(data)
                partial.replace(target)
                self.written += 1
        except OSError as e:
            raise OutputError(f"cannot write the image {target}: {e.strerror}") from None


def check_image(image: Image) -> None:
    """Check that trainers can load the image.

    Raises:
        MessageError: they cannot.
    """
    if image.ext not in MEDIA_TYPES:
        raise MessageError("image type that trainers do not load", image.ext)
    if not image.data:
        raise MessageError("unreadable image")
