"""The main agent, and the commands that run it over files of tasks. See docs/running.md.

`CKAgent` loads on first use, so reading task files or scoring needs no agent.

Rooms, in import order: a room imports only rooms listed before it.

    scoring    scorers of answers, and the scoring of old rows
    tasks      task files
    output     output rows and their file
    analysis   statistics, failures, comparisons, plots and reports
    runner     tasks in, rows out: attempts, tries, limits
    ui         display, summary, status file, metrics, log
    cluster    the runner on Ray
    cli        options, settings, errors and exit codes of the commands
    demo_site  the demo's web site
    prompts    prompts of the main agent
    agent      CKAgent
    mcp_server  agents and browser as MCP tools
    mcp        python -m ck_main.mcp
    agents     python -m ck_main.agents
    score      python -m ck_main.score
    analyze    python -m ck_main.analyze
    graph      the sandbox state machine for LangGraph
    viewer     the server and the page of the viewer
    sharing    one run as a web page in one file, as pictures, as a summary
    view       python -m ck_main.view
    share      python -m ck_main.share
    main       python -m ck_main.main
    demo       python -m ck_main.demo
    console    ck-pro: all commands under one name
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_main.agent import CKAgent

__all__ = ["CKAgent"]


def __getattr__(name: str) -> Any:
    if name == "CKAgent":
        from ck_main.agent import CKAgent

        return CKAgent
    raise AttributeError(f"module 'ck_main' has no attribute {name!r}")
