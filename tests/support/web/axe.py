"""Accessibility checks of pages by axe, if it is installed (`npm install`)."""

from __future__ import annotations

from typing import Any

import pytest
from paths import ROOT
from playwright.sync_api import Page

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe is not installed (npm install)")
VIEWS: tuple[tuple[int, Any], ...] = ((1280, "light"), (1280, "dark"), (390, "light"))
"""Widths and colour schemes."""


def violations(page: Page) -> list[str]:
    """Return what axe finds; the page's context needs `bypass_csp`."""
    page.evaluate(AXE.read_text())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{v['id']}: {v['nodes'][0]['html']}" for v in result["violations"]]


def problems_in_all_views(page: Page) -> list[str]:
    """Return what axe finds in each of `VIEWS`, and whether the page is wider than the window."""
    found = []
    for width, scheme in VIEWS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        found += [f"{width} {scheme}: {one}" for one in violations(page)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"wider than {width} pixels")
    page.set_viewport_size({"width": 1280, "height": 844})
    page.emulate_media(color_scheme="light")
    return found
