"""The pure parts: code in replies, frames and values, output in pieces."""

from __future__ import annotations

import copy
import datetime
import decimal
import json
import re
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.executor import CodeExecutor
from ck_pro.executor.calls.descriptions import Handles, describe_error, describe_functions
from ck_pro.executor.calls.step_calls import CancelledCalls, StepCalls
from ck_pro.executor.results import read_done
from ck_pro.executor.worker import wire
from ck_pro.executor.worker.code import stubs
from ck_pro.executor.worker.values import encode

extract = CodeExecutor.extract_code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Thought.\n```python\nprint(1)\n```\nDone.", "print(1)"),
        ("```py\nx = 1\n```", "x = 1"),
        ("```Python\nx = 1\n```", "x = 1"),
        ("```\nx = 1\n```", "x = 1"),
        ("~~~python\nx = 1\n~~~", "x = 1"),
        ("```python\na = 1\n```\nthen\n```python\nb = 2\n```", "a = 1\n\nb = 2"),
        ("```json\n{}\n```\n```python\nb = 2\n```", "b = 2"),
        ("```json\n{}\n```", ""),
        ("```text\nout\n```\n```\nx = 1\n```", "x = 1"),
        ("```python\nx = 1", "x = 1"),
        ("```python\nx = 1\nprint(x)```", "x = 1\nprint(x)"),
        ("Code: ```python\nx = 1\n```", "x = 1"),
        ("`````python\nx = '''\n```\n'''\n`````", "x = '''\n```\n'''"),
        ('```python\nx = """\n```python\ny\n```\n"""\nz = 1\n```', None),
        ("```python\ns = '```'\nt = 2\n```", "s = '```'\nt = 2"),
        ("```python\n# a ``` comment\nt = 2\n```\nend", "# a ``` comment\nt = 2"),
        ("```python\ns = '''never closed\n```\nIt's over.", "s = '''never closed"),
        ("```x = 1```", "x = 1"),
        ("```python x = 1```", "x = 1"),
        ("1. Do it:\n   ```python\n   if x:\n       y()\n   ```", "if x:\n    y()"),
        ("```python\r\nx = 1\r\ny = 2\r\n```", "x = 1\ny = 2"),
        ("<|python_tag|>x = 1\nprint(x)<|eom_id|>", "x = 1\nprint(x)"),
        ("<|python_tag|>```python\nx = 1\n```<|eot_id|>", "x = 1"),
        (
            "go\n<code>\n  if x:\n      y()\n</code> <code>\nno()\n</code>\n<code>z()",
            "if x:\n    y()\n\nz()",
        ),
        ("<code>\n```py\nx\n```\n</code>", "x"),
        ("Use the <code>x</code> element", ""),
        ("print('no fence')", "print('no fence')"),
        ("import os\nos.getcwd()", "import os\nos.getcwd()"),
        ("x['a b'], y.z = 1, 2", "x['a b'], y.z = 1, 2"),
        ("The answer is 42.", ""),
        ("The answer = 42 apples", ""),
        ("```\n```python\nx = 1\n```\n```", "x = 1"),
        ("```markdown\nThus:\n  ```py\n  x = 1\n  ```\n```", "x = 1"),
        ("```python\nx = 1\n```python\ny = 2\n```", "x = 1\n\ny = 2"),
        ("<think>\n```python\nno()\n```\n</think>\n```python\nyes()\n```", "yes()"),
        ("```python\nx = '<think>a</think>'\n```", "x = '<think>a</think>'"),
        ("Done", ""),
        ("", ""),
        ("```python\n```", ""),
        ("Use `x` inline and ``` alone", ""),
    ],
)
def test_code_in_replies(reply, code):
    if code is None:
        code = 'x = """\n```python\ny\n```\n"""\nz = 1'
    assert extract(reply) == code


lines = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="`~\r\n\"'#\x0b\x0c"))


