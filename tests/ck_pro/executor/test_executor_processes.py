"""The start and the end of workers, and their processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from executor_tools import descendants, has_ended
from paths import ROOT

from ck_pro.exceptions import ExecutorError
from ck_pro.executor import CodeExecutor
from ck_pro.executor.process import LostAtStart, WorkerProcess

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers require Linux"),
]


PARENT = """
import os, sys
from ck_pro.executor import CodeExecutor
executors = [CodeExecutor(workdir=sys.argv[1]) for _ in range(3)]
for one in executors:
    one.run("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
print(*[one._worker.pid for one in executors], flush=True)
if sys.argv[2] == "fork":
    if os.fork() == 0:
        import signal
        signal.pause()
executors[0].run("while True: pass", timeout=600)
"""


@pytest.mark.parametrize("mode", ["plain", "fork"])
def test_no_worker_outlives_its_parent(tmp_path, mode):
    root = str(ROOT)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), mode],
        stdout=subprocess.PIPE,
        cwd=root,
        text=True,
        start_new_session=True,
    ) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        below = {pid for top in pids for pid in descendants(top)}
        assert len(below) >= 6
        parent.kill()
        parent.wait()
        try:
            assert all(has_ended(pid) for pid in below | set(pids))
        finally:
            try:
                os.killpg(parent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def test_an_executor_that_is_never_closed_leaves_no_process(tmp_path):
    code = """
import sys
from ck_pro.executor import CodeExecutor
executor = CodeExecutor(workdir=sys.argv[1])
executor.run("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
from ck_pro.executor.process import _workers
from pathlib import Path
pid = next(iter(_workers)).pid
print(pid, Path(f"/proc/{pid}/task/{pid}/children").read_text())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == ""
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2 and all(has_ended(pid) for pid in pids)


def test_a_fork_of_the_parent_starts_separate_workers(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        code = """
            executor = CodeExecutor(workdir=path)
            executor.run("x = 1")
            pid = os.fork()
            if pid == 0:
                ok = executor.run("x").error.type == "NameError"
                executor.close()
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert executor.run("x").value == "1"
            executor.close()
            print("fine")
        """
        head = "import os, sys\nfrom ck_pro.executor import CodeExecutor\npath = sys.argv[1]\n"
        done = subprocess.run(
            [sys.executable, "-c", head + textwrap.dedent(code), str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "fine\n", done.stderr


def test_fifty_workers_at_once(tmp_path):
    executors = [CodeExecutor(workdir=tmp_path / str(n)) for n in range(50)]
    try:
        for number, executor in enumerate(executors):
            assert executor.run(f"x = {number}").error is None
        values = [executor.run("x").value for executor in executors]
        assert values == [str(number) for number in range(50)]
        pids = [pid for e in executors for pid in (e._worker.pid, *descendants(e._worker.pid))]
        megabytes = sum(share(pid) for pid in pids) / 1024
        assert megabytes < 3000
    finally:
        for executor in executors:
            executor.close()
    assert all(has_ended(pid) for pid in pids)


def share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def test_an_interrupt_kills_the_step_and_propagates(tmp_path):
    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        interrupt = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            executor.run("while True: pass")
        interrupt.join()
        assert executor._worker is None
        assert executor.run("1").value == "1"


def test_a_killed_zygote_is_started_again(tmp_path):
    from ck_pro.executor.zygotes import _zygotes

    with CodeExecutor(workdir=tmp_path) as executor:
        executor.run("x = 1")
        zygote = _zygotes[()]._process
        os.kill(zygote.pid, signal.SIGKILL)
        zygote.wait()
        # its workers end with it: one step is lost, and the next one gets a new worker
        results = [executor.run("1") for _ in range(50)]
        lost = [one for one in results if one.error is not None]
        assert len(lost) <= 1 and all(one.state_lost for one in lost)
        assert results[-1].value == "1"
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("1").value == "1"


def test_preloaded_modules_are_imported(tmp_path):
    with CodeExecutor(workdir=tmp_path, preload=["fractions", "decimal"]) as executor:
        assert executor.run("import sys; 'fractions' in sys.modules").value == "True"
    from ck_pro.exceptions import ExecutorError

    with pytest.raises(ExecutorError, match="no_such_module"):
        CodeExecutor(workdir=tmp_path, preload=["no_such_module"]).run("1")


def test_a_worker_killed_while_it_starts_is_started_again(monkeypatch, tmp_path):
    wait, killed = WorkerProcess._wait_until_ready, []

    def kill_first(self):
        if len(killed) == 2:
            return wait(self)
        killed.append(self.pid)
        os.kill(self.pid, signal.SIGKILL)  # the supervisor, so the worker ends too
        wait(self)
        self.kill()  # in case it was already ready
        raise LostAtStart("a worker for code did not start: it was killed")

    monkeypatch.setattr(WorkerProcess, "_wait_until_ready", kill_first)
    with CodeExecutor(workdir=tmp_path) as executor:
        assert executor.run("print(1)").output == "1\n"
    assert len(killed) == 2


def test_too_many_open_files_are_an_executor_error(monkeypatch, tmp_path):
    def none_left(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    with CodeExecutor(workdir=tmp_path) as executor:
        with monkeypatch.context() as patch:
            patch.setattr("ck_pro.executor.channel.socket.socketpair", none_left)
            with pytest.raises(ExecutorError, match="cannot start: Too many open files"):
                executor.run("1")
        assert executor.run("1").value == "1"


def test_root_of_a_user_namespace_can_start_workers(tmp_path):
    code = (
        "import sys\nfrom ck_pro.executor import CodeExecutor\n"
        "with CodeExecutor(workdir=sys.argv[1]) as executor:\n"
        "    print(executor.run('1 + 1').value)"
    )
    as_root = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*as_root, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("user namespaces are not allowed here")
    done = subprocess.run(
        [*as_root, sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "2\n", done.stderr


def test_a_zygote_drops_the_threads_of_preloaded_modules():
    code = (
        "import os, threading\nfrom ck_pro.executor.worker import zygote\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "zygote._drop_threads()\n"
        "print(len(os.listdir('/proc/self/task')), flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
