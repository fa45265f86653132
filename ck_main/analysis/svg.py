"""Draw SVG from a few shapes, without styles or scripts, so that any page may contain it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from ck_pro.command_line import without_controls

A_COLOUR, B_COLOUR = "#3b7dd8", "#e0782f"
GOOD_COLOUR, QUIET = "#2f9e6b", "currentColor"
_FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"
_INK, _PAPER = "#1f2430", "#ffffff"
_EDGE = 16
_WIDE, _NARROW = frozenset("mwMW%@—"), frozenset("iljtfr.,:;|'()[] ")


@dataclass
class Drawing:
    """A picture of fixed size.

    Args:
        width, height: in pixels.
        label: describes it to readers who cannot see it.
    """

    width: float
    height: float
    label: str = ""
    parts: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, opacity: float = 1, **more: object
    ) -> None:
        """Draw a line."""
        facts = {"stroke": QUIET, "stroke-width": 1, "stroke-opacity": opacity, **_named(more)}
        self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **facts})

    def rect(
        self, x: float, y: float, width: float, height: float, *, tip: str = "", **more: object
    ) -> None:
        """Draw a rectangle; `tip` appears under the pointer."""
        facts = {"fill": A_COLOUR, "rx": 2, **_named(more)}
        size = {"width": max(0.0, width), "height": max(0.0, height)}
        self._add("rect", {"x": x, "y": y, **size, **facts}, tip)

    def circle(self, x: float, y: float, r: float, *, tip: str = "", **more: object) -> None:
        """Draw a circle."""
        self._add("circle", {"cx": x, "cy": y, "r": r, "fill": A_COLOUR, **_named(more)}, tip)

    def curve(self, points: list[tuple[float, float]], **more: object) -> None:
        """Draw a line through points."""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        facts = {"fill": "none", "stroke": A_COLOUR, "stroke-width": 2, **_named(more)}
        self._add("polyline", {"points": text, **facts})

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12,
        anchor: str = "start",
        opacity: float = 1,
        **more: object,
    ) -> None:
        """Write a line of text; `anchor` is start, middle or end."""
        facts = {"font-size": size, "text-anchor": anchor, "fill": QUIET, **_named(more)}
        if opacity != 1:
            facts["fill-opacity"] = opacity
        self.parts.append(f"<text{_attributes({'x': x, 'y': y, **facts})}>{_clean(text)}</text>")

    def _add(self, name: str, attributes: dict[str, object], tip: str = "") -> None:
        inner = f"<title>{_clean(tip)}</title>" if tip else ""
        self.parts.append(f"<{name}{_attributes(attributes)}>{inner}</{name}>")

    def svg(self, *, standalone: bool = False) -> str:
        """Return the SVG.

        Args:
            standalone: for a file: with a background, a margin and a colour. Otherwise the texts
                have the colour of the page that contains it.
        """
        edge = _EDGE if standalone else 0
        w, h = f"{self.width + 2 * edge:.0f}", f"{self.height + 2 * edge:.0f}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            f'viewBox="{-edge} {-edge} {w} {h}" font-family="{_FONT}" role="img" '
            f'aria-label="{_clean(self.label)}"'
        )
        body = "\n".join(self.parts)
        if not standalone:
            return f"{head}>\n{body}\n</svg>"
        paper = f'<rect x="{-edge}" y="{-edge}" width="{w}" height="{h}" fill="{_PAPER}"/>'
        return f'{head} color="{_INK}">\n{paper}\n{body}\n</svg>\n'


def _named(more: dict[str, object]) -> dict[str, object]:
    return {name.replace("_", "-"): value for name, value in more.items()}


def _attributes(found: dict[str, object]) -> str:
    return "".join(f' {name}="{_value(value)}"' for name, value in found.items())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return _clean(str(value))


def _clean(text: str) -> str:
    """Escape a text, without characters that XML does not allow."""
    text = without_controls(text.encode("utf-8", "replace").decode())
    return escape(text.replace("\ufffe", "").replace("\uffff", ""))


def text_width(text: str, size: float = 12) -> float:
    """Estimate the width of a text in pixels."""
    units = sum(0.9 if c in _WIDE else 0.3 if c in _NARROW else 0.58 for c in text)
    return units * size


def shortened(text: str, width: float, size: float = 12) -> str:
    """Shorten a text to a width in pixels."""
    text = " ".join(text.split())
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text + "…"
