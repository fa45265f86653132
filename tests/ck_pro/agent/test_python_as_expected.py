"""Python that models expect to work: built-in names, other names of arguments, usual modules."""

from __future__ import annotations

import pytest
from scripted_agents import agent, code

from ck_pro import StopTool
from ck_pro.session import Status
from ck_web.tools import WebStopTool

pytestmark = pytest.mark.worker


def test_type_with_one_value_is_the_built_in() -> None:
    typed: list[tuple[object, str]] = []

    def type(  # noqa: A001 - the name of the web function
        id: object, content: str, enter: bool = True
    ) -> str:
        typed.append((id, content))
        return "typed"

    script = code(
        "print(type(3).__name__, type('x') is str, type(3, 'a'), type(id=4, content='b'))"
    )
    a = agent(script, code("stop('ok')"), tools=[type, StopTool()])
    session = a.run("t")
    assert session.steps[0]["action"]["observation"] == "int True typed typed"
    assert typed == [(3, "a"), (4, "b")]


@pytest.mark.parametrize("tool", [StopTool(), WebStopTool()])
@pytest.mark.parametrize(
    "call",
    ["output='42', log='l'", "output='42', summary='l'", "answer='42', log='l'", "'42', 'l'"],
)
def test_stop_accepts_the_names_of_both_agents(tool: StopTool | WebStopTool, call: str) -> None:
    session = agent(code(f"stop({call})"), tools=[tool]).run("t")
    assert session.status is Status.DONE
    assert session.final_results == {"output": "42", "log": "l"}


def test_two_names_of_one_argument_are_an_error() -> None:
    a = agent(code("stop(output='1', answer='2')"), code("stop('3')"))
    session = a.run("t")
    assert "TypeError" in str(session.steps[0]["action"]["observation"])
    assert session.final_results["output"] == "3"


def test_os_and_sys_need_no_import() -> None:
    a = agent(code("print(os.path.basename('/a/b'), sys.byteorder)"), code("stop('ok')"))
    assert a.run("t").steps[0]["action"]["observation"].startswith("b ")
