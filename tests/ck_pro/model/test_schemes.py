"""The table of schemes: `call_target` -> back end."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ck_main.cli.command import HELP
from ck_pro.exceptions import ConfigError
from ck_pro.model import LLM, Backend
from ck_pro.model.backends import schemes, targets
from ck_pro.model.backends.targets import (
    check_target,
    known_forms,
    known_schemes,
    open_target,
    parse_target,
)

DOCS = Path(__file__).resolve().parents[3] / "docs" / "models.md"

ECHO = '''
from ck_pro.model import RawReply
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Scheme


class EchoBackend(Backend):
    """Return the last message."""

    free = True

    def __init__(self, name):
        self.name = name

    def complete(self, request):
        return RawReply(text=f"{self.name}: {request.messages[-1]['content']}")

    def describe(self):
        return f"echo {self.name}"

    def model_name(self, params):
        return self.name


SCHEME = Scheme("echo", "echo:NAME", "the prompt itself", lambda name, access: EchoBackend(name))
'''


@pytest.fixture
def echo_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "echo.py").write_text(ECHO)
    monkeypatch.setattr(schemes, "__path__", [*schemes.__path__, str(tmp_path)])
    monkeypatch.setattr(targets, "known_schemes", known_schemes.__wrapped__)
    yield
    del sys.modules[f"{schemes.__name__}.echo"]


@pytest.mark.usefixtures("echo_scheme")
def test_one_file_adds_a_back_end() -> None:
    llm = LLM(call_target="echo:me")
    assert str(llm("Hello")) == "me: Hello" and llm.describe() == "echo me"
    check_target("record:replies.jsonl:echo:me")
    assert parse_target("record:replies.jsonl:echo:me").innermost() == parse_target("echo:me")
    with pytest.raises(ConfigError, match=r"an argument is missing.* write it as echo:NAME"):
        check_target("echo:")
    with pytest.raises(ConfigError, match=r"did you mean 'echo'.* known are: echo:NAME, gpt:NAME,"):
        check_target("ehco:me")
    assert "echo:NAME" in known_forms()


def test_the_table_in_the_docs_lists_every_scheme() -> None:
    rows = [f"| `{s.form}` | {s.meaning} |" for s in known_schemes()]
    table = "| `call_target` | source of the replies |\n|---|---|\n" + "\n".join(rows) + "\n\n"
    assert table in DOCS.read_text()


def test_the_commands_help_lists_every_scheme() -> None:
    line = next(line for line in HELP.splitlines() if line.startswith("Models: "))
    assert line.removeprefix("Models: ").split(" | ") == known_forms()


def test_every_scheme_opens_a_back_end_for_its_own_form(tmp_path: Path) -> None:
    for scheme in known_schemes():
        form = re.sub(r"\[.*\]|\(s\)", "", scheme.form)
        target = form.replace("TARGET", "manual").replace("FILE", str(tmp_path / "r"))
        check_target(target)
        backend = open_target(target)
        assert isinstance(backend, Backend) and backend.describe(), scheme.name
        assert str(parse_target(f" {target} ")) == target


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "unknown scheme; known are: gpt:NAME, "),
        ("gtp:x", "'gtp:x': unknown scheme; did you mean 'gpt'"),
        ("Manaul", "did you mean 'manual'"),
        ("gpt:", "an argument is missing after the colon; write it as gpt:NAME"),
        ("manual:x", "unknown argument 'x'; known are manual, manual:web"),
        ("http://", "not an http(s) URL of a server; write it as http(s)://HOST"),
        ("replay:", "the file is missing; write it as replay:FILE[?check=off]"),
        ("replay:f?check=no", "unknown option 'check=no'"),
        ("record:f", "the file or the target is missing; write it as record:FILE:TARGET"),
        ("record:f:gtp:x", "did you mean 'gpt'"),
        ("htp://me:secret@host/v1?key=secret", "'htp://host/v1': unknown scheme"),
        ("http://me:secret@/v1?key=secret", "'http:///v1': not an http(s) URL"),
    ],
)
def test_a_malformed_target_is_reported_in_one_line_without_secrets(
    target: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        LLM(call_target=target)
    error = str(caught.value)
    assert message in error and "\n" not in error and "secret" not in error
