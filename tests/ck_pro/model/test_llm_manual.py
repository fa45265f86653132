"""`manual`: a person or a pipe writes the replies."""

from __future__ import annotations

import io
import os
import sys
import threading

import pytest

from ck_pro.exceptions import ManualAbort, ReplayError
from ck_pro.model import LLM, CallContext
from ck_pro.model.backends.manual import HELP, ManualBackend

PROMPT = [
    {"role": "system", "content": "be good"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "[1] RootWebArea 'Shop'\n\t[7] button 'Search'\x1b[2J"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 500}},
        ],
    },
]
CONTEXT = CallContext(agent_path=("ck_agent",), phase="action", step=2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def person(text, tty=False):
    stdin, out = (Terminal if tty else io.StringIO)(text), io.StringIO()
    return LLM(backend=ManualBackend(stdin, out)), out


def terminal(monkeypatch, columns, lines):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))


def ask(llm):
    return str(llm(PROMPT, context=CONTEXT))


def test_one_pipe_can_contain_several_replies():
    llm, out = person("one\n  two\n/send\nthree\r\n/send\nfour, ended by the end\n")
    assert [ask(llm) for _ in range(3)] == ["one\n  two", "three", "four, ended by the end"]
    shown = out.getvalue()
    assert shown.count("ck_agent, action, step 2") == shown.count("be good") == 3
    assert "for the next page" not in shown and "Write the reply" not in shown
    with pytest.raises(ManualAbort, match="input ended"):
        ask(llm)


def test_only_the_lines_of_the_reply_are_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n/send\nb\n/send\n"))
    assert [ask(LLM()), ask(LLM(call_target="manual"))] == ["a", "b"]


def test_a_manual_reply_is_free_and_counted():
    reply = person("text\n/send\n")[0](PROMPT)
    assert (reply.model, reply.cost, reply.usage.estimated) == ("manual", 0.0, True)


def test_commands_work_within_a_reply():
    llm, out = person("/help\n/raw\nx\ny\n/undo\n//send\n/show\n/etc/hosts\n/SEND\n")
    assert ask(llm) == "x\n/send\n/etc/hosts"
    shown = out.getvalue()
    assert HELP.strip() in shown and "Removed: y" in shown
    assert '"role": "system"' in shown and "522 characters" in shown
    assert "--- user ---" in shown and "[image_url]" in shown
    assert "\x1b" not in shown


def test_a_mistyped_command_does_not_join_the_reply():
    llm, out = person("one\n/sned\n//sned\n/send\n", tty=True)
    assert ask(llm) == "one\n/sned"
    assert "there is no command /sned; did you mean /send? Write //sned" in out.getvalue()
    with pytest.raises(ManualAbort, match="no command /sned; did you mean /send"):
        ask(person("one\n/sned\ntwo\n/send\n")[0])
    assert ask(person("/home\n/tmp/x\nsee /sned\n/send\n")[0]) == "/home\n/tmp/x\nsee /sned"


def test_abort_raises():
    with pytest.raises(ManualAbort, match="aborted by the user"):
        ask(person("text\n/abort\n")[0])


def test_an_empty_reply_is_not_sent():
    llm, out = person("/send\n \n/send\nyes\n/send\n")
    assert ask(llm).strip() == "yes" and "The reply is empty" in out.getvalue()


def test_a_long_prompt_is_shown_in_pages(monkeypatch):
    terminal(monkeypatch, columns=80, lines=7)
    prompt = [{"role": "user", "content": "\n".join(f"line {i}" for i in range(40))}]
    llm, out = person("\nq\nreply\n/send\n", tty=True)
    assert str(llm(prompt)) == "reply"
    assert "line 8" in out.getvalue() and "line 9" not in out.getvalue()
    assert "31 more lines" in out.getvalue()


