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
        arguments["clip"] = {**region.model_dump(), "scale": scale}
    data = await (_steady if options.steady else _screenshot)(tab, arguments)
    if region is None and options.imageMax is not None:
        return await asyncio.to_thread(_scaled, data, options.imageMax, options.imageFormat)
    return Picture(data, scale)


async def _screenshot(tab: Tab, arguments: dict[str, Any]) -> bytes:
    reply = await tab.page_handle.activity.cdp.send("Page.captureScreenshot", arguments)
    return base64.b64decode(reply["data"])


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
