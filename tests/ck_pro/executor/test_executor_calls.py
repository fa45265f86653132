"""Calls from hostile or careless code: their cost in the parent, and their time."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from ck_pro.executor import CodeExecutor, channel, current_call
from ck_pro.executor.calls.step_calls import MAX_THREADS
from ck_pro.executor.worker import wire

pytestmark = pytest.mark.worker
LONG = 30.0
"""Seconds that no step here takes, even on a busy machine."""

FRAMES = """
import gc, json, socket, struct
(SOCK,) = [one for one in gc.get_objects() if type(one) is socket.socket and one.fileno() > 2]
def send(text):
    data = text.encode() if isinstance(text, str) else text
    SOCK.sendall(struct.pack('>I', len(data)) + data)
def message(*parts):
    send(json.dumps(parts))
def call(number, given, name='f'):
    send(f'["call",{STEP},{number},"{name}",{given},{{}}]')
"""


@contextlib.contextmanager
def executor_of(tmp_path, **settings):
    with CodeExecutor(workdir=tmp_path, **settings) as executor:
        yield executor


def took(executor, code, **given):
    began = time.monotonic()
    result = executor.run(code, **given)
    return result, time.monotonic() - began


LOOPS = """
import threading, time
def loop():
    while True:
        f()
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
"""


@pytest.mark.parametrize("seconds", [0.0, 0.2])
@pytest.mark.parametrize(
    "main", ["while True: pass", "time.sleep(600)", "while True: time.sleep(1)"]
)
def test_calls_of_other_threads_do_not_stop_the_clock_of_a_step(tmp_path, main, seconds):
    def f():
        threading.Event().wait(seconds)

    with executor_of(tmp_path, functions={"f": f}, timeout=1) as executor:
        result, passed = took(executor, LOOPS + main)
        assert result.error.type == "TimeoutError" and result.state_lost
        assert passed < LONG and executor.run("1").value == "1"


@pytest.mark.parametrize("daemon", [True, False])
def test_calls_of_other_threads_do_not_keep_a_step_open(tmp_path, daemon):
    release, ended = threading.Event(), threading.Event()
    seen = []

    def f():
        release.wait(0.05)

    def slow():
        flag = current_call()
        while not flag.is_set() and not release.wait(0.01):
            pass
        seen.append(flag.is_set())
        ended.set()
        return "late"

    with executor_of(tmp_path, functions={"f": f, "slow": slow}, timeout=20) as executor:
        code = LOOPS if daemon else ""
        result, passed = took(
            executor,
            f"{code}\nimport threading\nx = 1\ndef wait():\n    slow()\n    print('never')\n"
            f"threading.Thread(target=wait, daemon={daemon}).start()\nprint('end')",
        )
        assert result.error is None and not result.state_lost and passed < LONG
        text = result.output
        for _ in range(1000):  # the thread may be late to print its error
            text += (later := executor.run("x")).output
            if "RuntimeError: the call was cancelled, as its step has ended" in text:
                break
        assert later.value == "1" and "was cancelled" in text and "never" not in text
        assert ended.wait(LONG) and seen == [True]


@pytest.mark.parametrize(
    "wait",
    [
        "t = threading.Thread(target=f); t.start(); t.join()",
        "with ThreadPoolExecutor() as pool: list(pool.map(lambda _: f(), range(4)))",
        "pool = ThreadPoolExecutor(); pool.submit(f).result()",
        "concurrent.futures.wait([ThreadPoolExecutor().submit(f)])",
        "asyncio.run(asyncio.wait_for(asyncio.to_thread(f), 60))",
        "q = queue.Queue(); threading.Thread(target=lambda: q.put(f())).start(); q.get()",
        "f()",
    ],
)
def test_a_step_may_wait_longer_than_its_timeout_for_calls_of_its_threads(tmp_path, wait):
    with executor_of(
        tmp_path, functions={"f": lambda: threading.Event().wait(1.5)}, timeout=1
    ) as executor:
        executor.run("import asyncio, concurrent.futures, queue, threading", timeout=LONG)
        executor.run("from concurrent.futures import ThreadPoolExecutor", timeout=LONG)
        result = executor.run(wait)
        assert result.error is None, result.error
        assert result.call_duration >= 1.4 and result.duration < 1


def test_cancelled_calls_that_are_still_running_are_limited(tmp_path):
    release = threading.Event()
    running = []

    def stuck():
        running.append(threading.current_thread())
        release.wait(60)

    with executor_of(
        tmp_path, functions={"stuck": stuck, "f": lambda: 1}, call_timeout=0.001
    ) as executor:
        code = (
            "said = set()\nfor _ in range(200):\n    try: stuck()\n"
            "    except (TimeoutError, ValueError) as error: said.add(str(error))\nsorted(said)"
        )
        result = executor.run(code)
        assert "64 cancelled calls are still running" in result.value
        assert len(running) == 64
        release.set()
        for thread in running:
            while executor._cancelled.count:
                thread.join(0.01)
        executor.call_timeout = None
        assert executor.run("f()").value == "1"


def test_threads_beyond_the_limit_of_pending_calls_wait(tmp_path):
    busy, most, lock = 0, 0, threading.Lock()

    def f(n):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        threading.Event().wait(0.02)
        with lock:
            busy -= 1
        return n

    with executor_of(tmp_path, functions={"f": f}) as executor:
        result = executor.run(
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(150) as pool: s = sum(pool.map(f, range(300)))\ns"
        )
    assert result.value == str(sum(range(300))) and 1 < most <= wire.MAX_CALLS


PRIME = 2**61 - 1


@pytest.mark.parametrize(
    "argument",
    [
        f"[{{i * {PRIME} for i in range(900)}}] * 100",
        "frozenset((i,) * 100 for i in range(1000))",
        "[[]] * 600_000",
        "list(range(600_000))",
        "'x' * (40 << 20)",
        "'😀' * (1 << 20)",
    ],
)
def test_too_large_arguments_raise_an_error_in_the_code(tmp_path, argument):
    called = []
    with executor_of(tmp_path, functions={"f": called.append}, timeout=LONG) as executor:
        executor.run(f"x = {argument}", timeout=LONG)
        result, passed = took(executor, "f(x)", timeout=LONG)
        assert passed < LONG and executor.run("len(x) > 0").value == "True"
    if "😀" in argument:  # its size is acceptable
        assert result.error is None and called
    else:
        assert "to pass" in result.error.message
        assert not called


def test_sets_and_maps_keep_their_types(tmp_path):
    given = []
    with executor_of(tmp_path, functions={"f": given.append}) as executor:
        executor.run(
            "f({1, 2.5, None, 'x', (1, 'y')})\nf({1: 'a', (2, 3): {4}})\n"
            "f({str(n) for n in range(20_000)})\nf({str(n): n for n in range(20_000)})\n"
            "f(frozenset([frozenset([1]), b'x']))"
        )
    assert given[:2] == [{1, 2.5, None, "x", (1, "y")}, {1: "a", (2, 3): {4}}]
    assert given[2] == {str(n) for n in range(20_000)} and len(given[3]) == 20_000
    assert given[4] == frozenset([frozenset([1]), b"x"])


def test_the_memory_of_all_pending_calls_is_limited_together(tmp_path):
    release = threading.Event()
    given = []

    def hold(text):
        given.append(len(text))
        release.wait(60)

    def end():
        release.set()

    with executor_of(tmp_path, functions={"hold": hold, "end": end}) as executor:
        result = executor.run(
            "import threading\nsaid = []\ndef go():\n    try: hold('x' * (20 << 20))\n"
            "    except ValueError as error: said.append(str(error)); "
            "len(said) == 10 and end()\n"
            "ts = [threading.Thread(target=go) for _ in range(16)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]; print(len(said), said[0])"
        )
        assert result.output.startswith("10 the call was refused: the pending calls have")
        assert len(given) == 6
        assert executor.run("hold('x' * (20 << 20))").error is None


@pytest.mark.parametrize(
    "frames",
    [
        "for n in range(100_000): call(n + 100, '[1]')",
        "for n in range(200): call(n + 100, '[1]', 'slow')",
        f"""call(100, '[{{"$":"set","v":%s}}]' % [n * {PRIME} for n in range(60_000)])""",
        f"""call(100, '[{{"$":"map","v":%s}}]' % [[n * {PRIME}, 0] for n in range(60_000)])""",
        "call(100, '[' + '{},' * 9_000_000 + '1]')",
        "call(100, '[' + '[[]],' * 5_000_000 + '1]')",
        "call(100, '[' * 100_000 + ']' * 100_000)",
        "call(100, '[' + '9' * 1_000_000 + ']')",
        "call(100, '[1e' + '9' * 1_000_000 + ']')",
        """call(100, '[{"$":"decimal","v":"' + '9' * 30_000_000 + '"}]')""",
        """call(100, '[{"$":"int","v":"' + 'f' * 30_000_000 + '"}]')""",
        """call(100, '["' + '\\\\"' * 14_000_000 + '"]')""",
        """call(100, '[' + '"",' * 9_000_000 + '""]')""",
        """call(100, '[{"$":"result","h":["r1"]}]')""",
        """call(100, '[]', 'f" * 3')""",
        "call(100, '[]', 'x' * 10_000_000)",
        "message('call', STEP, True, 'f', [], {})",
        "message('call', STEP + 1, 1, 'f', [], {})",
        "message('call', -1, -1, 'f', [], {})",
        "message('leave', STEP, 77); call(100, '[1]')",
        "message('refused', STEP, 77, 'x')",
        "for _ in range(1000): message('where', STEP, True)",
        "message('done', STEP, None, [1, 2, 3, 4], 0)",
        "message('done', STEP, None, None, 0); f(1)",
        "message('done', STEP, chr(0xD800), None, 0)",
        "message('done', STEP, None, ['E', 'x', 10 ** 18, 't'], [[]])",
        "send(b'')",
        "send(b'[[[')",
        "for _ in range(100_000): SOCK.sendall(bytes([0, 0, 0, 4]) + b'[9]')",
    ],
)
def test_forged_frames_give_a_result_in_time(tmp_path, frames, monkeypatch):
    monkeypatch.setattr(channel, "_SEND_SECONDS", 1)
    stop, counts = threading.Event(), [0]

    def f(*_):
        counts.append(threading.active_count())
        return 1

    functions = {"f": f, "slow": lambda *_: stop.wait(0.2)}
    with executor_of(tmp_path, functions=functions, timeout=LONG) as executor:
        executor.run("kept = 1")
        before = threading.active_count()
        began = time.monotonic()
        result = executor.run(f"STEP = 2\n{FRAMES}\n{frames}", timeout=3)
        result.output.encode(), str(result.value).encode(), str(result.error).encode()
        assert time.monotonic() - began < LONG
        assert max(counts) <= before + MAX_THREADS, "also if the worker reads no replies"
        stop.set()
        later = executor.run("1 + 1", timeout=3)  # it may receive the rest of the frames
        assert later.value == "2" or later.state_lost
        assert executor.run("1 + 2").value == "3"
