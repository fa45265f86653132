"""`ScreenView`: how a screen is shown to a model: scaled, with the pointer, compared."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ck_pro.events import ComputerAction, Point, Region
from ck_pro.exceptions import ConfigError, EnvironmentFailure

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 1280
"""Default limit for the longer side of a picture, in pixels. Models scale larger ones down and then
miss their targets; the services document limits from 1280 to 1568."""
MAX_ZOOM = 4.0
"""How much a zoom enlarges a region at most."""
_QUALITY = 80
_NOISE = 24  # differences that JPEG compression makes, in levels of gray
_CELL = 16
_MAX_REGIONS = 3
_CARET = (4, 48)  # a smaller change is a blinking caret
_ARROW = ((0, 0), (0, 17), (4, 13), (7, 19), (10, 18), (7, 12), (12, 12))


@dataclass(frozen=True)
class Shown:
    """A picture of the screen for the model.

    Attributes:
        image: data URL.
        content: equal for two screens that show the same, apart from pointer and caret.
        changed: the regions that differ from the screen before, at most three; empty if none.
    """

    image: str
    content: str
    changed: tuple[Region, ...]


class ScreenView:
    """The view of one screen: what the model sees of it, and its coordinates.

    Args:
        width, height: of the screen in pixels.
        max_side: limit for the longer side of a picture in pixels.

    Attributes:
        size: width and height of the pictures.
    """

    def __init__(self, width: int, height: int, max_side: int = MAX_SIDE):
        self.width, self.height, self._max_side = width, height, max_side
        self.size = picture_size(width, height, max_side)
        self._before: Image | None = None
        self._last: Shown | None = None
        self._pointer: tuple[float, float] | None = None

    @property
    def scale(self) -> float:
        """Pixels of a picture per pixel of the screen, at most 1."""
        return self.size[0] / self.width

    def show(self, data: bytes, pointer: tuple[float, float] | None = None) -> Shown:
        """Return the picture of a screen, and compare it with the last one.

        Args:
            data: PNG or JPEG of the screen.
            pointer: position of the mouse in pixels of the screen, to draw an arrow there; None if
                `data` shows the pointer.

        Raises:
            EnvironmentFailure: `data` is not an image.
        """
        image = decoded(data)
        if image.size != self.size:
            # a screen with another size than it promised is shown in the promised proportions
            image = image.resize(self.size, _filter())
        changed = () if self._before is None else changed_regions(self._before, image)
        same = self._last is not None and not changed
        if same and pointer == self._pointer:
            assert self._last is not None
            return Shown(self._last.image, self._last.content, ())
        unscaled = image.size == (self.width, self.height)
        if pointer is None and unscaled:
            shown = data
        else:
            shown = encoded(_with_pointer(image, pointer, self.scale) if pointer else image)
        content = hashlib.sha256(data).hexdigest()[:16]
        if same:
            assert self._last is not None
            content = self._last.content
        else:
            self._before = image  # else a slow change would never differ from its predecessor
        self._pointer = pointer
        self._last = Shown(data_url(shown), content, changed)
        return self._last

    def enlarge(self, data: bytes, region: Region) -> bytes:
        """Return a region of the screen, enlarged to the limit of pictures.

        Args:
            data: PNG or JPEG of the whole screen.
            region: in pixels of the screen.
        """
        image = decoded(data)
        ratio = image.width / self.width
        box = [region.x, region.y, region.x + region.width, region.y + region.height]
        part = image.crop(tuple(round(side * ratio) for side in box))  # type: ignore[arg-type]
        return encoded(part.resize(self.zoomed_size(region), _filter()), "PNG")

    def zoomed_size(self, region: Region) -> tuple[int, int]:
        """Return the size of the picture of an enlarged region."""
        factor = min(self._max_side / max(region.width, region.height), MAX_ZOOM)
        return max(1, round(region.width * factor)), max(1, round(region.height * factor))

    # --- coordinates -----------------------------------------------------------------------

    def to_screen(self, action: ComputerAction) -> ComputerAction:
        """Return an action with the coordinates of the screen instead of the picture's."""
        if self.scale == 1:
            return action
        changes: dict[str, object] = {}
        for name in ("x", "y", "scroll_x", "scroll_y"):
            value = getattr(action, name)
            if value:
                changes[name] = self._length(value)
        if action.path:
            points = [Point(x=self._length(p.x), y=self._length(p.y)) for p in action.path]
            changes["path"] = tuple(points)
        if action.region is not None:
            changes["region"] = self.region_on_screen(action.region)
        return action.model_copy(update=changes)

    def region_on_screen(self, region: Region) -> Region:
        """Return a region of the picture in pixels of the screen."""
        sides = region.model_dump()
        return Region(**{name: self._length(value) for name, value in sides.items()})

    def clipped(self, region: Region) -> Region | None:
        """Return the part of a region that is on the screen; None if there is none.

        Args:
            region: in pixels of the screen.
        """
        left, top = max(0.0, region.x), max(0.0, region.y)
        right = min(float(self.width), region.x + region.width)
        bottom = min(float(self.height), region.y + region.height)
        if right - left < 1 or bottom - top < 1:
            return None
        return Region(x=left, y=top, width=right - left, height=bottom - top)

    def _length(self, value: float) -> float:
        return round(value / self.scale, 2)


