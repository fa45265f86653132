"""The loop, with real worker processes and a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentResult, AgentSession, AskLLMTool, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.approval import RuleApprover
from ck_pro.environment import Environment
from ck_pro.events import Observation
from ck_pro.exceptions import (
    ConfigError,
    ContentFiltered,
    InputError,
    ModelUnavailable,
    ReplayError,
)
from ck_pro.journal import read_events
from ck_pro.language import FunctionCallingLanguage, text_of
from ck_pro.model import Reply
from ck_pro.run.history import Window, files_in, shortened
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.session.goals import Goal
from ck_pro.session.observed import observation_text, several_observed
from ck_pro.testing import ScriptedLLM
from ck_pro.tool import tool_from_function

pytestmark = pytest.mark.worker


def code(text: str, thought: str = "so") -> str:
    return f"Thought: {thought}\n```python\n{text}\n```"


def agent(*replies: Any, **settings: Any) -> MultiStepAgent:
    script = replies[0] if len(replies) == 1 and callable(replies[0]) else list(replies)
    settings = {"name": "main", "tools": [StopTool()], **settings}
    return MultiStepAgent(model=ScriptedLLM(replies=script), **settings)


def prompts(a: MultiStepAgent) -> list[str]:
    """All prompts that the agent's scripted model was given, each as one text."""
    model = a.model
    assert isinstance(model, ScriptedLLM)
    return ["\n".join(text_of(m["content"]) for m in c.messages) for c in model.calls]


def helper(*replies: Any, **settings: Any) -> MultiStepAgent:
    return agent(*replies, **{"name": "helper", "description": "Helps.", **settings})


# --- the ordinary course ---------------------------------------------------------------------


def test_a_run_from_first_thought_to_answer(tmp_path: Path) -> None:
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


def test_a_sub_agent_comes_back_whole_whatever_is_printed() -> None:
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


def test_a_step_that_prints_a_result_keeps_all_else_that_it_printed(tmp_path: Path) -> None:
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


def test_rows_are_rebuilt_from_the_journal_to_the_byte(tmp_path: Path) -> None:
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


def test_sub_agents_of_one_step_run_at_once() -> None:
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


def test_calls_of_tools_are_in_the_row_and_counted() -> None:
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


# --- faults of the model ---------------------------------------------------------------------


def test_a_task_is_text() -> None:
    assert agent(code("stop('x')")).run(42).task == "42"  # type: ignore[arg-type]
    with pytest.raises(InputError, match="task is missing"):
        agent().run(None)  # type: ignore[arg-type]


def test_a_sub_agent_with_a_call_of_its_own() -> None:
    class Reader(MultiStepAgent):
        def __call__(self, task: str, page: int = 1, **kwargs: Any) -> AgentResult:
            return super().__call__(f"{task}, page {page}", **kwargs)

    class Still(MultiStepAgent):
        def __call__(self, task: str) -> AgentResult:  # type: ignore[override]
            return AgentResult(output="still", log="")

    reader = Reader(name="reader", model=ScriptedLLM([code("stop('read')")]), tools=[StopTool()])
    assert reader.get_function_definition(short=True).startswith(
        "- reader(task: str, page: int = 1):"
    )
    assert reader.parameters["properties"]["page"] == {"type": "integer", "default": 1}
    subs = [reader, Still(name="still")]
    a = agent(code("stop(reader('x', page=2).output + still('y').output)"), sub_agents=subs)
    session = a.run("t")
    assert session.final_results["output"] == "readstill"
    assert [child.task for child in session.children.values()] == ["x, page 2"]


