"""Reads files of many kinds inside the sandbox of an agent's code, with everything hidden in them.

The worker loads this package from its folder (`Tool.package`). It therefore imports only itself, by
relative imports, and each library only when a file needs it. `docs/files.md` describes the results.

May import: nothing of the project. `tools/files.py` offers its functions to agents.
"""

from .functions import describe_file, read_document, read_table, search_file
from .problem import ToolError
from .rendering import render
from .speech import transcribe

__all__ = [
    "ToolError",
    "describe_file",
    "read_document",
    "read_table",
    "render",
    "search_file",
    "transcribe",
]
