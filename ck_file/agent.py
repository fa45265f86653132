"""`FileAgent`: an agent for long documents, with the tools for files."""

from __future__ import annotations

from typing import Any

import ck_file.prompts  # noqa: F401 - registers the templates
from ck_pro.agent import MultiStepAgent
from ck_pro.tool import StopTool
from ck_pro.tools.files import LookTool, TranscribeTool


class FileAgent(MultiStepAgent):
    """An agent that answers questions about the files in its working directory.

    As a sub-agent it shares the working directory of its caller.
    """

    name: str = "file_agent"
    description: str = """\
Answer a question about long or many files in the working directory.
They may be documents, tables, pictures or sound. Name the files and say what you need. It reports
hidden parts that matter."""
    max_steps = 16
    templates = {"plan": "file_plan", "action": "file_action", "end": "file_end"}
    end_always = False
    look: LookTool = LookTool()
    transcribe: TranscribeTool = TranscribeTool()
    stop: StopTool = StopTool()
    tools: list[Any] = [
        *("describe_file", "read_document", "search_file", "read_table"),
        *("render", "look", "transcribe", "stop"),
    ]
