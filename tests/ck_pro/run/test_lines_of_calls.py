"""Lines that functions add to the output of code: their place, their number, and repetitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_pro.executor import CallLine, CodeExecutor, CodeResult, current_call, outside_calls
from ck_pro.run.results import AgentResult, code_observation


def observed(*pieces: object, value: str | None = None) -> object:
    return code_observation(CodeResult(pieces=list(pieces), value=value))


def test_lines_stand_where_they_happened() -> None:
    assert observed(CallLine("went"), "7\n", CallLine("clicked")) == "went\n7\nclicked"
    assert observed("no break", CallLine("went"), "9") == "no break\nwent\n9"
    result = AgentResult("a", "b")
    shown = observed("before ", result, "\n", CallLine("went"), "after\n")
    assert shown == ["before ", result.reference(), "\nwent\nafter"]


def test_a_line_that_the_code_printed_is_not_repeated() -> None:
    assert observed(CallLine("went"), "result: went\n") == "result: went"
    assert observed(CallLine("went"), value="'went'") == "went"
    assert observed(CallLine("it's"), "7\n", value='"it\'s"') == "it's\n7"


def test_only_the_last_lines_of_a_long_loop_are_shown() -> None:
    shown = observed("x\n", *(CallLine(f"action {n}.") for n in range(99)))
    assert isinstance(shown, str)
    lines = shown.split("\n")
    assert lines[:3] == ["(69 earlier actions omitted)", "x", "action 69."]
    assert len(lines) == 32


@pytest.mark.worker
def test_prints_and_lines_of_calls_keep_their_order(tmp_path: Path) -> None:
    def act(name: str) -> str:
        call = current_call()
        assert call is not None
        call.report(f"did {name}")
        if name == "c":
            raise ValueError("c failed")
        return name

    code = """\
import os, sys
print("1")
act("a")
os.system("echo 2")
sys.stdout.write("3\\n")
act("b")
try: act("c")
except ValueError: print("4")
for n in range(3): print(n * "x" * 9000); act(f"d{n}")
print("5")
"""
    with CodeExecutor({"act": act}, workdir=tmp_path, max_output=20_000) as executor:
        shown = str(code_observation(executor.run(code)))
    shown = shown.replace("x" * 9000, "-")
    lines = [line for line in shown.split("\n") if len(line) < 20]
    first = ["1", "did a", "2", "3", "did b", "did c", "4", "", "did d0"]
    assert lines[:9] == first
    assert lines[-2:] == ["did d2", "5"]


@pytest.mark.worker
def test_a_line_within_the_omitted_output_stands_at_its_end(tmp_path: Path) -> None:
    def act() -> None:
        call = current_call()
        assert call is not None
        call.report("did it")

    code = "print('a' * 900); act(); print('b' * 900)"
    with CodeExecutor({"act": act}, workdir=tmp_path, max_output=100) as executor:
        pieces = executor.run(code).pieces
    assert [type(piece) is CallLine for piece in pieces] == [False, True, False]
    assert "bytes of output omitted" in pieces[0] and pieces[2].endswith("b\n")


@pytest.mark.worker
def test_an_agent_inside_of_a_call_reports_nothing_to_that_call(tmp_path: Path) -> None:
    def agent() -> bool:
        with outside_calls():
            return current_call() is None

    with CodeExecutor({"agent": agent}, workdir=tmp_path) as executor:
        assert executor.run("agent()").value == "True"
