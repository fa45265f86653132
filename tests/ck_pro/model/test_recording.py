"""`replay:` and `record:`, normalisation, references to elements."""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ContentFiltered, ModelRefused, ReplayError
from ck_pro.model import LLM, Budget, CallContext
from ck_pro.model.recordings.elements import (
    fill_reply,
    normalise,
    normalise_task,
    observed_elements,
    template_reply,
)
from ck_pro.model.recordings.record import RecordBackend
from ck_pro.testing import (
    CONTEXT_HEADERS,
    FakeChatServer,
    Fault,
    ScriptedLLM,
    recorded_replies,
)

PAGE = """\
Tab 0 (current): Shop
[1] RootWebArea 'Shop'
\t[2] StaticText 'Scroll position 0 of 900'
\t[{a}] textbox 'Search the shop' focused: true
\t[{b}] button 'Search'
\t[{c}] link 'Next'
\t[{d}] link 'Next'
\t[{e}] link 'It's new'
"""
TRICKY = [
    "localhost:80",
    "http://127.0.0.1:8080",
    "12:30:00",
    "2024-01-02",
    "/tmp/x",
    "[12]",
    "port 80",
]
TEXTS = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from([*TRICKY, "/", ".", "a1b2c3d4e5f6", "{{", "-"]))
).map("".join)


def page(start=3):
    return PAGE.format(**{k: start + i for i, k in enumerate("abcde")})


def prompt(observation, origin="http://127.0.0.1:8000"):
    return [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": f"# Task\nSearch {origin}/shop"},
        {"role": "user", "content": f"seen before:\n{page(40)}"},
        {"role": "assistant", "content": "click(41)"},
        {"role": "user", "content": [{"type": "text", "text": f"{observation}\n\nWrite code."}]},
    ]


def context(port=8000, step=0, phase="action", instructions="rules\nWrite code.", **more):
    return CallContext(
        agent_path=("ck_agent", "web_agent"),
        phase=phase,
        step=step,
        task=f"Search http://127.0.0.1:{port}/shop on 2024-01-02",
        instructions=instructions,
        workdir=f"/home/me/run-{port}",
        **more,
    )


# --- normalising -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("go to http://127.0.0.1:4411/a?b=1 now", "go to {{origin}}/a?b=1 now"),
        ("https://LOCALHOST/x http://[::1]:80", "{{origin}}/x {{origin}}"),
        ("http://localhost.example.com", "http://localhost.example.com"),
        ("http://127.0.0.1.", "{{origin}}."),
        ("at localhost:8080", "at {{host}}"),
        ("Port: 8931 of 8931", "Port: {{port}} of 8931"),
        ("in /work/dir/a.txt, /work/dir2", "in {{workdir}}/a.txt, /work/dir2"),
        ("see /tmp/ck-pro-x1/f.csv.", "see {{path}}"),
        ("id 3F2504E0-4F89-41D3-9A0C-0305E82C3301", "id {{id}}"),
        ("sha 9f86d081884c7d65 deadbeef", "sha {{id}} deadbeef"),
        ("on 2024-05-01 or 2024-05-01T10:20:30.5Z", "on {{time}} or {{time}}"),
        ("at 10:20:30", "at {{time}}"),
        ("click [12] and x[3]", "click [#] and x[#]"),
        ("a  \r\nb\n", "a\nb"),
    ],
)
def test_normalise_replaces_run_specific_values(text, wanted):
    assert normalise(text, "/work/dir") == wanted


def test_normalised_tasks_keep_dates_and_numbers():
    task = "Orders of 2024-05-01, rows [3], http://localhost:1"
    assert normalise_task(task) == "Orders of 2024-05-01, rows [3], {{origin}}"


@given(TEXTS, st.sampled_from(["", "/home/me/run", "/tmp/x"]))
def test_normalise_is_idempotent(text, workdir):
    once = normalise(text, workdir)
    assert normalise(once, workdir) == once
    assert normalise_task(normalise_task(text, workdir), workdir) == normalise_task(text, workdir)


@given(TEXTS, st.integers(1, 65535), st.integers(1, 65535))
def test_texts_that_differ_in_ports_are_equal_when_normalised(text, a, b):
    at = [f"{text} http://localhost:{p}/x {text}" for p in (a, b)]
    assert normalise(at[0]) == normalise(at[1])


# --- elements --------------------------------------------------------------------------------


