"""OpenTelemetry spans, from journals and live."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from journal_data import RESUMED, status
from sample_runs import QUESTIONS, Samples, make_agent

from ck_pro.events import EventKind
from ck_pro.exceptions import ConfigError
from ck_pro.journal import EVENTS_FILE, Journal, read_events
from ck_pro.trajectory import spans, telemetry
from ck_pro.trajectory.otel.otlp import JsonEmitter
from ck_pro.trajectory.otel.span_maker import SpanMaker
from ck_pro.trajectory.spans import spans_of

TREE = """\
invoke_agent ck_agent
  chat scripted
  execute_tool web_agent
    invoke_agent web_agent
      chat scripted
      execute_tool look
      chat scripted
  execute_tool web_agent
    invoke_agent web_agent
      chat scripted
      execute_tool look
      chat scripted
      execute_tool look
  chat scripted
"""


def _plain(value: dict[str, Any]) -> Any:
    ((kind, found),) = value.items()
    if kind == "arrayValue":
        return [_plain(v) for v in found["values"]]
    return int(found) if kind == "intValue" else found


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: _plain(a["value"]) for a in span["attributes"]}


def _tree(made: list[dict[str, Any]]) -> str:
    depths = {}
    lines = []
    for span in made:
        depths[span["spanId"]] = depths[span["parentSpanId"]] + 1 if "parentSpanId" in span else 0
        lines.append("  " * depths[span["spanId"]] + span["name"] + "\n")
    return "".join(lines)


def test_a_sub_agents_span_is_a_child_of_its_call(samples: Samples) -> None:
    folder = samples.journals(samples.good) / "capital"
    made = spans_of(folder)
    assert _tree(made) == TREE
    assert made == spans_of(folder)  # ids are deterministic
    assert len({s["traceId"] for s in made}) == 1
    assert all(len(s["traceId"]) == 32 and len(s["spanId"]) == 16 for s in made)
    by_id = {s["spanId"]: s for s in made}
    for span in made:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        parent = by_id.get(span.get("parentSpanId", ""), span)
        assert int(parent["endTimeUnixNano"]) >= int(span["endTimeUnixNano"])
    root, chat = made[0], made[1]
    assert _attributes(root)["ck.status"] == "done" and "status" not in root
    assert _attributes(root)["ck.task.id"] == "capital"
    facts = _attributes(chat)
    assert (chat["kind"], root["kind"]) == (3, 1)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.request.model"] == facts["gen_ai.response.model"] == "scripted"
    assert facts["gen_ai.usage.input_tokens"] > 0
    assert facts["gen_ai.response.finish_reasons"] == ["stop"]
    assert (facts["ck.step"], facts["ck.phase"]) == (0, "action")
    failed = next(s for s in made if "nowhere" not in s["name"] and "status" in s)
    assert failed["name"] == "invoke_agent web_agent"
    assert _attributes(failed)["error.type"] == "steps"


def test_texts_are_optional(samples: Samples) -> None:
    folder = samples.journals(samples.good) / "capital"
    silent, telling = (json.dumps(spans_of(folder, texts=t)) for t in (False, True))
    for text in ("capital of France", "It is Paris.", "You look at pages.", "nowhere"):
        assert text not in silent and text in telling
    chat = next(s for s in spans_of(folder, texts=True) if s["name"].startswith("chat"))
    facts = _attributes(chat)
    (said,) = json.loads(facts["gen_ai.output.messages"])
    assert said["role"] == "assistant" and said["parts"][1]["type"] == "tool_call"
    messages = json.loads(facts["gen_ai.input.messages"])
    assert messages[0]["role"] == "system" and messages[0]["parts"][0]["type"] == "text"


def _event(kind: str, time: float, *, sid: str = "m", **more: Any) -> dict[str, Any]:
    given = {"parent": None, "i": 0, "phase": None, "data": {}}
    return {"kind": kind, "sid": sid, "time": time, **given, **more}


def _made(*events: dict[str, Any]) -> list[dict[str, Any]]:
    emitter = JsonEmitter("run")
    maker = SpanMaker(emitter)
    for event in events:
        maker.take(event)
    maker.close()
    return emitter.spans


BEGIN = _event("session", 1.0, data={"task": "t", "agent": "a"})


def test_code_tools_and_failures_have_spans() -> None:
    made = _made(
        BEGIN,
        _event("model_call", 2.0, duration=0.5, phase="action", data={"model": "m", "params": {}}),
        _event("action", 2.0, phase="action", data={"thought": "", "code": "ask_llm('x')"}),
        _event("started", 2.1, data={"call": 0, "name": "ask_llm", "arguments": {}}),
        _event("started", 2.1, data={"call": 1, "name": "ask_llm", "arguments": {}}),
        _event("model_call", 2.4, duration=0.2, phase="tool:ask_llm", data={"model": "m"}),
        _event("call", 2.5, data={"call": 0, "name": "ask_llm", "error": "ToolError: no"}),
        _event("call", 2.6, data={"call": 1, "name": "ask_llm", "value": "yes"}),
        _event("error", 2.7, data={"error": "ValueError"}),
        _event("observation", 2.8, data={"observation": "x"}),
        _event("model_failed", 3.0, phase="action", data={"error": "ModelUnavailable: gone"}),
        _event("status", 3.1, data={"status": "problem", "stop_reason": "model_failure"}),
    )
    assert _tree(made) == (
        "invoke_agent a\n  chat m\n  execute_tool python\n    execute_tool ask_llm\n"
        "    execute_tool ask_llm\n      chat m\n  chat\n"
    )
    times = [(s["startTimeUnixNano"], s["endTimeUnixNano"]) for s in made[:3]]
    assert times[:2] == [("1000000000", "3100000000"), ("1500000000", "2000000000")]
    errors = [_attributes(s).get("error.type") for s in made]
    assert errors == [
        "model_failure", None, "ValueError", "ToolError", None, None, "ModelUnavailable",
    ]  # fmt: skip
    assert [("status" in s) for s in made] == [e is not None for e in errors]


def test_spans_of_an_interrupted_run_are_ended() -> None:
    started = _event("started", 2.0, data={"call": 0, "name": "f", "arguments": {}})
    root, call = _made(BEGIN, started)
    assert root["endTimeUnixNano"] == call["endTimeUnixNano"] == "2000000000"
    assert _attributes(root)["ck.unfinished"] is True


def test_a_resumed_run_has_two_spans() -> None:
    """The pause is not part of a span."""
    halted = {"status": "in_progress", "stop_reason": "cancelled"}
    made = _made(
        BEGIN,
        _event("status", 2.0, data=halted),
        _event("resumed", 9.0, data={}),
        _event("status", 10.0, data={"status": "done", "stop_reason": "finished"}),
        _event("eval", 11.0),
    )
    assert [s["name"] for s in made] == ["invoke_agent a", "invoke_agent a"]
    assert [s["startTimeUnixNano"] for s in made] == ["1000000000", "9000000000"]
    assert all("status" not in s for s in made)


@pytest.mark.parametrize(
    ("target", "provider"),
    [
        ("gpt:gpt-4.1", "openai"),
        ("record:/x:gpt:y", "openai"),
        ("https://host/v1", "http"),
        ("nonsense", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_provider_follows_from_the_target(target: str | None, provider: str) -> None:
    config = {"model": {"call_target": target}}
    begin = _event("session", 1.0, data={"task": "t", "agent": "a", "config": config})
    params = {"temperature": 0.5, "stop": ["x"], "seed": True}
    call = _event("model_call", 2.0, phase="plan", data={"model": "m", "params": params})
    facts = _attributes(_made(begin, call)[1])
    assert facts["gen_ai.provider.name"] == provider
    assert facts["gen_ai.request.temperature"] == 0.5 and "gen_ai.request.seed" not in facts
    assert facts["gen_ai.request.stop_sequences"] == ["x"]


# --- the command -----------------------------------------------------------------------------


def test_the_command_writes_a_file_of_traces(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "spans.jsonl"
    run = str(samples.journals(samples.good))
    assert spans.main([run, "-o", str(out)]) == 0
    traces = [json.loads(line) for line in out.read_text().splitlines()]
    scopes = [t["resourceSpans"][0]["scopeSpans"][0] for t in traces]
    assert [len(s["spans"]) for s in scopes] == [14, 4]
    assert capsys.readouterr().out == f"18 spans: {out}\n"
    assert spans.main([run, "-o", str(out)]) == 0  # a file of spans may be replaced
    capsys.readouterr()
    assert spans.main([run, "-o", "-"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert {p.name for p in tmp_path.iterdir()} == {"spans.jsonl"}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["missing"], 2),
        (["."], 2),
        (["run", "-o", "a", "--endpoint", "b"], 2),
        (["run", "--endpoint", "http://localhost:1/", "--header", "x"], 2),
        (["run", "--endpoint", "nonsense"], 4),
        (["run", "-o", "no/such/folder"], 4),
        (["run", "broken", "-o", "out"], 3),
        (["run", "-o", "rows.jsonl"], 4),
        (["run", "-o", "pipe"], 4),
    ],
)
def test_wrong_command_lines_are_reported_in_one_line(
    samples: Samples,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").symlink_to(samples.journals(samples.good) / "sum")
    Path("broken").mkdir()
    (Path("broken") / EVENTS_FILE).write_text('{"kind": "session", "data": {}}\n')
    (tmp_path / "empty").mkdir()
    os.mkfifo("pipe")
    Path("rows.jsonl").write_text('{"id": "sum"}\n')
    if args == ["."]:
        args = ["empty"]
    assert spans.main(args) == code
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert Path("pipe").is_fifo() and Path("rows.jsonl").read_text() == '{"id": "sum"}\n'


# --- with OpenTelemetry itself ---------------------------------------------------------------


@pytest.fixture
def exported() -> Iterator[tuple[Any, Any]]:
    """A tracer of the SDK and its exporter."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("test"), exporter
    provider.shutdown()


