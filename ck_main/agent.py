"""`CKAgent`: the main agent. It plans, writes short code steps and delegates."""

from __future__ import annotations

from typing import Any

import ck_main.prompts  # noqa: F401 - registers the templates
from ck_file.agent import FileAgent
from ck_pro.agent import MultiStepAgent
from ck_pro.tool import StopTool
from ck_pro.tools import AskLLMTool, SimpleSearchTool
from ck_pro.tools.files import LookTool, TranscribeTool
from ck_pro.tools.human import AskHumanTool
from ck_web.agent import WebAgent


class CKAgent(MultiStepAgent):
    """The main agent, with a web agent, a file agent and tools.

    To add a sub-agent or a tool, declare an annotated attribute in a subclass and list its name in
    `sub_agents` or `tools`.
    """

    name: str = "ck_agent"
    description: str = "Solves a task by planning, writing Python and delegating."
    max_steps = 16
    templates = {"plan": "ck_plan", "action": "ck_action", "end": None}
    web_agent: WebAgent = WebAgent()
    ask_llm: AskLLMTool = AskLLMTool()
    search: SimpleSearchTool = SimpleSearchTool()
    ask_human: AskHumanTool = AskHumanTool()
    stop: StopTool = StopTool()
    file_agent: FileAgent = FileAgent()
    look: LookTool = LookTool()
    transcribe: TranscribeTool = TranscribeTool()
    sub_agents: list[Any] = ["web_agent"]
    file_functions: list[Any] = [
        *("describe_file", "read_document", "search_file", "read_table"),
        *("render", "look", "transcribe", "file_agent"),
    ]
    tools: list[Any] = ["ask_llm", "search", "ask_human", "stop"]
