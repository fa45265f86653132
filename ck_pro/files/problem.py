"""`ToolError`: the one-line error of all functions here, and the check for missing libraries."""

from __future__ import annotations

import importlib
from types import ModuleType


class ToolError(Exception):
    """A file cannot be read; the message is one line for the model."""


def library(module: str, package: str, kind: str) -> ModuleType:
    """Import a library that a kind of file needs.

    Args:
        module: name of the module.
        package: name to install it by.
        kind: of files, for the message.

    Raises:
        ToolError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ToolError(
            f"reading {kind} needs the package {package}, which is not installed "
            "(pip install 'ck-pro[files]')"
        ) from None
