"""The direction of imports, from the source itself."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("ck_pro", "ck_web", "ck_main", "web_server")
MAY_IMPORT = {
    "ck_pro": {"ck_pro"},
    "web_server": {"web_server"},
    "ck_web": {"ck_web", "ck_pro", "web_server.contract"},
    "ck_main": {"ck_main", "ck_pro", "ck_web"},
}
# An entry point wires rooms together, also those above its own.
ENTRY_POINTS = {"ck_web/main.py": {"ck_main"}}
# Inside ck_pro a module imports only those before it.
ORDER = [
    "exceptions",
    "threads",
    "defaults",
    "config",
    "settings",
    "template",
    "fingerprint",
    "events",
    "task",
    "journal",
    "status",
    "observed",
    "session",
    "tool",
    "computer",
    "model",
    "person",
    "tools",
    "executor",
    "workspace",
    "language",
    "environment",
    "prompts",
    "approval",
    "agent_settings",
    "results",
    "sampling",
    "history",
    "resume",
    "calls",
    "cancel",
    "prefixes",
    "model_calls",
    "code_runner",
    "snapshots",
    "run",
    "callable_agent",
    "endings",
    "phases",
    "acting",
    "agent",
    "stepper",
    "trajectory",
    "testing",
]


def _sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


# An import statement as ruff formats it; a block for the type checker alone; a text of lines.
_IMPORT = re.compile(
    r"^ *(import [\w., ]+|from [\w.]+ import (?:\([^)]*\)|[^(\n]+))(?: *#.*)?$", re.MULTILINE
)
_FOR_TYPES = re.compile(r"^( *)if (?:typing\.)?TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
_TEXT = re.compile('""".*?"""', re.DOTALL)


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    """Absolute dotted names of ours imported at runtime, by the lines of the source.

    Only the statements found are parsed: all of the source takes a hundred times as long.
    """
    statements = _IMPORT.findall(_FOR_TYPES.sub("", _TEXT.sub('""', path.read_text())))
    return _names(path, ast.parse("\n".join(statements)).body)


def _names(path: Path, nodes: Iterable[ast.AST]) -> frozenset[str]:
    """What the import statements among `nodes` name."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).with_suffix("").parts
            base = package[: len(package) - node.level] if node.level else ()
            module = ".".join((*base, node.module or "")).strip(".")
            found.update(f"{module}.{a.name}" for a in node.names)
    ours = (*OURS, "tests", "benchmarks", "examples")
    return frozenset(f for f in found if f.split(".")[0] in ours)


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those under `if TYPE_CHECKING`; imports are never inside expressions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from _runtime_nodes(node)


@pytest.mark.integration
def test_the_imports_found_by_line_are_those_of_the_syntax() -> None:
    for path in (path for package in OURS for path in _sources(package)):
        assert _imports(path) == _names(path, _runtime_nodes(ast.parse(path.read_text()))), path


@pytest.mark.parametrize("package", OURS)
def test_packages_import_one_way(package: str) -> None:
    wrong = []
    for path in _sources(package):
        where = path.relative_to(ROOT).as_posix()
        allowed = MAY_IMPORT[package] | ENTRY_POINTS.get(where, set())
        for name in _imports(path):
            if not any(name == ok or name.startswith(ok + ".") for ok in allowed):
                wrong.append(f"{where} imports {name}")
    assert wrong == []


def test_nothing_imports_an_entry_point_that_reaches_upward() -> None:
    names = [e.removesuffix(".py").replace("/", ".") for e in ENTRY_POINTS]
    sources = [path for package in OURS for path in _sources(package)]
    assert [p for p in sources if any(n.startswith(tuple(names)) for n in _imports(p))] == []


def test_the_core_is_in_layers() -> None:
    wrong = []
    for path in _sources("ck_pro"):
        parts = path.relative_to(ROOT / "ck_pro").with_suffix("").parts
        if parts[0] == "__init__":
            continue
        assert parts[0] in ORDER, f"{path} has no place in the order of layers"
        for name in _imports(path):
            target = name.split(".")[1]
            if target in ORDER and ORDER.index(target) > ORDER.index(parts[0]):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@pytest.mark.integration
def test_importing_prints_nothing_and_starts_nothing(tmp_path: Path) -> None:
    code = (
        "import threading, ck_pro, ck_pro.agent, ck_pro.testing, ck_web.agent, ck_main.agent\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