def test_elements_come_from_the_last_observation():
    assert [e.id for e in observed_elements(prompt(page()))] == ["1", "2", "3", "4", "5", "6", "7"]
    assert [e.id for e in observed_elements(prompt("no page"))][2] == "40"
    assert observed_elements([{"role": "user", "content": "hi"}]) == []
    both = prompt(page(20) + page(10))
    assert observed_elements(both)[2].id == "10"


@pytest.mark.parametrize(
    ("reply", "filled"),
    [
        ("click(id={{button 'Search'}})", "click(id=4)"),
        ("click({{link 'Next' 2}}, '{{link 'Next' 1}}')", "click(6, '5')"),
        ("click({{link 'It's new'}})", "click(7)"),
        (
            "goto('{{origin}}/cart'); save('{{workdir}}/a')",
            "goto('http://127.0.0.1:8000/cart'); save('/home/me/run-8000/a')",
        ),
        ("f'{{x}}' {'a': {{}}}", "f'{{x}}' {'a': {{}}}"),
    ],
)
def test_references_are_resolved(reply, filled):
    assert fill_reply(reply, prompt(page()), context()) == filled


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            "{{button 'Serch'}}",
            r"not in the observation; the page 'Shop' has: \[4\] button 'Search'",
        ),
        (
            "{{link 'Next'}}",
            r"matches 2 elements \(\[5\], \[6\]\); choose one: \{\{link 'Next' 1\}\}",
        ),
        ("{{link 'Next' 3}}", "selects number 3 of 2"),
        ("{{x '?'}}", "no similar element"),
    ],
)
def test_an_unresolved_reference_lists_the_known_elements(reply, message):
    with pytest.raises(ReplayError, match=message):
        fill_reply(reply, prompt(page()), context())


def test_references_without_a_page_origin_or_workdir_are_reported():
    bare = [{"role": "user", "content": "hi"}]
    for reply, message in (
        ("{{origin}}", "local URL"),
        ("{{workdir}}", "none"),
        ("{{a 'b'}}", "no page"),
    ):
        with pytest.raises(ReplayError, match=message):
            fill_reply(reply, bare, CallContext())


def test_ids_in_calls_become_references():
    reply = (
        "type(id=3, content='x')\nclick(4)\nclick( 6, 'n')\nclick(99)\n"
        "for i in range(3): wait(4)\nhover(7)"
    )
    template = template_reply(reply, prompt(page()), context())
    assert template == (
        "type(id={{textbox 'Search the shop'}}, content='x')\nclick({{button 'Search'}})\n"
        "click( {{link 'Next' 2}}, 'n')\nclick(99)\nfor i in range(3): wait(4)\n"
        "hover({{link 'It's new'}})"
    )
    other = fill_reply(template, prompt(page(30)), context())
    assert "type(id=30, content='x')\nclick(31)\nclick( 33, 'n')" in other


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)
PIECES = st.one_of(
    st.text(max_size=6),
    st.integers(0, 12).map(lambda i: f"click({i})"),
    st.integers(0, 12).map(lambda i: f"type(id={i}, content='a')"),
    st.sampled_from(["http://127.0.0.1:8000/a", "/home/me/run-8000", "http://127.0.0.1:80001"]),
)


@given(st.lists(NAMES, max_size=8), st.lists(PIECES).map(" ".join))
def test_fill_reply_restores_a_templated_reply(names, reply):
    lines = [f"\t[{i}] link '{n}'" for i, n in enumerate(names, 2)]
    messages = prompt("\n".join(["[1] RootWebArea 'x'", *lines]))
    template = template_reply(reply, messages, context())
    assert fill_reply(template, messages, context()) == reply


# --- files -----------------------------------------------------------------------------------


def record(path, replies):
    return LLM(backend=RecordBackend(path, ScriptedLLM(replies).backend))


def test_a_recording_replays_in_another_run(tmp_path):
    path = tmp_path / "new" / "replies.jsonl"
    llm = record(path, ["<think>hm</think>click(4)  # http://127.0.0.1:8000/shop", "ok"])
    assert str(llm(prompt(page()), context=context())).startswith("click(4)")
    llm(prompt(page()), context=context(step=1))
    budget = Budget(max_money=0)
    replay = LLM(call_target=f"replay:{path}")
    replay.check()
    reply = replay(prompt(page(30), "http://localhost:9"), context=context(port=9, budget=budget))
    assert str(reply) == "click(31)  # http://127.0.0.1:9/shop"
    assert (reply.reasoning, reply.model, reply.cost) == ("hm", "replay", 0.0)
    assert reply.usage.total_tokens > 0 and budget.snapshot()["money"] == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [sorted(r) for r in rows] == [
        ["instructions", "text"],
        ["agent", "instructions", "phase", "reasoning", "reply", "step", "task"],
        ["agent", "instructions", "phase", "reply", "step", "task"],
    ]
    assert rows[1]["agent"] == "ck_agent/web_agent" and "{{origin}}" in rows[1]["task"]


