"""ck-pro: agents that solve tasks by writing Python. The public names of the agent core.

Public names load on first use, so importing one part of the package costs only that part.

Rooms, in import order: a room imports only rooms listed before it.

    version      the version of ck-pro
    exceptions   one documented error tree
    interrupts   Ctrl-C in a command
    ranking      texts ranked by the words of a query
    markup       inert HTML for notebooks
    json_lines   lines of JSON files
    threads      reused worker threads, and cancel flags
    local_page   the base of local web pages: server, security, shared files
    terminal     reads standard input: one reader at a time, cancellable
    config       declared, checked and merged settings
    settings     configuration files and updates
    template     prompt templates
    events       actions, observations, journal and progress events, the computer's schema
    journal      the append-only store
    environment  the world an agent acts in
    model        LLM, back ends, budgets, prices, recordings
    run_context  the interface of a live run for the rooms below it
    session      AgentSession, Status, StopReason, goals and progress
    approval     approvers and the guard
    files        reads files of many kinds, in the worker process
    executor     model-written code in a worker process
    computer     computers by screenshots, mouse and keyboard, as environments
    arguments    the arguments of functions that models call: schema and checks
    tool         Tool, ToolRegistry, StopTool
    tools        tools that ship with the core
    language     prompt layout and parsing
    agent_settings  the settings of an agent
    run          one live run: functions, model calls, history, resume
    agent        MultiStepAgent: the loop
    command_line  what all commands share: exit codes, errors, output, options
    trajectory   readers of rows and journals: export, diff, fork, spans, compress
    testing      fakes for tests, shipped
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ck_pro.version import __version__

if TYPE_CHECKING:
    from ck_pro.agent import ActionResult, AgentResult, MultiStepAgent
    from ck_pro.agent.action_agent import ActionAgent
    from ck_pro.agent.game import Agent
    from ck_pro.agent.hub import register_agent
    from ck_pro.agent.stepper import Stepper
    from ck_pro.computer import Computer
    from ck_pro.config import KwargsInitializable
    from ck_pro.environment import Environment
    from ck_pro.events import Action, Observation
    from ck_pro.executor import CodeExecutor
    from ck_pro.journal import Journal
    from ck_pro.model import LLM, Budget
    from ck_pro.session import AgentSession, Status, StopReason
    from ck_pro.session.goals import Goal
    from ck_pro.session.memory import Memory
    from ck_pro.template import TemplatedString, get_template, register_template
    from ck_pro.tool import StopTool, Tool, ToolRegistry
    from ck_pro.tools import AskLLMTool, SimpleSearchTool
    from ck_pro.tools.files import file_tools
    from ck_pro.tools.human import AskHumanTool
    from ck_pro.tools.session_tools import session_tools
    from ck_pro.tools.workspace import workspace_tools

_HOME = {
    "agent": ("ActionResult", "AgentResult", "MultiStepAgent"),
    "computer": ("Computer",),
    "config": ("KwargsInitializable",),
    "environment": ("Environment",),
    "events": ("Action", "Observation"),
    "executor": ("CodeExecutor",),
    "journal": ("Journal",),
    "model": ("LLM", "Budget"),
    "tools.files": ("file_tools",),
    "tools.human": ("AskHumanTool",),
    "session": ("AgentSession", "Status", "StopReason"),
    "session.goals": ("Goal",),
    "session.memory": ("Memory",),
    "agent.game": ("Agent",),
    "agent.hub": ("register_agent",),
    "agent.action_agent": ("ActionAgent",),
    "tools.session_tools": ("session_tools",),
    "agent.stepper": ("Stepper",),
    "template": ("TemplatedString", "get_template", "register_template"),
    "tool": ("StopTool", "Tool", "ToolRegistry"),
    "tools": ("AskLLMTool", "SimpleSearchTool"),
    "tools.workspace": ("workspace_tools",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LLM",
    "Action",
    "ActionAgent",
    "ActionResult",
    "Agent",
    "AgentResult",
    "AgentSession",
    "AskHumanTool",
    "AskLLMTool",
    "Budget",
    "CodeExecutor",
    "Computer",
    "Environment",
    "Goal",
    "Journal",
    "KwargsInitializable",
    "Memory",
    "MultiStepAgent",
    "Observation",
    "SimpleSearchTool",
    "Status",
    "Stepper",
    "StopReason",
    "StopTool",
    "TemplatedString",
    "Tool",
    "ToolRegistry",
    "__version__",
    "file_tools",
    "get_template",
    "register_agent",
    "register_template",
    "session_tools",
    "workspace_tools",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ck_pro' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ck_pro.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