def picture_size(width: int, height: int, max_side: int = MAX_SIDE) -> tuple[int, int]:
    """Return the size of the picture of a screen: its longer side has at most `max_side` pixels."""
    factor = min(1.0, max_side / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


# --- images ------------------------------------------------------------------------------------


def data_url(data: bytes) -> str:
    """Return the data URL of a PNG or JPEG image."""
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def bytes_of(image: str) -> bytes:
    """Return the bytes of an image in base64, with or without the head of a data URL.

    Raises:
        EnvironmentFailure: the text is not base64.
    """
    try:
        return base64.b64decode(image.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        raise EnvironmentFailure("the screenshot is not an image in base64") from None


def decoded(data: bytes) -> Image:
    """Return the image of PNG or JPEG bytes.

    Raises:
        ConfigError: Pillow is not installed.
        EnvironmentFailure: the bytes are not an image.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ConfigError("pictures need Pillow: pip install 'ck-pro[web]'") from None
    try:
        with Image.open(io.BytesIO(data)) as source:
            image: Image.Image = source.convert("RGB")
            return image
    except (UnidentifiedImageError, OSError):
        raise EnvironmentFailure("the screenshot is not an image") from None


def encoded(image: Image, form: str = "JPEG") -> bytes:
    """Return an image as JPEG or PNG bytes."""
    out = io.BytesIO()
    if form == "JPEG":
        image.save(out, "JPEG", quality=_QUALITY)
    else:
        image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _filter() -> int:
    from PIL import Image

    return Image.Resampling.LANCZOS


def _with_pointer(image: Image, at: tuple[float, float], scale: float) -> Image:
    """Return a copy of a picture with an arrow whose tip is at a point of the screen."""
    from PIL import ImageDraw

    copy = image.copy()
    x, y = at[0] * scale, at[1] * scale
    arrow = [(x + dx, y + dy) for dx, dy in _ARROW]
    ImageDraw.Draw(copy).polygon(arrow, fill="black", outline="white")
    return copy


def changed_regions(before: Image, after: Image) -> tuple[Region, ...]:
    """Return the regions that differ between two pictures of one size, the largest first.

    A change as small as a caret does not count.
    """
    from PIL import ImageChops

    mask = ImageChops.difference(before, after).convert("L").point(lambda v: 255 * (v > _NOISE))
    if mask.getbbox() is None:
        return ()
    small = mask.reduce(_CELL)
    cells = {divmod(n, small.width)[::-1] for n, level in enumerate(small.tobytes()) if level}
    boxes = [box for group in _groups(cells) if (box := _exact_box(mask, group)) is not None]
    boxes = [b for b in boxes if b.width > _CARET[0] or b.height > _CARET[1]]
    boxes.sort(key=lambda b: -b.width * b.height)
    while len(boxes) > _MAX_REGIONS:
        boxes[-2:] = [_around(boxes[-2], boxes[-1])]
    return tuple(boxes)


def _cell_box(column: int, row: int, mask: Image) -> tuple[int, int, int, int]:
    left, top = column * _CELL, row * _CELL
    return left, top, min(left + _CELL, mask.width), min(top + _CELL, mask.height)


def _groups(cells: set[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield the connected groups of cells; a gap of one cell connects."""
    left = set(cells)
    while left:
        group, stack = [], [left.pop()]
        while stack:
            column, row = stack.pop()
            group.append((column, row))
            near = {(column + dx, row + dy) for dx in range(-2, 3) for dy in range(-2, 3)}
            found = near & left
            left -= found
            stack += found
        yield group


def _exact_box(mask: Image, group: list[tuple[int, int]]) -> Region | None:
    """Return the box of the changed pixels in a group of cells."""
    boxes = [_cell_box(column, row, mask) for column, row in group]
    outer = (
        min(b[0] for b in boxes),
        min(b[1] for b in boxes),
        max(b[2] for b in boxes),
        max(b[3] for b in boxes),
    )
    inner = mask.crop(outer).getbbox()
    if inner is None:
        return None
    left, top, right, bottom = inner
    return Region(x=outer[0] + left, y=outer[1] + top, width=right - left, height=bottom - top)


def _around(a: Region, b: Region) -> Region:
    """Return the smallest region that contains two others."""
    left, top = min(a.x, b.x), min(a.y, b.y)
    right, bottom = max(a.x + a.width, b.x + b.width), max(a.y + a.height, b.y + b.height)
    return Region(x=left, y=top, width=right - left, height=bottom - top)