def test_recording_again_replaces_the_reply(tmp_path):
    path = tmp_path / "r.jsonl"
    for text in ("first", "second"):
        record(path, [text])(prompt(page()), context=context())
    record(path, ["third"])(prompt(page()), context=context(step=1))
    assert str(LLM(call_target=f"replay:{path}")(prompt(page()), context=context())) == "second"
    assert len(path.read_text().splitlines()) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_replies_are_appended_to_an_existing_recording(tmp_path):
    path = tmp_path / "r.jsonl"
    record(path, ["first"])(prompt(page()), context=context())
    file = path.stat().st_ino
    path.write_text(path.read_text().rstrip("\n"))  # an editor's doing
    first = path.read_text()
    record(path, ["second"])(prompt(page()), context=context(step=1))
    other = tmp_path / "other.jsonl"  # as another process would write it
    record(other, ["third"])(prompt(page()), context=context(step=2))
    path.write_text(path.read_text() + other.read_text().splitlines()[1] + "\n")
    record(path, ["fourth"])(prompt(page()), context=context(step=3))
    assert path.read_text().startswith(first) and path.stat().st_ino == file
    replies = LLM(call_target=f"replay:{path}")
    texts = [str(replies(prompt(page()), context=context(step=n))) for n in range(4)]
    assert texts == ["first", "second", "third", "fourth"]
    assert len(path.read_text().splitlines()) == 5


def test_a_changed_prompt_fails_with_the_difference(tmp_path):
    path = tmp_path / "r.jsonl"
    record(path, ["x"])(prompt(page()), context=context())
    changed = context(instructions="rules\nWrite good code.")
    with pytest.raises(ReplayError, match=r"(?s)-Write code\.\n\+Write good code\..*check=off"):
        LLM(call_target=f"replay:{path}")(prompt(page()), context=changed)
    target = f"replay:{path}?check=off"
    assert str(LLM(call_target=target)(prompt(page()), context=changed)) == "x"
    again = LLM(call_target=f"record:{tmp_path}/new.jsonl:{target}")
    again.check()
    again(prompt(page()), context=changed)
    assert (
        str(LLM(call_target=f"replay:{tmp_path}/new.jsonl")(prompt(page()), context=changed)) == "x"
    )
    assert (
        again.describe() == f"recording {tmp_path}/new.jsonl from: replaying the recording {path}"
    )


def test_times_and_paths_in_instructions_are_ignored(tmp_path):
    path = tmp_path / "r.jsonl"
    record(path, ["x"])(prompt(page()), context=context(instructions="Work in /home/me/run-8000."))
    moved = context(port=9, instructions="Work in /home/me/run-9.")
    assert str(LLM(call_target=f"replay:{path}")(prompt(page()), context=moved)) == "x"


def test_a_missing_reply_names_the_nearest(tmp_path):
    path = tmp_path / "r.jsonl"
    record(path, ["x"])(prompt(page()), context=context(step=3))
    replay = LLM(call_target=f"replay:{path}")
    with pytest.raises(
        ReplayError,
        match=r"step 7, task .*nearest is ck_agent/web_agent, action, step 3, the same task",
    ):
        replay(prompt(page()), context=context(step=7))
    path.write_text("")
    with pytest.raises(ReplayError, match="the recording is empty"):
        replay(prompt(page()), context=context())


def test_calls_of_tools_are_distinguished_by_their_messages(tmp_path):
    path = tmp_path / "r.jsonl"
    asked = context(phase="tool:ask_llm", instructions="")
    llm = record(path, ["Paris", "Rome"])
    for country in ("France", "Italy"):
        llm([{"role": "user", "content": f"capital of {country}"}], context=asked)
    replay = LLM(call_target=f"replay:{path}")
    assert str(replay([{"role": "user", "content": "capital of Italy"}], context=asked)) == "Rome"
    with pytest.raises(ReplayError, match="with these messages"):
        replay([{"role": "user", "content": "capital of Spain"}], context=asked)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not json\n", "line 1: not a recorded reply"),
        (b'\n{"reply": 3, "step": 0}\n', "line 2"),
        (b"[1]\n", "line 1"),
        (b"\xff\xfe\n", "not UTF-8"),
    ],
)
def test_a_malformed_recording_is_reported_in_one_line(tmp_path, content, message):
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=message):
        LLM(call_target=f"replay:{path}").check()