def _seen(span: Any) -> tuple[Any, ...]:
    facts = {k: list(v) if isinstance(v, tuple) else v for k, v in span.attributes.items()}
    error = span.status.status_code.name == "ERROR"
    return span.name, span.kind.name, span.start_time, span.end_time, facts, error


@pytest.mark.integration
def test_live_spans_equal_those_of_the_journal(tmp_path: Path, exported: tuple[Any, Any]) -> None:
    tracer, exporter = exported
    sink = telemetry.SpanSink(tracer, texts=True)
    with tracer.start_as_current_span("the caller's"), Journal(tmp_path, listener=sink.take) as j:
        make_agent().run(QUESTIONS["capital"], journal=j)
    sink.close()
    live = {s.context.span_id: s for s in exporter.get_finished_spans()}
    outer = next(s for s in live.values() if s.name == "the caller's")
    made = spans_of(tmp_path, texts=True)
    assert len(made) == len(live) - 1 == 14
    kinds = {1: "INTERNAL", 3: "CLIENT"}
    written = [
        (
            s["name"],
            kinds[s["kind"]],
            int(s["startTimeUnixNano"]),
            int(s["endTimeUnixNano"]),
            _attributes(s),
            "status" in s,
        )
        for s in made
    ]
    found = sorted((_seen(s) for s in live.values() if s is not outer), key=str)
    assert found == sorted(written, key=str)
    by_id = {s["spanId"]: s for s in made}
    pairs = sorted((s["name"], by_id[s["parentSpanId"]]["name"]) for s in made[1:])
    nested = [s for s in live.values() if s is not outer]
    parents = sorted((s.name, live[s.parent.span_id].name) for s in nested)
    assert parents == sorted([*pairs, ("invoke_agent ck_agent", "the caller's")])


