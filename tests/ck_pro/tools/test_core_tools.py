"""ask_llm and simple_web_search."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ConfigError, ContentFiltered, ToolError
from ck_pro.model import LLM
from ck_pro.testing import ScriptedLLM
from ck_pro.tools import AskLLMTool, LocalIndex, SimpleSearchTool

DOCUMENTS = [
    {"title": "Green tea", "url": "{site}/green", "text": "A mild tea from\x1b[31m Japan. " * 30},
    {"title": "Black coffee", "url": "{site}/coffee", "text": "Strong. Not tea."},
    {"title": "Teapots", "url": "{site}/pots", "text": "Clay and iron pots for tea."},
]


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "index.json"
    path.write_text(json.dumps(DOCUMENTS))
    return path


# --- ask_llm ---------------------------------------------------------------------------------


class Runner:
    """Stands for a run."""

    def __init__(self, model):
        self.model = model

    def call_model(self, llm, messages, phase):
        self.phase = phase
        return llm(messages)


def test_ask_llm_uses_the_agents_model_or_its_own():
    run = Runner(ScriptedLLM(["of the agent"]))
    assert AskLLMTool().bind(run)("what?") == "of the agent" and run.phase == "tool:ask_llm"
    own = AskLLMTool(model=ScriptedLLM(["own", "alone"]))
    assert own.bind(run)(query="what?") == "own"
    assert own("what?") == "alone"
    assert AskLLMTool(model="gpt:x").model.call_target == "gpt:x"
    assert "ask_llm(query: str) -> str" in own.get_function_definition(short=True)
    assert own.bind(run).__doc__


def test_ask_llm_tells_the_model_of_faults():
    run = Runner(ScriptedLLM([ContentFiltered("stopped")]))
    with pytest.raises(ToolError, match="stopped"):
        AskLLMTool().bind(run)("what?")
    with pytest.raises(ToolError, match="empty"):
        AskLLMTool(model=LLM())(" ")
    with pytest.raises(ToolError, match="set `model`"):
        AskLLMTool()("what?")


# --- search ----------------------------------------------------------------------------------


def test_local_search(index):
    tool = SimpleSearchTool(backend=f"local:{index}", origin="http://127.0.0.1:80", max_results=2)
    lines = tool("  green TEAS ").splitlines()
    assert lines[:2] == ["1. Green tea", "   http://127.0.0.1:80/green"]
    assert "\x1b" not in lines[2] and lines[2].endswith("...")
    assert lines[3].startswith("2. ") and len(lines) == 6
    assert tool("zebra") == "No results for 'zebra'. Try fewer or other words."
    with pytest.raises(ToolError, match="empty"):
        tool(" ")


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"title": "x"}]', "nonsense"])
def test_a_broken_index(tmp_path, content):
    path = tmp_path / "index.json"
    if content != "{}":
        path.write_text(content)
    with pytest.raises(ToolError, match=r"index\.json"):
        SimpleSearchTool(backend=f"local:{path}")("x")


@given(st.lists(st.text(max_size=20), max_size=6), st.text(max_size=10))
def test_any_query_finds_only_what_has_its_words(texts, query):
    documents = [{"title": "", "url": "", "text": t} for t in texts]
    found = LocalIndex(documents).search(query)
    assert all(d in documents for d in found)


@pytest.mark.parametrize(
    "settings",
    [{"backend": "bing"}, {"backend": "local:"}, {"backend": "google:x"}, {"max_results": 0}],
)
def test_settings(settings):
    with pytest.raises(ConfigError):
        SimpleSearchTool(**settings)


@pytest.fixture
def searx():
    """A SearxNG server of one answer."""
    answer = {"status": 200, "body": ""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer["path"] = self.path
            self.send_response(answer["status"])
            self.end_headers()
            self.wfile.write(answer["body"].encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    answer["url"] = f"http://127.0.0.1:{server.server_address[1]}"
    yield answer
    server.shutdown()
    server.server_close()
    thread.join()


def test_searxng(searx):
    tool = SimpleSearchTool(backend=f"searxng:{searx['url']}/")
    row = {"title": "T\nt", "url": "http://x", "content": "c"}
    searx["body"] = json.dumps({"results": [row] * 20})
    assert tool("a b").startswith("1. T t\n   http://x\n   c\n2.")
    assert tool("a b").count("http://x") == 7
    assert searx["path"] == "/search?q=a+b&format=json"
    searx["body"] = json.dumps({"results": [{"title": None, "url": "http://y"}, 3]})
    assert tool("a b") == "1. (no title)\n   http://y"
    searx["body"] = json.dumps({"results": None})
    assert tool("a b").startswith("No results")
    searx["body"] = "[]"
    with pytest.raises(ToolError, match="is not JSON"):
        tool("x")
    searx["status"] = 403
    with pytest.raises(ToolError, match="HTTP 403"):
        tool("x")


def test_answers_that_are_too_deep_too_long_or_too_slow(searx, monkeypatch):
    tool = SimpleSearchTool(backend=f"searxng:{searx['url']}")
    searx["body"] = "[" * 100_000
    with pytest.raises(ToolError, match="is not JSON"):
        tool("x")
    clock = iter((0.0, 100.0))
    with monkeypatch.context() as patch:
        patch.setattr("ck_pro.tools.search.time", SimpleNamespace(monotonic=lambda: next(clock)))
        with pytest.raises(ToolError, match="did not respond in 15 s"):
            tool("x")
    monkeypatch.setattr("ck_pro.tools.search._MAX_RESPONSE", 1000)
    with pytest.raises(ToolError, match="is too large"):
        tool("x")


def test_services_that_are_not_there(monkeypatch):
    with pytest.raises(ToolError, match="cannot connect"):
        SimpleSearchTool(backend="searxng:http://127.0.0.1:9")("x")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(ToolError, match="GOOGLE_API_KEY is not set"):
        SimpleSearchTool(backend="google")("x")
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(ToolError, match=r"pip install 'ck-pro\[search\]'"):
        SimpleSearchTool()("x")


class FakeDDGS:
    """Stands for the library, whose network is closed here."""

    error: Exception | None = None

    def __init__(self, timeout):
        self.timeout = timeout

    def text(self, query, max_results, backend):
        if self.error is not None:
            raise self.error
        return [{"title": query, "href": "http://x", "body": backend}] * (max_results + 3)


def test_duckduckgo(monkeypatch):
    ddgs = pytest.importorskip("ddgs")
    from ddgs.exceptions import DDGSException

    monkeypatch.setattr(ddgs, "DDGS", FakeDDGS)
    assert SimpleSearchTool(max_results=2)("tea").count("http://x") == 2
    for error, outcome in (("No results found.", "No results for 'tea'"), ("rate limit", None)):
        monkeypatch.setattr(FakeDDGS, "error", DDGSException(error))
        if outcome:
            assert outcome in SimpleSearchTool()("tea")
        else:
            with pytest.raises(ToolError, match="rate limit"):
                SimpleSearchTool()("tea")