@given(st.text(), st.lists(lines, min_size=1), st.text())
def test_the_code_in_a_fence_is_found(before, code, after):
    before, after = before.replace("`", "").replace("~", ""), after.replace("`", "")
    before, after = before.replace("<|", ""), after.replace("<|", "").replace("~", "")
    text = "\n".join(code)
    found = extract(f"{before}\n```python\n{text}\n```\n{after}")
    assert found == text.rstrip().strip("\n") or not text.strip()


@given(st.text(alphabet="`~\n\"'# pyx=1<|python_tag|>"))
def test_any_reply_can_be_read(reply):
    assert isinstance(extract(reply), str)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.timezone.utc))
    | st.times(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("$"), inner)
        | st.frozensets(st.integers() | st.text())
        | st.sets(st.integers() | st.tuples(st.text()))
    ),
    max_leaves=20,
)


def no_results(tagged):
    raise ValueError(f"no result here: {tagged}")


@given(values, st.integers(min_value=1, max_value=7))
def test_values_come_back_as_they_were(value, size):
    data = wire.pack(["v", encode(value, lambda _: None)]) * 2
    reader = wire.FrameReader(no_results)
    found = []
    for at in range(0, len(data), size * 50):
        reader.feed(data[at : at + size * 50])
        while (message := reader.take()) is not None:
            found.append(message)
    assert found == [["v", value]] * 2
    assert repr(found[0][1]) == repr(value) or isinstance(
        value, (set, frozenset, dict, list, tuple)
    )


@given(st.binary(max_size=200))
def test_hostile_bytes_are_frames_or_errors(data):
    reader = wire.FrameReader(no_results, limit=1000)
    for stream in (data, struct.pack(">I", len(data)) + data):
        reader.feed(stream)
        try:
            while reader.take() is not None:
                pass
        except wire.WireError:
            return


@given(
    st.recursive(
        st.text() | st.integers(),
        lambda i: (
            st.lists(i)
            | st.dictionaries(
                st.sampled_from(["$", "v", "h", "d"]),
                i | st.sampled_from(["set", "map", "int", "bytes"]),
            )
        ),
    )
)
def test_hostile_tags_are_values_or_errors(value):
    reader = wire.FrameReader(stubs.Result.make)
    reader.feed(wire.pack(["x", value]))
    try:
        assert reader.take() is not None
    except wire.WireError:
        pass


WIRE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["$", "v", "h", "d", "s", "x"]), inner, max_size=3)
        | st.sampled_from(
            ["set", "frozenset", "map", "int", "bytes", "tuple", "complex", "date", "time",
             "datetime", "timedelta", "decimal", "result", "?"]
        ).flatmap(lambda tag: inner.map(lambda value: {"$": tag, "v": value, "h": value}))
    ),
    max_leaves=20,
)  # fmt: skip


