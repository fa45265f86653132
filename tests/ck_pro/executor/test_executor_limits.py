"""Arguments of the executor at their limits, and `close` during a step."""

from __future__ import annotations

import threading

import pytest

from ck_pro.exceptions import ConfigError, ExecutorError
from ck_pro.executor import CodeExecutor

pytestmark = pytest.mark.worker


def add_one(number):
    return number + 1


@pytest.mark.parametrize("seconds", [float("inf"), 10**30])
def test_an_infinite_limit_is_accepted(tmp_path, seconds):
    with CodeExecutor(
        {"add_one": add_one},
        workdir=tmp_path,
        timeout=seconds,
        call_timeout=seconds,
        wall_timeout=seconds,
    ) as executor:
        assert executor.run("add_one(2)").value == "3"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": "5"}, "timeout must be a number of seconds"),
        ({"call_timeout": float("nan")}, "call_timeout must be"),
        ({"wall_timeout": True}, "wall_timeout must be"),
        ({"memory_mb": None}, "memory_mb must be a whole number"),
        ({"max_output": 0.5}, "max_output must be"),
        ({"functions": {"class": add_one}}, "'class' is not a valid"),
    ],
)
def test_invalid_limits_are_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        CodeExecutor(**given)


def test_a_step_that_forbids_open_files_harms_no_later_step(tmp_path):
    code = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))"
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run(code).error is None
        result = executor.run("print(1)\n2")
        assert (result.output, result.value, result.state_lost) == ("1\n", "2", False)


def test_close_kills_a_running_step(tmp_path):
    started = threading.Event()
    executor = CodeExecutor({"started": started.set}, workdir=tmp_path, timeout=None)
    results = []
    thread = threading.Thread(
        target=lambda: results.append(executor.run("print('part')\nstarted()\nwhile True: pass"))
    )
    thread.start()
    assert started.wait(60)
    executor.close()
    thread.join(60)
    assert results[0].error.type == "Cancelled" and results[0].output == "part\n"
    with pytest.raises(ExecutorError, match="closed"):
        executor.run("1")


def test_a_function_may_close_the_executor(tmp_path):
    executor = CodeExecutor({"leave": lambda: executor.close()}, workdir=tmp_path)
    assert executor.run("leave()").error.type == "Cancelled"


def test_a_plain_exception_keeps_its_type(tmp_path):
    def fail():
        raise Exception("plain", 1)

    with CodeExecutor({"fail": fail}, workdir=tmp_path) as executor:
        caught = "try: fail()\nexcept RuntimeError: print('no')\nexcept Exception as e: print(e)"
        assert executor.run(caught).output == "('plain', 1)\n"
        assert executor.run("fail()").error.type == "Exception"