def test_results_and_ends_of_a_subclass_count(tmp_path: Path) -> None:
    class Loud(MultiStepAgent):
        def step_check_end(self, session: AgentSession) -> bool:
            return len(session.steps) == 2

        def finalize(self, session: AgentSession) -> dict[str, Any]:
            return {**super().finalize(session), "output": "loud"}

    a = Loud(name="main", model=ScriptedLLM([code("1"), code("2")]), tools=[StopTool()])
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert (session.stop_reason, session.message) == (StopReason.FINISHED, "")
    assert session.final_results["output"] == "loud"
    rebuilt = sessions_from_events(read_events(tmp_path))
    assert rebuilt[session.id].to_dict() == session.to_dict()


def test_a_subclass_reads_replies_in_its_own_way() -> None:
    class Tagged(MultiStepAgent):
        def _parse_output(self, reply: str) -> dict[str, str]:
            thought, _, rest = reply.partition("<run>")
            return {"thought": thought, "code": rest.partition("</run>")[0]}

    replies = ["sum<run>print(1 + 1)</run>", code("print('not agreed')"), "<run>stop('2')</run>"]
    session = Tagged(name="main", model=ScriptedLLM(replies), tools=[StopTool()]).run("t")
    seen = [step["action"]["observation"] for step in session.steps[:2]]
    assert session.final_results == {"output": "2", "log": ""}
    assert session.steps[0]["action"]["thought"] == "sum"
    assert seen[0] == "2" and "no code" in seen[1]


def test_bad_form_bad_code_and_refusals_become_observations() -> None:
    a = agent(
        "I would rather talk.",
        code("undefined_name"),
        ContentFiltered("the filter said no"),
        code("stop('ok')"),
    )
    session = a.run("t")
    seen = [s["action"]["observation"] for s in session.steps]
    assert seen[0].startswith("ParseError: The reply contains no code")
    assert "NameError: name 'undefined_name' is not defined" in seen[1]
    assert seen[2] == "ContentFiltered: the filter said no"
    assert session.status is Status.DONE
    assert "The last 3 steps failed" in prompts(a)[3]


def test_repeated_steps_are_told_and_then_end_the_run() -> None:
    a = agent(lambda messages, context: code("print('again')"), stuck_limit=4, max_steps=20)
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.STUCK)
    assert len(session.steps) == 4
    assert "repeated the same action 2 times" in prompts(a)[2]
    assert "the same thing" not in prompts(a)[1]


def test_cycles_are_repeats_too_and_equal_code_is_mentioned() -> None:
    a = agent(
        lambda messages, context: code(f"print('{'ab'[context.step % 2]}')"),
        stuck_limit=3,
        max_steps=20,
    )
    session = a.run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STUCK, 6)
    a = agent(lambda messages, context: code("import time\nprint(time.time_ns())"), max_steps=6)
    assert a.run("t").stop_reason is StopReason.STEPS
    assert "ran the same code" in prompts(a)[4] and "ran the same code" not in prompts(a)[3]


def test_equal_calls_with_other_arguments_are_no_repeats() -> None:
    def click(id: int) -> str:
        return "ok"

    def reply(messages: Any, context: Any) -> Reply:
        arguments = json.dumps({"id": context.step})
        return Reply("", tool_calls=[{"function": {"name": "click", "arguments": arguments}}])

    language = FunctionCallingLanguage()
    a = agent(reply, tools=[click], language=language, stuck_limit=3, max_steps=5)
    session = a.run("t")
    assert session.stop_reason is StopReason.STEPS
    assert session.steps[1]["action"]["code"] == "click(id=1)"
    assert "click(id=0)" in prompts(a)[1] and "Python" not in prompts(a)[1]


def test_plans_update_the_progress_state_and_bad_plans_do_not() -> None:
    a = agent(
        "```python\n{'todo_list': ['look'], 'information': 'none yet'}\n```",
        code("print(1)"),
        "no plan today",
        code("stop(2)"),
        templates={"plan": "agent_plan"},
    )
    session = a.run("t")
    assert session.steps[0]["plan"]["state"]["information"] == ["none yet"]
    assert session.steps[1]["plan"]["state"]["todo_list"] == ["look"]
    assert "'look'" in prompts(a)[1] or '"look"' in prompts(a)[1]


