"""Tools that ship with the core: ask a model, search the web, ask a person, use the workspace.

May import: `tool`, `model`, `executor` and the rooms above them.
Other rooms and users use the tool classes; agents name them in their settings.
"""

from ck_pro.tools.ask_llm import AskLLMTool
from ck_pro.tools.local_index import LocalIndex
from ck_pro.tools.search import SimpleSearchTool

__all__ = ["AskLLMTool", "LocalIndex", "SimpleSearchTool"]
