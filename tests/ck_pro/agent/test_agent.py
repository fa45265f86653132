"""The loop, with worker processes and a scripted model."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, helper, prompts

from ck_pro import AgentResult, AgentSession, AskLLMTool, Journal, StopTool
from ck_pro.exceptions import (
    ConfigError,
)
from ck_pro.journal import read_events
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.session.goals import Goal

pytestmark = pytest.mark.worker


def test_a_run_plans_acts_and_answers(tmp_path: Path) -> None:
    a = agent(code("x = 20 + 1\nprint(x)"), code("stop(x * 2, log='doubled')"))
    session = a.run("What is it?", workdir=tmp_path)
    assert isinstance(session, AgentSession)
    assert (session.status, session.stop_reason) == (Status.DONE, StopReason.FINISHED)
    assert session.final_results == {"output": "42", "log": "doubled"}
    assert session.steps[0]["action"]["observation"] == "21"
    row = session.to_dict()
    assert list(row) == ["id", "info", "task", "steps"]
    assert row["steps"][0]["action"]["llm_input"][0]["role"] == "system"
    assert not {"plan", "end"} & {phase for step in row["steps"] for phase in step}
    assert row["info"]["final_results"]["output"] == "42"
    info = row["info"]
    assert info["call_stat"]["__main__"]["llm_call"] == 2
    assert info["config"]["max_steps"] == a.max_steps and info["seed"] is None


def test_the_row_has_the_whole_sub_agent_whatever_the_code_prints() -> None:
    sub = helper(code("stop('deep')"), code("stop('deeper')"), code("stop('deepest')"))
    a = agent(
        code("print(helper('a'))"),
        code("r = helper(task='b')"),
        code("print('now', helper('c'))"),
        code("stop(r['output'])"),
        sub_agents=[sub],
    )
    row = a.run("t").to_dict()
    one, two, three, _ = (s["action"] for s in row["steps"])
    assert one["observation"]["output"] == "deep"
    assert one["observation"]["session"]["task"] == "a"
    assert [s["task"] for s in one["sub_sessions"]] == ["a"]
    assert isinstance(two["observation"], str)
    assert [s["task"] for s in two["sub_sessions"]] == ["b"]
    assert three["observation"][0] == "now "
    assert three["observation"][1]["session"]["task"] == "c"
    assert row["info"]["final_results"]["output"] == "deeper"
    stat = row["info"]["call_stat"]
    assert stat["helper"]["__ALL__"]["llm_call"] == 3
    assert stat["__ALL__"]["llm_call"] == 7
    json.dumps(row)


def test_an_observation_keeps_the_text_around_a_printed_result(tmp_path: Path) -> None:
    sub = helper(code("stop('deep')"), code("stop('deeper')"))
    step = (
        "import sys, subprocess\na, b = helper('a'), helper('b')\nsys.stdout.write('raw ')\n"
        "print('got', a, b, sep='|', end=';\\n')\nprint(b, a, sep='', end='')\n"
        "subprocess.run('echo sub; echo err >&2', shell=True)\n1 / 0"
    )
    a = agent(code(step), code("stop('x')"), sub_agents=[sub])
    with Journal(tmp_path / "journal") as journal:
        session = a.run("t", journal=journal)
    seen = session.steps[0]["action"]["observation"]
    texts = [one if isinstance(one, str) else one["output"] for one in seen]
    *texts, last = texts
    assert texts == ["raw got|", "deep", "|", "deeper", ";\n", "deeper", "", "deep"]
    assert last.startswith("sub\nerr\nTraceback") and "ZeroDivisionError: division" in last
    (kept,) = [
        event["data"]["observation"]
        for event in read_events(tmp_path / "journal")
        if event["kind"] == "observation" and event["sid"] == session.id and event["i"] == 0
    ]
    assert kept == seen
    deep, deeper = seen[1]["repr"], seen[3]["repr"]
    prompt = "".join(m["content"] for m in session.steps[1]["action"]["llm_input"])
    assert f"raw got|{deep}|{deeper};\n{deeper}{deep}sub\nerr\nTraceback" in prompt


def test_a_row_rebuilt_from_the_journal_is_identical(tmp_path: Path) -> None:
    sub = helper(*[code("stop('x')")] * 4)
    threads = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool:\n"
        "    print(*pool.map(helper, ['a', 'b', 'c', 'd']))"
    )
    a = agent(code(threads), code("1/0"), "no code", code("stop(1)"), sub_agents=[sub])
    with Journal(tmp_path / "journal") as journal:
        session = a.run("t", journal=journal)
    live = json.dumps(session.to_dict())
    rebuilt = sessions_from_events(read_events(tmp_path / "journal"))
    assert len(rebuilt) == 5
    assert json.dumps(next(iter(rebuilt.values())).to_dict()) == live


def test_sub_agents_of_one_step_run_concurrently() -> None:
    both = threading.Barrier(2, timeout=30)

    def meet() -> str:
        both.wait()
        return "met"

    sub = helper(*[code("stop(meet())")] * 2, tools=[StopTool(), meet])
    threads = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool:\n"
        "    found = list(pool.map(helper, ['a', 'b']))\n"
        "stop([f['output'] for f in found])"
    )
    session = agent(code(threads), sub_agents=[sub]).run("t")
    assert session.final_results["output"] == "['met', 'met']"


def test_ten_threads_on_one_agent_share_nothing() -> None:
    start = threading.Barrier(10, timeout=60)

    def reply(messages: list[dict[str, Any]], context: Any) -> str:
        if context.agent_path == ("main", "helper"):
            return code(f"stop({context.task!r} + '!')")
        if context.step == 0:
            return code(f"mine = {context.task!r}\nopen('mine.txt', 'w').write(mine)")
        if context.step == 1:
            return code("print(helper(mine + '?'))")
        return code("stop(open('mine.txt').read() + mine)")

    sub = helper(reply)
    a = agent(reply, sub_agents=[sub])
    found: dict[str, Any] = {}

    def work(name: str) -> None:
        start.wait()
        found[name] = a.run(name)

    threads = [threading.Thread(target=work, args=(f"task{n}",)) for n in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name, session in found.items():
        assert session.final_results["output"] == name * 2, session.message
        assert session.steps[1]["action"]["observation"]["output"] == f"{name}?!"
        text = json.dumps(session.to_dict())
        assert not any(f'"{other}' in text for other in found if other != name)
    assert len({s.id for s in found.values()}) == 10


def test_model_calls_of_tools_are_in_the_row_and_counted() -> None:
    a = agent(
        code("print(ask_llm('why?'))"),
        "because",
        code("stop(1)"),
        tools=[AskLLMTool(), StopTool()],
    )
    row = a.run("t").to_dict()
    (call,) = row["steps"][0]["action"]["model_calls"]
    assert (call["phase"], call["llm_output"]) == ("tool:ask_llm", "because")
    assert row["info"]["call_stat"]["ask_llm"]["__ALL__"]["llm_call"] == 1
    assert row["info"]["call_stat"]["__ALL__"]["llm_call"] == 3


def test_prompts_list_goals_by_priority() -> None:
    goals = [Goal("later", "second thing", 2), {"name": "first", "description": "first thing"}]
    a = agent(code("stop(1)"), goals=goals)
    a.run("t")
    assert "# Goals\n- first: first thing\n- later: second thing" in prompts(a)[0]


def test_active_functions_limit_prompt_and_code() -> None:
    def secret_tool() -> str:
        return "x"

    tools = [StopTool(), secret_tool]
    a = agent(code("secret_tool()"), code("stop(1)"), tools=tools, active_functions=["stop"])
    session = a.run("t")
    assert "NameError" in session.steps[0]["action"]["observation"]
    assert "secret_tool" not in prompts(a)[0]
    with pytest.raises(ConfigError, match="no function 'stopp'"):
        agent(active_functions=["stopp"]).run("t")


def test_store_io_off_keeps_model_texts_out_of_row_and_journal(tmp_path: Path) -> None:
    a = agent("Thought: private words\n```python\nstop(1)\n```", store_io=False)
    with Journal(tmp_path) as journal:
        row = a.run("t", journal=journal).to_dict()
    assert not {"llm_input", "llm_output"} & set(row["steps"][0]["action"])
    assert row["info"]["call_stat"]["__main__"]["llm_call"] == 1
    assert "step by step by writing Python" not in (tmp_path / "events.jsonl").read_text()


def test_recent_steps_sets_the_exact_number_of_steps_in_prompts() -> None:
    a = agent(
        lambda messages, context: code(f"print('seen', {context.step})"),
        recent_steps=2,
        max_steps=5,
    )
    a.run("t")
    last = prompts(a)[-1]
    assert "seen 3" in last and "seen 2" in last and "seen 1" not in last
    assert "(Earlier steps omitted.)" in last


def test_the_window_moves_rarely_so_that_prompts_share_prefixes(tmp_path: Path) -> None:
    a = agent(
        lambda messages, context: code(f"print('{context.step} ' + 'x' * 900)"),
        history_chars=6000,
        max_steps=20,
    )
    with Journal(tmp_path) as journal:
        a.run("t", journal=journal)
    calls = [e["data"] for e in read_events(tmp_path) if e["kind"] == "model_call"]
    shares = [c["prefix_share"] for c in calls[1:]]
    assert sum(s < 0.7 for s in shares) <= 7
    assert max(len(p) for p in prompts(a)) < 12_000


def test_an_agent_with_function_calls_runs_in_the_same_loop() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    call = {"id": "1", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    wrong = {"id": "2", "function": {"name": "sub", "arguments": "{}"}}
    a = agent(
        Reply("", tool_calls=[call, wrong]),
        Reply("3"),
        tools=[add],
        language=FunctionCallingLanguage(),
    )
    session = a.run("t")
    seen = session.steps[0]["action"]["observation"]
    assert seen[0] == "3" and "no function 'sub'" in seen[1]
    assert session.final_results["output"] == "3"


def test_results_are_mappings() -> None:
    result = agent(code("stop('o', 'l')"))("t")
    assert isinstance(result, AgentResult)
    assert "output" in result and result["log"] == "l" and dict(result)["task"] == "t"


def test_search_returns_matching_steps() -> None:
    session = agent(code("print('apples')"), code("print('pears')"), code("stop(1)")).run("t")
    assert [t.split(":")[0] for t in session.search("pears")] == ["Step 1"]