def test_the_end_template_writes_the_result() -> None:
    reply = "```python\n{'output': 'formatted', 'log': 'l'}\n```"
    a = agent(code("stop('raw')"), reply, templates={"end": "agent_end"})
    session = a.run("t")
    assert session.final_results == {"output": "formatted", "log": "l"}
    assert session.to_dict()["steps"][-1]["end"]["llm_output"] == reply
    a = agent(code("stop('raw')"), '{"output": "x", "log": null}', templates={"end": "agent_end"})
    assert a.run("t").final_results == {"output": "x", "log": ""}


def test_a_refused_end_phase_and_an_empty_one_do_not_cost_the_answer() -> None:
    for fault in (ContentFiltered("no"), "```python\n{'output': None}\n```", "no dict"):
        a = agent(code("stop('raw')"), fault, templates={"end": "agent_end"})
        session = a.run("t")
        assert (session.status, session.final_results["output"]) == (Status.DONE, "raw")


def test_the_end_phase_tells_what_was_found_when_a_limit_ends_the_run() -> None:
    def reply(messages: Any, context: Any) -> str:
        found = "```python\n{'output': 'partial', 'log': 'l'}\n```"
        return found if context.phase == "end" else code("print('again')")

    a = agent(reply, templates={"end": "agent_end"}, stuck_limit=2)
    session = a.run("t")
    assert session.stop_reason is StopReason.STUCK
    assert session.final_results["output"] == "partial"


def test_plans_that_json_cannot_hold_are_refused() -> None:
    for bad in ("{'information': [b'raw']}", "{'n': 1e999}", "{'s': [{1, 2}]}"):
        a = agent(f"```python\n{bad}\n```", code("stop(1)"), templates={"plan": "agent_plan"})
        session = a.run("t", info={"path": Path("x")})
        assert session.steps[0]["plan"]["state"] == {}
        json.dumps(session.to_dict(), allow_nan=False)


# --- limits and endings ----------------------------------------------------------------------


def test_steps_run_out() -> None:
    a = agent(lambda messages, context: code(f"print({context.step})"), max_steps=3)
    session = a.run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STEPS, 3)
    assert session.final_results == {
        "output": "",
        "log": "The run ended without an answer.",
    }


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"max_tokens": 1}, StopReason.TOKENS),
        ({"max_steps": 2}, StopReason.STEPS),
        ({"max_seconds": 0.0}, StopReason.TIME),
    ],
)
def test_limits_hold_for_the_whole_tree(budget: dict[str, Any], reason: StopReason) -> None:
    sub = helper(lambda messages, context: code(f"print({context.step})"))
    a = agent(lambda messages, context: code("print(helper('x'))"), sub_agents=[sub])
    session = a.run("t", budget=Budget(**budget))
    assert (session.status, session.stop_reason) == (Status.PROBLEM, reason)
    assert len(session.steps) >= 1
    assert "max_" in session.message


def test_time_limit_kills_code_that_never_ends() -> None:
    a = agent(lambda messages, context: code("while True: pass"))
    session = a.run("t", budget=Budget(max_seconds=1.0))
    assert session.stop_reason is StopReason.TIME


class Watched(MultiStepAgent):
    ended: list[str] = []

    def end_run(self, session: AgentSession) -> None:
        self.ended.append(session.id)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ModelUnavailable("nobody there"), StopReason.MODEL_FAILURE),
        (RuntimeError("our bug"), StopReason.INTERNAL_ERROR),
    ],
)
def test_every_ending_cleans_up_and_leaves_a_row(
    fault: Exception, reason: StopReason, caplog: pytest.LogCaptureFixture
) -> None:
    a = Watched(name="main", model=ScriptedLLM(replies=[fault]))
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, reason)
    assert a.ended == [session.id] and session.run is None
    assert str(fault) in session.message
    assert len(session.to_dict()["steps"]) == 1
    assert ("our bug" in caplog.text) == (reason is StopReason.INTERNAL_ERROR)


