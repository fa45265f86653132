"""Formats of training data: each is one module here with a constant `FORMAT`.

May import: `reading` and the core.
Other rooms use `export_formats`, `ExportFormat`, `Layout` and `ImageFolder`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from ck_pro.trajectory.formats.export_format import ExportFormat

__all__ = ["ExportFormat", "export_formats"]


def export_formats() -> dict[str, ExportFormat]:
    """Return all formats by name, sorted: the `FORMAT` of each module in this package."""
    names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    found = [getattr(import_module(name), "FORMAT", None) for name in names]
    formats = [f for f in found if isinstance(f, ExportFormat)]
    return {f.name: f for f in sorted(formats, key=lambda f: f.name)}
