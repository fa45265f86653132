"""`CKAgent`: the main agent. It plans, writes short code steps and delegates."""

from __future__ import annotations

from typing import Any

import ck_main.prompts  # noqa: F401 - registers the templates
from ck_pro.agent import MultiStepAgent
from ck_pro.tool import StopTool
from ck_pro.tools import AskLLMTool, SimpleSearchTool
from ck_pro.tools.human import AskHumanTool
from ck_web.agent import WebAgent


class CKAgent(MultiStepAgent):
    """The main agent, with a web agent and the tools `ask_llm`, `search`, `ask_human` and `stop`.

    To add a sub-agent or a tool, declare an annotated attribute in a subclass and list its name in
    `sub_agents` or `tools`.
    """

    former_names = {
        "file_agent": "! ck-pro has no file agent; the tools in docs/workspace.md read files: "
        "remove this setting"
    }

    name: str = "ck_agent"
    description: str = "Solves a task by planning, writing Python and delegating."
    max_steps = 16
    templates = {"plan": "ck_plan", "action": "ck_action", "end": None}
    web_agent: WebAgent = WebAgent()
    ask_llm: AskLLMTool = AskLLMTool()
    search: SimpleSearchTool = SimpleSearchTool()
    ask_human: AskHumanTool = AskHumanTool()
    stop: StopTool = StopTool()
    sub_agents: list[Any] = ["web_agent"]
    tools: list[Any] = ["ask_llm", "search", "ask_human", "stop"]