def test_a_recording_that_does_not_fit_a_sub_agent_ends_the_whole_run() -> None:
    sub = helper(ReplayError("no reply"))
    a = agent(code("try:\n    helper('x')\nexcept BaseException: pass"), sub_agents=[sub])
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.MODEL_FAILURE)
    assert session.message == "no reply"
    assert [c.stop_reason for c in session.children.values()] == [StopReason.MODEL_FAILURE]


class Fragile(Environment):
    def observe(self) -> Observation:
        return Observation()

    def execute(self, action: Any) -> Observation:
        return Observation()

    def close(self) -> None:
        raise RuntimeError("cannot close")


def test_what_cannot_be_closed_or_shown_does_not_cost_the_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class InFragile(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            session.run.environment = Fragile()

    def display(event: dict[str, Any]) -> None:
        raise ValueError("display broken")

    a = InFragile(model=ScriptedLLM([code("stop('kept')")]), tools=[StopTool()])
    session = a.run("t", on_event=display)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "kept")
    assert "cannot close" in caplog.text and caplog.text.count("on_event failed") == 1


def test_a_session_is_run_once_and_may_be_driven_by_hand() -> None:
    a = agent(code("stop(1)"), code("stop(2)"))
    session = AgentSession("t")
    assert [s["step_idx"] for s in a.yield_session_run(session)] == [0]
    with pytest.raises(InputError, match="not new"):
        a.run("u", session=session)
    by_hand = AgentSession("t")
    assert a.step(by_hand, {})["action"]["code"] == "stop(2)"
    assert by_hand.finish == {"output": "2", "log": ""}
    by_hand.run.close()


def test_ctrl_c_is_recorded_and_passed_on(tmp_path: Path) -> None:
    def interrupted(messages: Any, context: Any) -> str:
        raise KeyboardInterrupt

    a = Watched(name="main", model=ScriptedLLM(replies=interrupted))
    session = AgentSession()
    with Journal(tmp_path) as journal, pytest.raises(KeyboardInterrupt):
        a.run("t", session=session, journal=journal)
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)
    assert a.ended == [session.id]
    assert list(read_events(tmp_path))[-1]["data"]["status"] == "in_progress"


def test_cancel_from_another_thread_reaches_running_code() -> None:
    cancel = threading.Event()

    def ready() -> None:
        cancel.set()

    sub = helper(code("ready()\nwhile True: pass"), tools=[ready])
    a = agent(code("helper('x')"), sub_agents=[sub])
    session = a.run("t", cancel=cancel)
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)


def test_no_sub_agent_outlives_the_step_that_called_it(tmp_path: Path) -> None:
    at_work = threading.Event()

    def slow_reply(messages: Any, context: Any) -> str:
        at_work.set()
        assert context.cancel.wait(30)
        return code("stop(1)")

    left_behind = (
        "import threading\nthreading.Thread(target=helper, args=['x'], daemon=True).start()\n"
        "wait_for_it()\n"
        "stop('ok')"
    )
    a = agent(
        code(left_behind),
        sub_agents=[helper(slow_reply)],
        tools=[StopTool(), tool_from_function(lambda: at_work.wait(30), name="wait_for_it")],
    )
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    (child,) = session.children.values()
    assert session.status is Status.DONE
    assert (child.status, child.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)
    kinds = [(e["kind"], e["sid"] == child.id) for e in read_events(tmp_path)]
    assert kinds.index(("status", True)) < kinds.index(("observation", False))


def test_a_stop_by_the_guard_ends_with_sensitive_action() -> None:
    def delete(path: str) -> str:
        raise AssertionError("must not be called")

    a = agent(
        code("try:\n    delete('x')\nexcept BaseException:\n    pass\nprint('went on')"),
        tools=[StopTool(), delete],
        approver=RuleApprover(stop=[r"^delete\("]),
    )
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)


