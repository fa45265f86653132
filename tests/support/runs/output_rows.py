"""Hand-written output rows."""

from typing import Any

from fake_agent import make_task

from ck_main.output.row import build_row, task_facts
from ck_pro.session import AgentSession


def make_row(task_id: str, answer: str = "x") -> dict[str, Any]:
    session = AgentSession("q")
    session.final_results = {"output": answer, "log": ""}
    return build_row(task_facts(make_task(task_id, answer="x")), session)
