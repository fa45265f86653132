"""The lines of a label file, and its writers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ck_pro.exceptions import InputError, OutputError
from ck_pro.trajectory.labels import CurrentLabels, Label, LabelFile, Target, label_file_of
from ck_pro.trajectory.labels.label import KEYS, VERDICTS

_TEXT = st.text(max_size=20)
_TARGETS = st.fixed_dictionaries(
    {},
    optional={key: st.integers(0, 9) if key in ("try", "step", "call") else _TEXT for key in KEYS},
)
_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(min_size=1, max_size=5),
            "arguments": st.dictionaries(_TEXT, st.integers() | _TEXT, max_size=2),
        }
    ),
    max_size=2,
)
_REPLIES = st.builds(
    lambda text, calls: {"content": f"{text}.", "tool_calls": calls}, _TEXT, _CALLS
)
_LINES = st.fixed_dictionaries(
    {"target": _TARGETS, "label": st.sampled_from([None, *VERDICTS])},
    optional={"comment": _TEXT, "who": _TEXT, "recorded": _TEXT, "another": st.integers()},
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
)

_MORE = settings(max_examples=3 * settings.default.max_examples)


@given(line=_LINES, reply=st.none() | _REPLIES)
def test_a_line_reads_as_it_was_written(line: dict[str, Any], reply: Any) -> None:
    if reply is not None:
        call = {"session": "s", "step": 1, "call": 2}
        line = {**line, "reply": reply, "target": {**line["target"], **call}}
    label = Label.of(line)
    written = json.loads(json.dumps(label.to_line()))
    assert Label.of(written) == label
    assert written["target"] == line["target"] and written["label"] == line["label"]


@given(value=_JSON | st.fixed_dictionaries({"label": _JSON, "target": _JSON, "reply": _JSON}))
def test_any_json_is_a_label_or_one_clear_line(value: Any) -> None:
    try:
        label = Label.parse(json.dumps(value))
    except InputError as e:
        assert str(e) and "\n" not in str(e) and len(str(e)) < 300
    else:
        assert Label.of(label.to_line()) == label


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_label_or_one_clear_line(data: bytes) -> None:
    try:
        Label.parse(data)
    except InputError as e:
        assert str(e)


@_MORE
@given(lines=st.lists(_LINES, min_size=1, max_size=6), junk=st.binary(max_size=30))
def test_labels_survive_any_junk_between_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], junk: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.labels.jsonl"
    path.unlink(missing_ok=True)
    file = LabelFile(path)
    for line in lines:
        file.append(Label.of(line))
        with path.open("ab") as raw:
            raw.write(junk)  # also without the end of a line
    read, _ = file.read()
    assert [(x.target, x.verdict) for x in read if x.when] == [
        (Label.of(line).target, line["label"]) for line in lines
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"label": "great", "target": {}}, "good, bad, exclude, include or null, not 'great'"),
        ({"label": "good", "target": {"stepp": 1}}, "unknown key 'stepp'; known keys: id, try"),
        ({"label": "good", "target": {"step": "1"}}, "'step' of a target must be a number"),
        ({"label": "good", "target": {"step": True}}, "'step' of a target must be a number"),
        ({"label": "good", "target": {"session": 1}}, "'session' of a target must be text"),
        ({"label": "good", "target": []}, "'target' must be an object"),
        ({"reply": "x", "target": {"step": 1}}, "needs a target with session, step and call"),
        ({"reply": " ", "target": {"session": "s", "step": 1, "call": 0}}, "'reply' is empty"),
        ({"reply": 1, "target": {"session": "s", "step": 1, "call": 0}}, "must be text or an"),
        (
            {"reply": {"tool_calls": [{"name": "f", "arguments": "{"}]}, "target": {}},
            "'tool_calls' of the reply must be a list of calls",
        ),
        ({"comment": 7, "label": "good"}, "'comment' must be text"),
        ({"id": "t", "session": {}}, 'a label is an object with "target" and "label"'),
    ],
)
def test_what_is_wrong_with_a_line_is_named(line: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Label.of(line)
    assert message in str(caught.value)


def test_the_keys_of_a_target_may_be_in_the_line() -> None:
    label = Label.of({"label": "exclude", "id": 7, "agent": "web_agent", "who": "a program"})
    assert label.target == Target.of({"agent": "web_agent", "id": "7"})


def test_the_last_line_of_a_target_applies_and_null_takes_it_back(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "a.labels.jsonl")
    assert file.current() == {}
    one, two = Target.of({"id": "a"}), Target.of({"id": "b"})
    for target, verdict in ((one, "good"), (two, "bad"), (one, "exclude"), (two, None)):
        file.append(Label(target, verdict))  # type: ignore[arg-type]
    assert [(t, x.verdict) for t, x in file.current().items()] == [(one, "exclude")]
    assert len(file.path.read_text().splitlines()) == 4


def test_bad_lines_are_reported_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.labels.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"label": "good"}\n\n[]\n{"label": "bad", "target": {}, "later": 1}\n'
        b'{"label": "exc'
    )
    labels, problems = LabelFile(path).read()
    assert [(x.verdict, x.where) for x in labels] == [
        ("good", f"{path}, line 1"),
        ("bad", f"{path}, line 4"),
    ]
    assert [str(p) for p in problems] == [
        f'{path}, line 3: a label is an object with "target" and "label"',
        f"{path}, line 5: incomplete last line",
    ]


def test_a_label_after_an_incomplete_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.labels.jsonl"
    path.write_bytes(b'{"label": "good"}\n{"label": "exc')
    LabelFile(path).append(Label(Target.of({"id": "t"}), "bad"))
    labels, problems = LabelFile(path).read()
    assert [x.verdict for x in labels] == ["good", "bad"]
    assert [p.text for p in problems] == ["not JSON"]


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LabelFile(tmp_path / "a.labels.jsonl")
    file.append(Label(Target.of({"id": "t"}), "bad"))
    before, real = file.path.read_bytes(), os.write
    left = [7]

    def full(fd: int, data: Any) -> int:
        if not left:
            raise OSError(28, "No space left on device")
        return real(fd, data[: left.pop()])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=r"cannot write the labels .*: No space left on device"):
        file.append(Label(Target.of({"id": "t"}), "good"))
    assert file.path.read_bytes() == before


def test_a_comment_has_a_limit() -> None:
    with pytest.raises(InputError, match="'comment' has 1,000,001 characters; the limit is"):
        Label.of({"label": "good", "comment": "x" * 1_000_001})


@pytest.mark.parametrize(
    ("path", "label_file"),
    [
        ("runs/a.jsonl", "runs/a.labels.jsonl"),
        ("runs/a", "runs/a.labels.jsonl"),
        ("runs/a/task0007", "runs/a.labels.jsonl"),
        ("runs/a/task0007/try-2", "runs/a.labels.jsonl"),
        ("alone/one", "alone/one.labels.jsonl"),
        ("runs/x.y.jsonl", "runs/x.y.labels.jsonl"),
        ("runs/rows.json", "runs/rows.json.labels.jsonl"),
    ],
)
def test_rows_and_journals_of_one_run_share_a_label_file(
    tmp_path: Path, path: str, label_file: str
) -> None:
    for folder in ("runs/a/task0007", "runs/a/task0007/try-2", "alone/one"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "events.jsonl").touch()
    (tmp_path / "runs/a.jsonl").touch()
    assert label_file_of(tmp_path / path) == tmp_path / label_file


@_MORE
@given(
    parts=st.lists(
        st.sampled_from(
            [
                b'{"label": "good", "id": "a"}\n',
                b'{"label": null, "id": "a"}\n',
                b'{"label": "bad", "id": "b"}',
                b'{"label": "exc',
                b"\n",
                b"[]\n",
                None,
            ]
        ),
        max_size=8,
    )
)
def test_labels_that_are_read_while_the_file_grows_are_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes | None]
) -> None:
    """None replaces the file, as an editor does."""
    path = tmp_path_factory.getbasetemp() / "grows.labels.jsonl"
    path.write_bytes(b"")
    growing = CurrentLabels(path)
    for part in parts:
        if part is None:
            other = path.with_name("other")
            other.write_bytes(b'{"label": "exclude", "id": "c"}\n')
            other.replace(path)
        else:
            with path.open("ab") as file:
                file.write(part)
        growing.refresh()
        fresh = CurrentLabels(path)
        fresh.refresh()
        assert growing.labels == fresh.labels and growing.by_id == fresh.by_id
        problems = [str(p) for p in growing.all_problems()]
        assert problems == [str(p) for p in LabelFile(path).read()[1]]
        assert fresh.labels == LabelFile(path).current()


_WRITER = """
import sys
from pathlib import Path
from ck_pro.trajectory.labels import Label, LabelFile, Target
file, name = LabelFile(Path(sys.argv[1])), sys.argv[2]
n = 0
while n < int(sys.argv[3]):
    file.append(Label(Target.of({"id": name, "step": n}), "good", comment=name * 2000))
    print(n, flush=True)
    n += 1
"""


@pytest.mark.integration
def test_two_writers_lose_nothing_when_one_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.labels.jsonl"
    start = [sys.executable, "-c", _WRITER, str(path)]
    with (
        subprocess.Popen([*start, "k", "1000000"], stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen([*start, "o", "60"], stdout=subprocess.PIPE, text=True) as other,
    ):
        assert killed.stdout is not None and other.stdout is not None
        for line in killed.stdout:
            if int(line) == 30:
                killed.send_signal(signal.SIGKILL)
                break
        said = [30, *(int(line) for line in killed.stdout if line.endswith("\n"))]
        done = other.stdout.read().split()
    labels, problems = LabelFile(path).read()
    steps = {name: [x.target["step"] for x in labels if x.target["id"] == name] for name in "ko"}
    assert done == [str(n) for n in range(60)] and steps["o"] == list(range(60))
    assert steps["k"] == list(range(len(steps["k"])))
    assert len(steps["k"]) in (said[-1] + 1, said[-1] + 2)  # the last may be written, not printed
    assert len(problems) <= 1 and all(len(x.comment) == 2000 for x in labels)