class FakeLine:
    """Stands for the worker's process."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(wire.pack(message))

    def receive_soon(self):
        return []

    def wake(self):
        pass


def mutated(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    out = bytearray(data)
    for at, byte in changes:
        out[4 + at % max(1, len(out) - 4) if at % 7 else at % len(out)] = byte
    return bytes(out)


@given(
    st.sampled_from(["call", "thread_call", "leave", "where", "refused", "done", "x"]),
    st.lists(WIRE | st.sampled_from([1, 2, "f", []]), max_size=6)
    | st.tuples(st.just(1), st.integers(0, 3), st.sampled_from(["f", "g"]), st.lists(WIRE),
                st.dictionaries(st.text(max_size=3), WIRE)),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6),
)  # fmt: skip
def test_any_frame_is_handled_or_ends_the_worker(kind, rest, changes):
    handles, line = Handles(), FakeLine()
    bounds = wire.Bounds()
    reader = wire.FrameReader(handles.restore, limit=1 << 16, bounds=bounds)
    calls = StepCalls(
        1, {"f": lambda *_, **__: None}, frozenset(), None, handles, line, CancelledCalls()
    )
    calls._serve = lambda message, flag, token: None
    frame = json.dumps([kind, *rest]).encode()
    for data in (frame, mutated(b"\0\0\0\0" + frame, changes)[4:]):
        reader.feed(struct.pack(">I", len(data)) + data)
        try:
            while (message := reader.take()) is not None:
                if message[0] == "done":
                    read_done(message, 1, 1000)
                else:
                    calls.handle(message, may_read=False)
        except wire.WireError:
            break
    message = None
    calls.close()


@given(WIRE)
def test_no_message_decodes_to_more_than_it_was_counted_for(value):
    bounds = wire.Bounds()
    reader = wire.FrameReader(lambda _: None, bounds=bounds)
    reader.feed(wire.pack(["x", value]))
    try:
        message = reader.take()
    except wire.WireError:
        return
    assert message.cost >= size_of(list(message)) / 4
    assert bounds._used == message.cost
    del message
    bounds.charge(0)
    assert bounds._used == 0


def size_of(value) -> int:
    """Bytes of a decoded value, roughly."""
    inside = ()
    if isinstance(value, dict):
        inside = (*value.keys(), *value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inside = value
    return sys.getsizeof(value) + sum(map(size_of, inside))


def nested(depth: int) -> str:
    return '["x",' + "[" * depth + "]" * depth + "]"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('["x",[' + "{}," * 60_000 + "1]]", "values are too many"),
        ('["x",[' + "1," * 60_000 + "1]]", "values are too many"),
        ('["x",{' + '"a":1,' * 30_000 + '"b":1}]', "values are too many"),
        ('["x","' + '\\"[' * 60_000 + '"]', None),
        ('["x","' + "[,{:" * 30_000 + '\\\\"]', None),
        ('["x"' + ',""' * 60_000 + "]", "values are too many|too many texts"),
        (nested(200), None),
        (nested(400), "too deep"),
        ('["x","' + "[" * 1000 + '"]', None),
        ('["x",' + "9" * 100 + "]", "too many digits"),
        ('["x",1e' + "9" * 100 + "]", "too many digits"),
        ('["x",{"$":"set","v":[' + ",".join(map(str, range(1001))) + "]}]", "use a list"),
        ('["x",{"$":"set","v":[' + ",".join(map(str, range(1000))) + "]}]", None),
        ('["x",{"$":"set","v":["a"' + ',"a"' * 10_000 + "]}]", None),
        ('["x",{"$":"set","v":[{"$":"tuple","v":[1' + ",1" * 1000 + "]}]}]", "use a list"),
        ('["x",{"$":"set","v":[{"$":"int","v":"' + "f" * 100_000 + '"}]}]', "use a list"),
        ('["x"' + ',{"$":"set","v":[1,2]}' * 501 + "]", "use a list"),
        ('["x",{"$":"map","v":[[1,2],[3]]}]', "unpack|values"),
    ],
)
def test_the_cost_of_a_frame_is_checked_before_and_during_decoding(body, why, monkeypatch):
    monkeypatch.setattr(wire, "MAX_VALUES", 50_000)
    reader = wire.FrameReader(no_results, bounds=wire.Bounds())
    reader.feed(struct.pack(">I", len(body)) + body.encode())
    if why is None:
        assert reader.take()[0] == "x"
        return
    with pytest.raises(wire.WireError, match=why):
        reader.take()
    call = f'["call",1,7,"f",{body[5:-1]}]'.encode()  # a call is refused, and known by its numbers
    reader = wire.FrameReader(no_results, bounds=wire.Bounds())
    reader.feed(struct.pack(">I", len(call)) + call)
    if not re.search("digits|unpack", why):
        assert reader.take()[:3] == ["refused", 1, 7]


def test_many_small_frames_are_split_without_copying_the_rest():
    reader = wire.FrameReader(no_results)
    frame = wire.pack(["x"])
    reader.feed(frame * 20_000 + frame[:3])
    assert reader.take() is not None
    received = len(reader._buffer)
    assert sum(reader.take() is not None for _ in range(19_999)) == 19_999
    assert len(reader._buffer) == received  # not moved
    assert reader.take() is None
    reader.feed(frame[3:])
    assert reader.take() == ["x"]


def test_frames_have_a_limit(monkeypatch):
    reader = wire.FrameReader(no_results, limit=10)
    reader.feed(struct.pack(">I", 11))
    with pytest.raises(wire.WireError, match="11 bytes"):
        reader.take()
    monkeypatch.setattr(wire, "MAX_FRAME", 100)
    wire.pack(["x" * 90])
    with pytest.raises(wire.TooLarge):
        wire.pack(["x" * 100])


def test_functions_and_errors_are_described():
    def tool(a: int, *rest: str, flag: bool = False, **more: object) -> list[str]:
        """Do it."""

    described = describe_functions({"tool": tool})["tool"]
    stub = stubs.make_stub("tool", described, lambda name, args, kwargs: (name, args, kwargs))
    assert stub(1, flag=True) == ("tool", (1,), {"flag": True})
    import inspect

    shown = str(inspect.signature(stub))
    assert shown == "(a: int, *rest: str, flag: bool = False, **more: object) -> list[str]"
    assert describe_functions({"print": print})["print"]["doc"]
    for error in (ValueError("v"), KeyError("k"), OSError(2, "gone", "f"), UnicodeError("u")):
        again = stubs.make_error(describe_error(error))
        assert type(again) is type(error) and str(again) == str(error)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups came with Python 3.11")
def test_an_exception_group_shows_its_errors():
    group = ExceptionGroup("eg", [ValueError("v"), ExceptionGroup("in", [KeyError("k")])])  # noqa: F821
    again = stubs.make_error(describe_error(group))
    assert type(again).__name__ == "ExceptionGroup" and isinstance(again, RuntimeError)
    shown = (
        "eg (2 sub-exceptions): ValueError: v; ExceptionGroup: in (1 sub-exception): KeyError: 'k'"
    )
    assert str(again) == shown


def test_a_result_in_the_worker_is_a_mapping():
    result = stubs.Result.make({"$": "result", "h": "r1", "d": {"output": 1}, "s": "shown"})
    assert result["output"] == result.output == 1
    assert repr(result) == str(result) == f"{result}" == "shown"
    assert stubs.handle_of(result) == "r1" and stubs.handle_of({}) is None
    import copy
    import json

    assert json.loads(json.dumps(result)) == {"output": 1} == copy.deepcopy(result)
    with pytest.raises(AttributeError, match="output"):
        _ = result.missing
    result["more"] = 2
    assert stubs.handle_of(result) is None and str(result) == "{'output': 1, 'more': 2}"
    with pytest.raises(ValueError, match="malformed"):
        stubs.Result.make({"$": "result", "h": 1})


def test_copies_of_a_result_are_results():
    result = stubs.Result.make({"d": {"output": [1], "log": ""}, "h": "r1", "s": "shown"})
    for made in (copy.copy(result), copy.deepcopy(result)):
        assert (made.output, str(made), stubs.handle_of(made)) == ([1], "shown", "r1")
    made.output.append(2)
    assert result.output == [1] and stubs.handle_of(made) is None


def test_huge_decimals_become_text():
    for text, kept in (("1E+9999", True), ("-Infinity", True), ("NaN", True), ("0E+20000", False)):
        sent = encode(decimal.Decimal(text), lambda _: None)
        assert sent == ({"$": "decimal", "v": text} if kept else text)
    reader = wire.FrameReader(lambda _: None)
    reader.feed(wire.pack(["call", {"$": "decimal", "v": "1E+999999"}]))
    with pytest.raises(wire.WireError, match="too many digits"):
        reader.take()