def test_unusable_files_are_reported(tmp_path):
    with pytest.raises(ReplayError, match="No such file"):
        LLM(call_target=f"replay:{tmp_path}/none").check()
    (tmp_path / "file").write_text("")
    with pytest.raises(ReplayError, match="cannot write"):
        LLM(call_target=f"record:{tmp_path}/file/x:manual").check()
    hand_written = tmp_path / "r.jsonl"
    row = {"agent": "ck_agent/web_agent", "phase": "action", "step": 0, "reply": "x"}
    row["task"] = normalise_task(context().task)
    hand_written.write_text(json.dumps(row))
    with pytest.raises(ReplayError, match="does not contain its instructions"):
        LLM(call_target=f"replay:{hand_written}")(prompt(page()), context=context())


def test_lone_surrogates_round_trip(tmp_path):
    path = tmp_path / "r.jsonl"
    text = "a\u2028b\x85c\ud83d \U0001f600\r\n{{}}"
    record(path, [text])(prompt(page()), context=context())
    assert str(LLM(call_target=f"replay:{path}")(prompt(page()), context=context())) == text


def test_many_threads_can_record(tmp_path):
    path = tmp_path / "r.jsonl"
    llm = record(path, lambda messages, ctx: f"reply {ctx.step}")
    threads = [
        threading.Thread(target=llm, args=(prompt(page()),), kwargs={"context": context(step=i)})
        for i in range(12)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    replay = LLM(call_target=f"replay:{path}")
    texts = [str(replay(prompt(page()), context=context(step=i))) for i in range(12)]
    assert texts == [f"reply {i}" for i in range(12)]


def test_a_recording_can_be_served_over_http(tmp_path):
    path = tmp_path / "r.jsonl"
    record(path, ["click(4)\nopen('/home/me/run-8000/ä')"])(prompt(page()), context=context())
    recorded = recorded_replies(path)
    faults = iter([Fault(429, {"Retry-After": "1"}), Fault(drop="body")])
    with FakeChatServer(lambda call: next(faults, None) or recorded(call)) as server:
        llm = LLM(
            call_target=server.url, headers=CONTEXT_HEADERS, wait=lambda seconds, cancel: None
        )
        reply = llm(prompt(page(30)), context=context(port=9))
    assert str(reply) == "click(31)\nopen('/home/me/run-9/ä')" and reply.attempts == 3


def test_a_recorded_content_filter_can_be_served_over_http(tmp_path):
    path = tmp_path / "r.jsonl"
    with pytest.raises(ContentFiltered):
        record(path, [ContentFiltered("no")])(prompt(page()), context=context())
    with FakeChatServer(recorded_replies(path)) as server:
        llm = LLM(call_target=server.url, headers=CONTEXT_HEADERS)
        with pytest.raises(ContentFiltered, match="no"):
            llm(prompt(page()), context=context())


# --- the scripted model ----------------------------------------------------------------------


def test_scripts_can_be_lists_phases_or_functions():
    in_order = ScriptedLLM(["a", ModelRefused("no")])
    assert str(in_order([])) == "a"
    for message in ("no", "1?2 replies are used up"):
        with pytest.raises(ModelRefused, match=message):
            in_order([])
    script = {"ck_agent/web_agent:plan": ["p0"], "web_agent:action": ["a0", "a1"], "end": ["e"]}
    by_phase = ScriptedLLM(script)
    asked = [("action", 1), ("plan", 0), ("end", 0), ("action", 0)]
    assert [str(by_phase([], context=context(phase=p, step=s))) for p, s in asked] == [
        "a1",
        "p0",
        "e",
        "a0",
    ]
    assert [c.context.phase for c in by_phase.calls] == [p for p, _ in asked]
    with pytest.raises(ModelRefused, match=r"only 2 replies; call of .* step 5"):
        by_phase([], context=context(step=5))
    with pytest.raises(ModelRefused, match="no replies for 'ck_agent/web_agent:other'"):
        by_phase([], context=context(phase="other"))
    changed = by_phase.updated({"max_prompt_tokens": 500})
    assert str(changed([], context=context())) == "a0" and len(by_phase.calls) == len(changed.calls)