def test_a_stream_can_be_left() -> None:
    a = Watched(name="main", model=ScriptedLLM(replies=[code("print(1)"), code("print(2)")]))
    session = AgentSession()
    steps = a.run("t", session=session, stream=True)
    assert next(steps)["action"]["observation"] == "1"
    steps.close()
    assert session.status is Status.IN_PROGRESS and a.ended == [session.id]


# --- settings --------------------------------------------------------------------------------


def test_goals_are_told_by_priority() -> None:
    goals = [Goal("later", "second thing", 2), {"name": "first", "description": "first thing"}]
    a = agent(code("stop(1)"), goals=goals)
    a.run("t")
    assert "# Goals\n- first: first thing\n- later: second thing" in prompts(a)[0]


def test_active_functions_filter_prompt_and_code() -> None:
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


def test_recent_steps_are_exact() -> None:
    a = agent(
        lambda messages, context: code(f"print('seen', {context.step})"),
        recent_steps=2,
        max_steps=5,
    )
    a.run("t")
    last = prompts(a)[-1]
    assert "seen 3" in last and "seen 2" in last and "seen 1" not in last
    assert "(Earlier steps omitted.)" in last


def test_the_free_window_moves_rarely_and_prompts_share_their_beginning(tmp_path: Path) -> None:
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


def test_an_agent_of_function_calls_runs_in_the_same_loop() -> None:
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


def test_search_finds_steps() -> None:
    session = agent(code("print('apples')"), code("print('pears')"), code("stop(1)")).run("t")
    assert [t.split(":")[0] for t in session.search("pears")] == ["Step 1"]


# --- projections (no worker) -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "budget", "start"),
    [([], 10, 0), ([5, 5], 10, 0), ([5, 5, 1], 10, 2), ([50], 10, 0), ([4] * 10, 10, 8)],
)
def test_window_start(sizes: list[int], budget: int, start: int) -> None:
    window = Window(budget)
    for size in sizes:
        window.add(size)
    assert window.first == start


def test_an_observation_reads_as_it_was_printed_and_several_actions_on_their_own_lines() -> None:
    one, other = {"repr": "<1>"}, {"repr": "<2>"}
    assert observation_text(["a ", one, " b"]) == "a <1> b"
    assert observation_text([one, "", other]) == "<1><2>"
    for observed, text in [
        (["a", "b"], "a\nb"),
        (["a", one, "b", other, one], "a\n<1>\nb\n<2>\n<1>"),
        ([one, ["a ", other], "b"], "<1>\na <2>\nb"),
        (["a"], "a"),
        ([one], "<1>"),
    ]:
        assert observation_text(several_observed(observed)) == text


def test_long_observations_lose_their_middle() -> None:
    make: Callable[[int], str] = lambda n: shortened("a" * n + "b" * n, 10)  # noqa: E731
    assert make(5) == "aaaaabbbbb"
    assert make(10) == "aaaaa\n[... 10 characters omitted ...]\nbbbbb"


def test_files_are_told_by_name_and_a_large_tree_is_not_walked(tmp_path: Path) -> None:
    assert files_in(tmp_path / "none") == []
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_text("x")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert files_in(tmp_path) == ["a.txt", "b/x.txt"]
    for n in range(60):
        (tmp_path / "b" / f"n{n:03}").write_text("")
    assert files_in(tmp_path)[-1] == "(and 12 more)" and len(files_in(tmp_path)) == 51


def test_a_folder_in_place_of_a_journal_is_told(tmp_path: Path) -> None:
    for wrong in ({"journal": str(tmp_path)}, {"journal": tmp_path}, {"budget": 5}):
        with pytest.raises(InputError, match=r"is not a (Journal|Budget)"):
            agent().run("t", **wrong)
        with pytest.raises(InputError, match=r"is not a (Journal|Budget)"):
            agent().resume(**wrong)


# --- replies that go too far, or not far enough ---------------------------------------------------


