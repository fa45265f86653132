"""Write the plots of an analysis as SVG or PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ck_main.analysis.charts import charts
from ck_main.analysis.comparison import Comparison
from ck_main.analysis.summary import Summary
from ck_pro.exceptions import ConfigError, OutputError

_PIXELS = 2
"""Pixels of a PNG per unit of the SVG."""


def write_plots(
    folder: Path,
    summaries: Sequence[Summary],
    comparison: Comparison | None = None,
    *,
    form: str = "svg",
    force: bool = False,
) -> list[Path]:
    """Write each plot to a file of its name.

    Args:
        folder: for the files; created if it is missing.
        summaries, comparison: the analysis.
        form: "svg" or "png".
        force: replace existing files.

    Raises:
        ConfigError: PNG needs a package that is not installed.
        OutputError: a file exists or cannot be written.
    """
    drawn = {
        folder / f"{name}.{form}": drawing.svg(standalone=True)
        for name, drawing in charts(summaries, comparison).items()
    }
    existing = [path for path in drawn if path.exists()]
    if existing and not force:
        raise OutputError(f"{existing[0]} exists already; give --force to replace it")
    contents = {path: png(svg) if form == "png" else svg.encode() for path, svg in drawn.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            partial = path.with_name(f".{path.name}.partial")
            partial.write_bytes(content)
            partial.replace(path)
    except OSError as e:
        raise OutputError(f"cannot write {e.filename or folder}: {e.strerror}") from None
    return list(drawn)


def png(svg: str) -> bytes:
    """Draw an SVG as PNG.

    Raises:
        ConfigError: resvg-py is not installed.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError:
        raise ConfigError(
            'PNG needs resvg-py: pip install "ck-pro[plots]", or use --format svg'
        ) from None
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=_PIXELS))