@pytest.mark.parametrize(
    ("typed", "reply", "shown"),
    [
        ("/help\nq\nyes\n/send\n", "yes", "/undo   remove"),
        ("/raw\nq\nyes\n/send\n", "yes", '"role": "user"'),
        ("At once\nmore\n/send\n", "At once\nmore", "Added as the first line"),
        ("/send\nyes\n/send\n", "yes", "The reply is empty"),
        ("/sned\nyes\n/send\n", "yes", "did you mean /send?"),
    ],
)
def test_commands_and_text_work_at_the_end_of_a_page(monkeypatch, typed, reply, shown):
    terminal(monkeypatch, columns=80, lines=7)
    prompt = [{"role": "user", "content": "line\n" * 40}]
    llm, out = person(typed, tty=True)
    assert str(llm(prompt)) == reply and shown in out.getvalue()
    with pytest.raises(ManualAbort):
        person("/abort\n", tty=True)[0](prompt)


def test_wrapped_lines_count_for_the_page(monkeypatch):
    terminal(monkeypatch, columns=10, lines=8)
    text = "\n".join(["x" * 35, "界" * 6, "short", "y" * 200, "end"])
    stdin, out = Terminal("\n\n\nreply\n/send\n"), io.StringIO()
    assert str(LLM(backend=ManualBackend(stdin, out))(text)) == "reply"
    pages = out.getvalue().split("for the next page, q to write, /help --")
    shown = ["x" * 35, "界" * 6 + "\nshort", "y" * 200, "end"]
    assert all(text in page for text, page in zip(shown, pages, strict=True))


@pytest.mark.integration
def test_edit_opens_the_editor_and_reports_its_failures(monkeypatch, tmp_path):
    script = tmp_path / "editor.py"
    script.write_text("import sys\nwith open(sys.argv[1], 'a') as f:\n    f.write('\\nadded')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    assert ask(person("mine\n/edit\n/send\n")[0]) == "mine\nadded"
    monkeypatch.setenv("EDITOR", str(tmp_path / "none"))
    llm, out = person("mine\n/edit\n/send\n")
    assert ask(llm) == "mine" and "failed" in out.getvalue()
    for spoiling in ("os.remove(sys.argv[1])", "open(sys.argv[1], 'wb').write(b'\\xe9')"):
        script.write_text(f"import os, sys\n{spoiling}")
        monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
        llm, out = person("mine \udce9\n/edit\n/send\n")
        assert ask(llm) == "mine \udce9" and "failed" in out.getvalue()
    monkeypatch.delenv("EDITOR")
    llm, out = person("mine\n/edit\n/send\n")
    assert ask(llm) == "mine" and "environment variable EDITOR" in out.getvalue()


def test_byte_order_marks_are_removed_and_wrong_encodings_reported():
    assert ask(person("\ufeffmine\n/send\n")[0]) == "mine"
    piped = io.TextIOWrapper(io.BytesIO(b"mine \xe9\n/send\n"), encoding="utf-8")
    with pytest.raises(ManualAbort, match="the input is not utf-8"):
        ask(LLM(backend=ManualBackend(piped, io.StringIO())))


def test_references_to_elements_are_replaced():
    assert ask(person("click(id={{button 'Search'}})\n/send\n")[0]) == "click(id=7)"
    with pytest.raises(ReplayError, match="button 'Search'"):
        ask(person("click(id={{button 'Serach'}})\n/send\n")[0])
    llm, out = person("{{button 'Serach'}}\n/send\n/undo\nok\n/send\n", tty=True)
    assert ask(llm) == "ok" and "is not in the observation" in out.getvalue()


def test_calls_of_many_threads_are_answered_one_by_one():
    read, write = os.pipe()
    with os.fdopen(read) as stdin, os.fdopen(write, "w") as pipe:
        llm = LLM(backend=ManualBackend(stdin, io.StringIO()))
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(ask(llm))) for _ in range(8)]
        for t in threads:
            t.start()
        for i in range(8):
            pipe.write(f"start {i}\nend {i}\n/send\n")
        pipe.flush()
        for t in threads:
            t.join()
    assert sorted(replies) == [f"start {i}\nend {i}" for i in range(8)]
