"""Formats of training data: each is one module here with a constant `FORMAT`.

May import: `reading` and the core.
Other rooms use `export_formats`, `ExportFormat`, `Layout` and `ImageFolder`.
"""

from __future__ import annotations

import itertools
import pkgutil
from importlib import import_module

from ck_pro.exceptions import ConfigError
from ck_pro.trajectory.formats.export_format import ExportFormat

__all__ = ["ExportFormat", "export_formats"]


def export_formats() -> dict[str, ExportFormat]:
    """Return all formats by name, sorted: the `FORMAT` of each module in this package.

    Raises:
        ConfigError: two formats have the same name.
    """
    names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    found = [getattr(import_module(name), "FORMAT", None) for name in names]
    formats = sorted((f for f in found if isinstance(f, ExportFormat)), key=lambda f: f.name)
    for one, other in itertools.pairwise(formats):
        if one.name == other.name:
            raise ConfigError(f"two export formats are named '{one.name}'")
    return {f.name: f for f in formats}