def test_an_invented_observation_ends_nothing_and_is_reported() -> None:
    reply = f"{code('x = 20 + 1')}\nObservation: {{'output': 99}}\n{code('stop(99)')}"
    a = agent(reply, code("stop(x)"))
    session = a.run("t")
    assert session.final_results["output"] == "21"
    seen = session.steps[0]["action"]["observation"]
    assert seen.startswith("Only the code before 'Observation: {'output': 99}' ran")
    assert seen in prompts(a)[1]
    assert "invented" in session.steps[0]["action"]["unreadable"]
    assert session.to_dict()["info"]["unreadable"] == {"action": 1}


def test_a_reply_that_was_cut_off_is_reported_and_its_half_block_does_not_run() -> None:
    half = Reply(f"{code('x = 1')}\nThen:\n```python\nx = 2\nx = x +", finish_reason="length")
    a = agent(half, code("print('x' in globals())"), code("stop(1)"))
    session = a.run("t")
    assert "truncated; no code ran" in session.steps[0]["action"]["observation"]
    assert session.steps[1]["action"]["observation"] == "False"
    assert "truncated; no code ran" in prompts(a)[1]


def test_the_service_is_asked_to_stop_where_an_observation_would_begin() -> None:
    a = agent(code("print(ask('q'))"), "an answer", code("stop(1)"), tools=[StopTool(), Asking()])
    a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    stops = [c.context.stop for c in model.calls]
    assert stops == [("\nObservation of step",), (), ("\nObservation of step",)]
    assert stops[0][0].strip() in prompts(a)[2]


class Asking(AskLLMTool):
    """`ask_llm` by another name."""

    name = "ask"


def test_a_plan_that_cannot_be_read_is_reported_in_the_next_plan_prompt_alone() -> None:
    phases = {"plan": "agent_plan", "action": "agent_action"}
    good = "```python\n{'todo_list': ['a']}\n```"
    replies = ["no plan", code("1"), good, code("2"), good, code("stop(3)")]
    a = agent(*replies, templates=phases)
    session = a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    told = ["Your last plan was unreadable" in text for text in prompts(a)]
    assert told == [False, False, True, False, False, False]
    assert [c.context.phase for c in model.calls] == ["plan", "action"] * 3
    assert "contains no dict" in session.steps[0]["plan"]["unreadable"]
    assert session.to_dict()["info"]["unreadable"] == {"plan": 1}


def test_unreadable_replies_of_sub_agents_count_too(tmp_path: Path) -> None:
    sub = helper("I talk", code("stop('x')"), "no end", templates=END, max_steps=3)
    a = agent(code("print(helper('a'))"), code("stop(1)"), sub_agents=[sub])
    with Journal(tmp_path / "journal") as journal:
        session = a.run("t", journal=journal)
    assert session.to_dict()["info"]["unreadable"] == {"action": 1, "end": 1}
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path / "journal")).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


END = {"action": "agent_action", "end": "agent_end"}


@pytest.mark.parametrize("reply", ["print({'x': 1})", "```python\n{}\n```", '{"price": 3}'])
def test_a_dict_that_is_no_plan_does_not_wipe_the_plan(reply: str) -> None:
    phases = {"plan": "agent_plan", "action": "agent_action"}
    good = "```python\n{'todo_list': ['a']}\n```"
    session = agent(good, code("1"), reply, code("stop(3)"), templates=phases).run("t")
    assert session.state["todo_list"] == ["a"]
    assert "the dict has none of the keys" in session.steps[1]["plan"]["unreadable"]


def test_a_model_that_always_reaches_its_limit_is_stopped_and_the_reason_is_counted() -> None:
    half = [Reply("Thought: " + "so " * n, finish_reason="length") for n in range(1, 9)]
    session = agent(*half, stuck_limit=4).run("t")
    assert session.stop_reason is StopReason.STUCK
    assert session.to_dict()["info"]["unreadable"] == {"action": 4}
