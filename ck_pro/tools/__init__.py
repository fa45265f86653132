"""Tools that ship with the core: ask a model, search the web, ask a person, use the workspace.

May import: `tool`, `model`, `executor` and what stands above them.
Other rooms and users use the tool classes; agents name them in their settings.
"""

from ck_pro.tools.ask_and_search import AskLLMTool, LocalIndex, SimpleSearchTool

__all__ = ["AskLLMTool", "LocalIndex", "SimpleSearchTool"]
