"""Screenshots of a page: the viewport, a part of it enlarged, or the whole page."""

from __future__ import annotations

import asyncio
import base64
import io
import time
from dataclasses import dataclass
from typing import Any

from web_server.contract import ObserveOptions
from web_server.session.page import Tab

_FULL_PAGE_LIMIT = 16_000
_JPEG_QUALITY = 70
_SOURCE_QUALITY = 85
"""Of the JPEG image that is scaled down to a small WebP image."""
_WEBP_QUALITY = 50
_WEBP_METHOD = 2
"""Of 0 (fast) to 6 (small); above 2, an image takes more time and hardly gets smaller."""
_STEADY_SECONDS = 1.5
"""How long a screenshot waits for a page that still changes or shows nothing."""
_BETWEEN_LOOKS_SECONDS = 0.08
_MAX_ZOOM = 4.0


@dataclass(frozen=True)
class Picture:
    """A screenshot.

    Attributes:
        data: the encoded image; empty if none was requested.
        scale: its pixels per CSS pixel.
    """

    data: bytes = b""
    scale: float = 1.0


async def capture(tab: Tab, options: ObserveOptions) -> Picture:
    """Return a screenshot of the viewport, or of a part of it; without data unless requested."""
    if options.screenshot == "none":
        return Picture()
    arguments: dict[str, Any] = {"format": options.imageFormat, "optimizeForSpeed": True}
    if options.imageFormat == "jpeg":
        arguments["quality"] = _JPEG_QUALITY
    scale = 1.0
    if (region := options.region) is not None:
        longer = max(region.width, region.height)
        scale = min(_MAX_ZOOM, (options.imageMax or longer) / longer)
        left, top = await _scrolled(tab)  # the clip counts from the top left of the document
        place = {"x": left + region.x, "y": top + region.y}
        arguments["clip"] = {**region.model_dump(), **place, "scale": scale}
    data = await (_steady if options.steady else _screenshot)(tab, arguments)
    if region is None and options.imageMax is not None:
        return await asyncio.to_thread(_scaled, data, options.imageMax, options.imageFormat)
    return Picture(data, scale)


async def capture_small(tab: Tab, side: int) -> bytes:
    """Return a WebP image of the viewport whose longer side has at most `side` pixels.

    Chromium could scale it, too, but only from a position in the document, and no faster.
    """
    arguments = {"format": "jpeg", "quality": _SOURCE_QUALITY, "optimizeForSpeed": True}
    data = await _screenshot(tab, arguments)
    return await asyncio.to_thread(_as_webp, data, side)


async def _screenshot(tab: Tab, arguments: dict[str, Any]) -> bytes:
    reply = await tab.page_handle.activity.cdp.send("Page.captureScreenshot", arguments)
    return base64.b64decode(reply["data"])


async def _scrolled(tab: Tab) -> tuple[float, float]:
    """Return how far the document is scrolled right and down, in CSS pixels."""
    metrics = await tab.page_handle.activity.cdp.send("Page.getLayoutMetrics")
    viewport = metrics["cssVisualViewport"]
    return viewport["pageX"], viewport["pageY"]


async def _steady(tab: Tab, arguments: dict[str, Any]) -> bytes:
    """Return the first screenshot that equals its predecessor and shows something."""
    end = time.monotonic() + _STEADY_SECONDS
    before = await _screenshot(tab, arguments)
    while time.monotonic() < end:
        await asyncio.sleep(_BETWEEN_LOOKS_SECONDS)
        data = await _screenshot(tab, arguments)
        if data == before and not await asyncio.to_thread(_is_blank, data):
            break
        before = data
    return before


def _is_blank(data: bytes) -> bool:
    """Whether an image has one colour."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return all(low == high for low, high in image.convert("RGB").getextrema())


def _scaled(data: bytes, limit: int, image_format: str) -> Picture:
    """Return a screenshot, scaled down if a side is longer than the limit."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as source:
        longer = max(source.size)
        if longer <= limit:
            return Picture(data)
        scale = limit / longer
        size = (round(source.width * scale), round(source.height * scale))
        image = source.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if image_format == "jpeg":
        image.save(out, "JPEG", quality=80)
    else:
        image.save(out, "PNG", compress_level=1)
    return Picture(out.getvalue(), scale)


def _as_webp(data: bytes, limit: int) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as source:
        image = source.convert("RGB")
    scale = min(1.0, limit / max(image.size))
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    out = io.BytesIO()
    small = image.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    small.save(out, "WEBP", quality=_WEBP_QUALITY, method=_WEBP_METHOD)
    return out.getvalue()


async def capture_all(tab: Tab) -> bytes:
    """Return a PNG image of the whole page, cropped to a maximum size."""
    cdp = tab.page_handle.activity.cdp
    metrics = await cdp.send("Page.getLayoutMetrics")
    size = metrics["cssContentSize"]
    clip = {
        "x": 0,
        "y": 0,
        "width": max(1, min(size["width"], _FULL_PAGE_LIMIT)),
        "height": max(1, min(size["height"], _FULL_PAGE_LIMIT)),
        "scale": 1,
    }
    reply = await cdp.send(
        "Page.captureScreenshot",
        {"format": "png", "captureBeyondViewport": True, "clip": clip},
    )
    return base64.b64decode(reply["data"])
