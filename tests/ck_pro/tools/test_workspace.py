"""The workspace tools: in code, in function calls, and what hostile use of them does not get."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro import CodeExecutor, MultiStepAgent, StopTool, workspace_tools
from ck_pro.agent_settings import ExecutorSettings
from ck_pro.approval import RuleApprover
from ck_pro.exceptions import ConfigError, ToolError
from ck_pro.executor import CodeResult
from ck_pro.executor.worker.code.commands import Command, HeadAndTail
from ck_pro.executor.zygotes import _zygotes
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.workspace import RunCommandTool

pytestmark = pytest.mark.worker
SECRET = "PLANTED-SECRET-VALUE"
Step = Callable[..., CodeResult]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")


def functions() -> dict[str, Any]:
    return {"stop": lambda x="": x, **{tool.name: tool.bind(None) for tool in workspace_tools()}}


def make(folder: Path, **settings: Any) -> CodeExecutor:
    return CodeExecutor(functions(), {"stop"}, workdir=folder, **settings)


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeExecutor]:
    with make(tmp_path_factory.mktemp("workspace"), timeout=60) as executor:
        yield executor


@pytest.fixture
def run(executor: CodeExecutor) -> Step:
    return executor.run


def said(result: CodeResult) -> str:
    """What a step printed, which must have come to its end."""
    assert result.error is None and not result.state_lost, result
    return result.output


def command(text: str, **arguments: Any) -> str:
    """Code that prints what a shell command said."""
    more = "".join(f", {name}={value!r}" for name, value in arguments.items())
    return f"print(run_command({text!r}{more}))"


def descendants(pid: int) -> set[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return set()
    return {int(child) for child in children}.union(*(descendants(int(c)) for c in children))


def processes_of(marker: str) -> list[int]:
    """Descendants of the zygotes whose command line holds the marker."""
    found = []
    for pid in set().union(*(descendants(z._process.pid) for z in _zygotes.values())):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in line:
            found.append(pid)
    return found


def gone(marker: str) -> bool:
    deadline = time.monotonic() + 20
    while processes_of(marker) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not processes_of(marker)


# --- commands in the foreground ---------------------------------------------------------------


def test_a_command_has_output_in_order_and_an_exit_code(run: Step) -> None:
    assert said(run(command("echo a; echo b >&2; echo c; exit 3"))) == "a\nb\nc\n[exit code 3]\n"
    code = "r = run_command('printf x')\nprint(repr(r.output), r.exit_code, r.id, type(r) == str)"
    assert said(run(code)) == "'x' 0 None False\n"
    assert said(run("print(r.splitlines()[-1])")) == "[exit code 0]\n"
    assert said(run("import pickle; print(pickle.loads(pickle.dumps(r)) == r)")) == "True\n"
    assert said(run(command("kill -9 $$"))) == "[killed by signal 9]\n"
    assert "not found" in said(run(command("no-such-program")))
    assert said(run(command("cat"))) == "[exit code 0]\n"  # there is no input


def test_commands_and_code_share_the_working_directory(run: Step, executor: CodeExecutor) -> None:
    said(run("import os; os.makedirs('sub', exist_ok=True); os.chdir('sub')"))
    assert said(run(command("pwd"))).startswith(str(executor.workdir) + "\n")
    said(run("os.chdir('..')"))
    said(run(command("echo from-shell > shared.txt")))
    assert said(run("print(open('shared.txt').read())")).startswith("from-shell")


def test_the_middle_of_a_long_output_is_cut_and_said(run: Step) -> None:
    text = said(run(command("echo first; seq 1 100000; echo last")))
    assert text.startswith("first\n1\n") and text.endswith("100000\nlast\n[exit code 0]\n")
    assert "bytes of output omitted" in text and len(text) < 20_000


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 30))
def test_both_ends_of_any_stream_are_kept(pieces: list[bytes], size: int) -> None:
    ends = HeadAndTail(size)
    for piece in pieces:
        ends.add(piece)
    whole = b"".join(pieces)
    if len(whole) <= 2 * size:
        assert ends.text() == whole.decode("utf-8", "replace")
    else:
        assert f"[... {len(whole) - 2 * size} bytes" in ends.text()
        assert ends.text().startswith(whole[:size].decode("utf-8", "replace"))
        assert ends.text().endswith(whole[-size:].decode("utf-8", "replace"))


def test_a_timeout_kills_the_command_with_its_children_and_no_more(run: Step) -> None:
    said(run("kept = 1"))
    text = said(run(command("echo started; sleep 7001 & sleep 7001", timeout=0.3)))
    assert text.startswith("started\n[killed after 0.3 s;")
    assert gone("7001") and said(run("print(kept)")) == "1\n"


def test_a_command_that_ignores_sigterm_is_killed(run: Step) -> None:
    text = said(run(command("trap '' TERM INT HUP; while true; do sleep 7002; done", timeout=0.3)))
    assert "killed after 0.3 s" in text and gone("7002")


@linux
@pytest.mark.parametrize(
    "daemon",
    ["sleep 7003 &", "setsid sleep 7003 &", "(setsid setsid sleep 7003 >/dev/null 2>&1 &) &"],
)
def test_a_daemon_of_a_foreground_command_is_killed_and_said(run: Step, daemon: str) -> None:
    text = said(run(command(f"{daemon} echo hi; sleep 0.3")))
    assert text.startswith("hi\n[exit code 0") and gone("7003")


@linux
def test_a_daemon_that_hides_ends_with_the_worker(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        hidden = "(setsid env -i sleep 7004 >/dev/null 2>&1 &); sleep 0.3"
        assert said(executor.run(command(hidden))).endswith("[exit code 0]\n")
        assert said(executor.run("print(1)")) == "1\n"
    assert gone("7004")


def test_a_flood_is_cut_and_the_memory_small(run: Step) -> None:
    text = said(run(command("yes 2>&1", timeout=0.5)))
    assert "bytes of output omitted" in text and len(text) < 20_000


def test_a_command_that_closes_its_output_is_waited_for(run: Step) -> None:
    text = said(run(command("exec >&- 2>&-; sleep 0.2; echo done > closed.txt")))
    assert text == "[exit code 0]\n"
    assert said(run("print(read_file('closed.txt'))")) == "done\n\n"


def test_the_deadline_of_the_step_kills_the_command(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        result = executor.run(command("echo no; sleep 7005"), timeout=0.5)
        assert result.error is not None and result.error.type == "TimeoutError"
        assert result.state_lost and not result.commands_lost and gone("7005")
        assert said(executor.run(command("echo again"))) == "again\n[exit code 0]\n"


def test_commands_of_several_threads_run_at_once(run: Step) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        # each waits for the file of the next one: none could end alone
        "def one(i): return run_command(f'touch at{i}; until [ -e at{(i + 1) % 3} ]; do sleep 0.01;"
        " done; echo {i}').output\n"
        "with ThreadPoolExecutor(3) as pool: print(list(pool.map(one, range(3))))"
    )
    assert said(run(code)) == "['0\\n', '1\\n', '2\\n']\n"


def test_a_terminal_function_ends_a_step_that_waits_for_a_command(run: Step) -> None:
    said(run("kept = 2"))
    code = (
        "import threading, os, time\n"
        "def end():\n"
        "    while not os.path.exists('runs'): time.sleep(0.01)\n"
        "    stop('x')\n"
        "threading.Thread(target=end).start()\n"
        "run_command('touch runs; sleep 7006', timeout=50)"
    )
    result = run(code)
    assert result.ended_by == "stop" and not result.state_lost
    assert gone("7006") and said(run("print(kept)")) == "2\n"


def test_a_command_killed_by_the_codes_own_exception_is_not_left(run: Step) -> None:
    code = (
        "import signal\n"
        "def ring(*_): raise KeyError('ring')\n"
        "signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "run_command('sleep 7007')"
    )
    result = run(code)
    assert result.error is not None and result.error.type == "KeyError" and gone("7007")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("run_command('')", "non-empty"),
        ("run_command(5)", "must be a non-empty text"),
        ("run_command('a', timeout=0)", "above 0"),
        ("run_command('a', timeout=float('nan'))", "above 0"),
        ("run_command('a\\0b')", "null"),
        ("kill_command(99)", "no background command 99"),
        ("kill_command('1')", "must be a number"),
        ("command_output(99)", "known ids"),
        ("read_file('nope.txt')", "No such file"),
        ("read_file('.')", "is a folder"),
        ("read_file('')", "non-empty"),
        ("read_file('shared', start_line=0)", "from 1"),
        ("read_file('a\\0b')", "null"),
        ("write_file('x', 5)", "must be text"),
        ("write_file('.', '')", "is a folder"),
        ("write_file('x', '\\ud800')", "surrogates"),
        ("list_files('nope')", "does not exist"),
        ("list_files('.', '../*')", "leads outside"),
        ("list_files('.', '/etc/*')", "leads outside"),
        *(
            (call, "is outside the working directory")
            for path in ("../x", "/etc/passwd", "a/../../x", "/", "~/../../x/../..")
            for call in (
                f"read_file({path!r})",
                f"write_file({path!r}, 'x')",
                f"list_files({path!r})",
            )
        ),
    ],
)
def test_wrong_calls_are_one_clear_line(run: Step, call: str, message: str) -> None:
    result = run(call)
    assert result.error is not None and result.error.type == "ToolError", result
    assert message in result.error.message and "\n" not in result.error.message
    assert "worker" not in result.error.traceback
    caught = run(f"try:\n    {call}\nexcept RuntimeError as e:\n    print('caught')")
    assert said(caught) == "caught\n"


# --- commands in the background ---------------------------------------------------------------

TICK = "echo up; echo also >&2; exec sleep 7008"
UNTIL = "import time\nwhile 'also' not in command_output(n): time.sleep(0.01)\n"


def test_a_background_command_lives_across_steps(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        run = executor.run
        text = said(run(f"r = run_command({TICK!r}, background=True)\nn = r.id\nprint(r)"))
        assert "command 1 runs in the background" in text
        assert said(run(UNTIL + "print(command_output(n))")).startswith("up\nalso\n[command 1 is r")
        # also over the end by a terminal function, which counts threads
        ended = run("stop()")
        assert ended.ended_by == "stop" and not ended.state_lost
        assert said(run("print(command_output(n).exit_code)")) == "None\n"
        text = said(run("k = kill_command(n)\nprint(k, k.exit_code)"))
        assert text == "up\nalso\n[command 1 was killed: killed by signal 15] -15\n"
        assert gone("7008")
        assert "had already ended" in said(run("print(kill_command(n))"))


def test_a_background_command_that_ends_is_told(run: Step) -> None:
    code = (
        "import time\nr = run_command('seq 1 50000; exit 4', background=True)\n"
        "while command_output(r.id).exit_code is None: time.sleep(0.01)\n"
        "print(command_output(r.id)[-80:])"
    )
    text = said(run(code))
    assert "50000\n[command" in text and text.endswith("has ended: exit code 4]\n")


def test_a_background_command_that_ignores_sigterm_is_killed(run: Step) -> None:
    stubborn = "trap '' TERM; echo also; while true; do sleep 7009; done"
    said(run(f"n = run_command({stubborn!r}, background=True).id\n" + UNTIL))
    assert "killed by signal 9" in said(run("print(kill_command(n))")) and gone("7009")


def test_a_killed_step_takes_them_along_and_says_so(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        said(executor.run(f"n = run_command({TICK!r}, background=True).id\n{UNTIL}"))
        result = executor.run("while True: pass", timeout=0.3)
        assert result.state_lost and result.commands_lost and gone("7008")
        assert "none" in said(executor.run("try: kill_command(1)\nexcept Exception as e: print(e)"))
        assert not executor.run("while True: pass", timeout=0.3).commands_lost


def test_closing_ends_them(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        said(executor.run(f"n = run_command({TICK!r}, background=True).id\n{UNTIL}"))
    assert gone("7008")


def test_a_flood_in_the_background_harms_nothing(run: Step) -> None:
    code = (
        "import time\nn = run_command('yes', background=True).id\n"
        "while 'output omitted' not in command_output(n): time.sleep(0.01)\n"
        "print(len(kill_command(n)) < 20_000)"
    )
    assert said(run(code)) == "True\n"


def test_there_is_a_limit_to_background_commands(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        result = executor.run("for _ in range(40): run_command('sleep 7010', background=True)")
        assert result.error is not None and "16 background commands" in result.error.message
        said(executor.run("kill_command(1)\nrun_command('true', background=True)"))
    assert gone("7010")


def test_elsewhere_a_command_watches_its_worker(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom ck_pro.executor.worker.code.commands import Command\n"
        "c = Command('sleep 7011', sys.argv[1], leash=True)\nprint(c.process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    else:
        os.killpg(pid, 9)
        pytest.fail("it outlived its worker")
    with_leash = Command("echo x; exit 5", str(tmp_path), leash=True)
    assert with_leash.wait(30)
    with_leash.end(grace=0)
    with_leash.read_rest()
    assert (with_leash.output.text(), with_leash.process.returncode) == ("x\n", 5)


# --- files ------------------------------------------------------------------------------------


def test_files_are_written_read_and_listed(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        run = executor.run
        content = "one\r\ntwo\n\u00e4\u4e2d"
        text = said(run(f"print(write_file('a/b.txt', {content!r}))"))
        assert text == "wrote a/b.txt: 14 bytes\n"
        assert (tmp_path / "a/b.txt").read_bytes().decode() == content
        assert said(run("print(write_file('a/b.txt', 'one\\ntwo\\nthree'))")).startswith("replaced")
        assert said(run("print(read_file('a/b.txt'))")) == "one\ntwo\nthree\n"
        more = "[lines 2 to 2; more from start_line=3]"
        assert said(run("print(read_file('a/b.txt', 2, 1))")) == f"two\n{more}\n"
        assert said(run(f"print(read_file({str(tmp_path / 'a/b.txt')!r}, 3))")) == "three\n"
        assert "has only 3 lines" in str(run("read_file('a/b.txt', 9)").error)
        assert said(run("print(list_files(), list_files('.', '**/*.txt'))")) == (
            "['a/'] ['a/b.txt']\n"
        )
        assert said(run("print(list_files('a'))")) == "['a/b.txt']\n"
        assert said(run("print(list_files('.', '**')[0])")) == "a/\n"  # not the folder itself


def test_files_that_are_no_ordinary_text(tmp_path: Path) -> None:
    with make(tmp_path) as executor:
        run = executor.run
        said(run("open('b', 'wb').write(b'ab\\0c' * 10)\nopen('l', 'wb').write(b'caf\\xe9\\n')"))
        assert "binary (40 bytes)" in str(run("read_file('b')").error)
        assert said(run("print(read_file('l'))")) == "caf\ufffd\n\n"
        said(run("open('w', 'w').write('x' * 3_000_000 + '\\nnext\\n')\nopen('e', 'w').close()"))
        text = said(run("print(read_file('w'))"))
        assert "\nnext\n" in text and "bytes, at [...]: 1]" in text and len(text) < 5000
        assert said(run("print(read_file('e'))")) == "\n"
        said(run("open('h', 'w').writelines(f'{i}\\n' for i in range(300_000))"))
        text = said(run("print(read_file('h', 1000, 10**6))"))
        assert text.startswith("999\n") and "more from start_line=" in text and len(text) < 40_000
        said(run("import os; os.mkfifo('p')"))
        assert "not a regular file" in str(run("read_file('p')").error)
        assert "not a regular file" in str(run("write_file('p', 'x')").error)
        said(run("import pathlib\nfor i in range(2001): pathlib.Path(f'n{i}').touch()"))
        assert "more than 2000" in str(run("list_files()").error)


# --- what it does not get ---------------------------------------------------------------------


@linux
def test_commands_are_contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, outside, work = tmp_path / "home", tmp_path / "outside", tmp_path / "work"
    for folder in (home, outside, work):
        folder.mkdir()
    (home / ".netrc").write_text(SECRET)
    (outside / "kept").write_text("as it was")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (work / "link").symlink_to(outside)
    with socket.create_server(("127.0.0.1", 0)) as listener, make(work) as executor:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        for text in (
            f"cat {home}/.netrc ~/.netrc; env; ls -la {home}",
            "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
            f"cat /proc/{os.getpid()}/environ /proc/1/environ",
            f"echo bad > {outside}/kept; rm -rf {outside}/kept; touch {outside}/new; echo x > ../y",
            f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo REACHED",
            f"kill -9 {os.getpid()}; kill -9 -1; true",
            "chmod 777 / /etc; chown 1 /etc; mount -t tmpfs x /mnt && echo MOUNTED",
            "unshare -Ur true && echo UNSHARED",
        ):
            output = executor.run(command(text), timeout=20).output
            assert SECRET not in output and "as it was" not in output, text
            assert not {"REACHED", "MOUNTED", "UNSHARED"} & set(output.split()), output
        for call in (
            "read_file('link/kept')",
            "write_file('link/kept', 'x')",
            "list_files('link')",
        ):
            assert "outside the working directory" in str(executor.run(call).error)
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert said(executor.run("print(1)")) == "1\n"
    assert (outside / "kept").read_text() == "as it was"
    assert [p.name for p in outside.iterdir()] == ["kept"]
    assert not (tmp_path / "y").exists() and (home / ".netrc").read_text() == SECRET


class Bare(CodeExecutor):
    """An executor without any layer but the process, as on other systems."""

    layers = ("process",)


def test_without_layers_paths_are_refused_and_commands_end(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with Bare(functions(), {"stop"}, workdir=work) as executor:
        run = executor.run
        (tmp_path / "secret").write_text(SECRET)
        (work / "link").symlink_to(tmp_path)
        for call in (
            "read_file('../secret')",
            "write_file('../new', '')",
            "read_file('link/secret')",
        ):
            assert "outside the working directory" in str(run(call).error)
        assert said(run(command("echo 1; sleep 7014 &"))).startswith("1\n[exit code 0")
        said(run("run_command('sleep 7014', background=True)"))
        result = run(command("sleep 7014"), timeout=0.3)
        assert result.state_lost and result.commands_lost and gone("7014")
        assert said(run(command("echo 2"))) == "2\n[exit code 0]\n"
    assert not (tmp_path / "new").exists()


@linux
@pytest.mark.parametrize(
    "bomb",
    [
        ":(){ :|:& };:",
        f"{shlex.quote(sys.executable)} -c 'x = bytearray(1 << 40)'",
        "truncate -s 3G big; ls -s big",
    ],
    ids=["forks", "memory", "a huge file"],
)
def test_bombs_are_contained(tmp_path: Path, bomb: str) -> None:
    with make(tmp_path, memory_mb=256) as executor:
        executor.run(command(bomb, timeout=2), timeout=20)
        assert said(executor.run("print(1)")) == "1\n"
    sizes = [p.stat().st_size for p in tmp_path.rglob("*")]
    assert max(sizes, default=0) <= 1 << 30


# --- in agents --------------------------------------------------------------------------------


def agent(*replies: Any, **settings: Any) -> MultiStepAgent:
    tools = settings.pop("tools", [StopTool(), *workspace_tools()])
    return MultiStepAgent(model=ScriptedLLM(replies=list(replies)), tools=tools, **settings)


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def test_in_an_agents_code_they_are_approved_logged_and_done(tmp_path: Path) -> None:
    a = agent(
        code("write_file('n.txt', '6')\nprint(run_command('cat n.txt; rm -rf x'))"),
        code("print(run_command('expr $(cat n.txt) \\\\* 7'))"),
        code("stop(run_command('echo 42').output.strip())"),
        approver=RuleApprover(reject=["rm -rf"]),
    )
    session = a.run("t", workdir=tmp_path)
    assert session.final_results["output"] == "42", session.to_dict()
    seen = [step["action"]["observation"] for step in session.steps]
    assert "not allowed" in seen[0] and seen[1] == "42\n[exit code 0]"
    calls = session.steps[1]["action"]
    assert "run_command" in json.dumps(calls)
    assert (tmp_path / "n.txt").read_text() == "6"
    prompt = json.dumps(a.model.calls[0].messages)
    assert "run_command(command: str, timeout: float = 30.0, background: bool = False)" in prompt


def test_they_can_be_named_in_the_settings() -> None:
    a = agent(tools=["run_command", "read_file", StopTool()])
    assert [f.name for f in a.functions()] == ["run_command", "read_file", "stop"]
    assert a.functions()[0] is a.functions()[0]
    with pytest.raises(ConfigError, match="no attribute or tool 'run_comand'"):
        agent(tools=["run_comand"]).functions()


def test_agents_that_call_functions_have_them_too(tmp_path: Path) -> None:
    def call(name: str, **arguments: Any) -> Reply:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return Reply("", tool_calls=[{"function": function}])

    a = agent(
        call("write_file", path="x.txt", content="hello"),
        call("run_command", command="cat x.txt; exit 2"),
        call("run_command", command="echo up; sleep 7012", background=True),
        call("kill_command", id=1),
        call("read_file", path="../x"),
        call("list_files"),
        call("run_command", command="sleep 7012", timeout=100),
        call("stop", output="done"),
        language=FunctionCallingLanguage(),
        executor=ExecutorSettings(timeout=1),
    )
    session = a.run("t", workdir=tmp_path)
    seen = [step["action"]["observation"] for step in session.steps]
    assert seen[0] == "wrote x.txt: 5 bytes"
    assert seen[1] == "hello\n[exit code 2]"
    assert "command 1 runs" in seen[2] and "command 1 was killed" in seen[3]
    assert seen[4] == "ToolError: read_file: '../x' is outside the working directory"
    assert seen[5] == "['x.txt']"
    assert seen[6].startswith("TimeoutError: killed after 1 s") and "background" in seen[6]
    assert session.final_results["output"] == "done" and gone("7012")


def test_the_model_is_told_that_commands_are_lost(tmp_path: Path) -> None:
    a = agent(
        code("run_command('sleep 7013', background=True)\nwhile True: pass"),
        code("stop(1)"),
        executor=ExecutorSettings(timeout=1),
    )
    session = a.run("t", workdir=tmp_path)
    seen = session.steps[0]["action"]["observation"]
    assert "variables are lost" in seen and "All commands in the background have ended" in seen
    assert seen.count("lost") == 1


def test_modules_can_be_preloaded(tmp_path: Path) -> None:
    a = agent(
        code("import sys\nstop('colorsys' in sys.modules)"),
        executor=ExecutorSettings(preload=["colorsys"]),
    )
    assert a.run("t", workdir=tmp_path).final_results["output"] == "True"


def test_outside_of_a_sandbox_nothing_is_done() -> None:
    assert str(RunCommandTool().execute("touch /tmp/never")) == "(done in the workspace)"
    with pytest.raises(ToolError, match="timeout"):
        RunCommandTool().execute("x", timeout=-1)