@pytest.mark.integration
def test_a_resumed_run_knows_its_agents(tmp_path: Path, exported: tuple[Any, Any]) -> None:
    tracer, exporter = exported
    with Journal(tmp_path) as journal:
        journal.append(EventKind.SESSION, sid="s", data={"task": "t", "agent": "solo"})
    sink = telemetry.SpanSink(tracer, before=read_events(tmp_path))
    with Journal(tmp_path, listener=sink.take) as journal:
        journal.append(EventKind.RESUMED, sid="s", data=RESUMED)
        journal.append(EventKind.STATUS, sid="s", data=status())
    (span,) = exporter.get_finished_spans()
    assert span.name == "invoke_agent solo"


@pytest.mark.integration
def test_a_failure_of_the_sink_does_not_end_the_run(
    tmp_path: Path, exported: tuple[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    sink = telemetry.SpanSink(exported[0])
    with Journal(tmp_path, listener=sink.take) as journal:
        first = journal.append(EventKind.SESSION, sid="s", data={"task": "t", "agent": "solo"})
        journal.copy({**first, "kind": EventKind.STARTED})  # without a name
        journal.append(EventKind.STATUS, sid="s", data=status())
    sink.close()
    assert "making spans failed" in caplog.text
    assert [s.name for s in exported[1].get_finished_spans()] == ["invoke_agent solo"]


@pytest.mark.integration
def test_attribute_names_follow_the_conventions(samples: Samples) -> None:
    from opentelemetry.semconv._incubating.attributes import error_attributes as error
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

    known = {v for v in vars(gen_ai).values() if isinstance(v, str)} | {error.ERROR_TYPE}
    used = set[str]()
    for span in spans_of(samples.journals(samples.good) / "capital", texts=True):
        used |= set(_attributes(span))
    params = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 1, "seed": 1, "stop": ["x"]}
    used |= set(_attributes(_made(BEGIN, _event("model_call", 2.0, data={"params": params}))[1]))
    assert {u for u in used if not u.startswith("ck.")} <= known


@pytest.mark.integration
def test_the_file_is_valid_otlp(samples: Samples) -> None:
    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    from ck_pro.trajectory.otel.otlp import traces_data

    made = spans_of(samples.journals(samples.good) / "capital", texts=True)
    read = json_format.Parse(json.dumps(traces_data(made, "x")), TracesData())
    kept = read.resource_spans[0].scope_spans[0].spans
    assert [s.name for s in kept] == [s["name"] for s in made]
    assert kept[0].end_time_unix_nano == int(made[0]["endTimeUnixNano"])


@pytest.mark.integration
@pytest.mark.parametrize("status", [200, 503])
def test_spans_are_sent_to_a_collector(
    samples: Samples, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[tuple[str, dict[str, Any]]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["X-Key"], json.loads(body)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"{}" if status == 200 else b"full")

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        run = str(samples.journals(samples.good))
        code = spans.main([run, "--endpoint", url, "--header", "X-Key=1=2"])
        server.shutdown()
        thread.join()
    if status == 200:
        assert code == 0 and len(got) == 2
        assert got[0][0] == "1=2"
        names = [a["key"] for a in got[0][1]["resourceSpans"][0]["resource"]["attributes"]]
        assert names == ["service.name"]
    else:
        assert code == 4
        assert "refused the spans: 503 full" in capsys.readouterr().err


def test_a_missing_opentelemetry_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ConfigError, match=r'pip install "ck-pro\[otel\]"'):
        telemetry.SpanSink()
