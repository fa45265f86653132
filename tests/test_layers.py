"""The direction of imports between packages and rooms, from the source itself."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ck_pro

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ck_pro", "ck_file", "ck_web", "ck_main", "web_server")
MAY_IMPORT = {
    "ck_pro": {"ck_pro"},
    "web_server": {"web_server"},
    "ck_file": {"ck_file", "ck_pro"},
    "ck_web": {"ck_web", "ck_pro", "web_server.contract"},
    "ck_main": {"ck_main", "ck_pro", "ck_file", "ck_web"},
}
# An entry point wires rooms together, also those of a package above its own.
ENTRY_POINTS = {"ck_web/main.py": {"ck_main"}}
MAX_FILES = 16


@functools.cache
def _sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@functools.cache
def _text_of(path: Path) -> str:
    return path.read_text()


@functools.cache
def rooms(package: str) -> tuple[str, ...]:
    """The rooms of a package in import order, as the docstring of its `__init__` lists them."""
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    _, _, listed = text.partition("Rooms, in import order:")
    return tuple(re.findall(r"^ {2,4}(\w+)\b", listed, re.MULTILINE))


# An import statement as ruff formats it; a block for the type checker alone; a text of lines.
_IMPORT = re.compile(
    r"^ *(import [\w., ]+|from [\w.]+ import (?:\([^)]*\)|[^(\n]+))(?: *#.*)?$", re.MULTILINE
)
_FOR_TYPES = re.compile(r"^( *)if (?:typing\.)?TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
_TEXT = re.compile('""".*?"""', re.DOTALL)


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    """Absolute dotted names of this project imported at runtime.

    Only the import statements are parsed: parsing the whole source takes a hundred times as long.
    """
    statements = _IMPORT.findall(_FOR_TYPES.sub("", _TEXT.sub('""', _text_of(path))))
    return _names(path, ast.parse("\n".join(statements)).body)


def _names(path: Path, nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The dotted names that the import statements among `nodes` import."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).with_suffix("").parts
            base = package[: len(package) - node.level] if node.level else ()
            module = ".".join((*base, node.module or "")).strip(".")
            found.update(f"{module}.{a.name}" for a in node.names)
    known = (*PACKAGES, "tests", "benchmarks", "examples")
    return frozenset(f for f in found if f.split(".")[0] in known)


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements except those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from _runtime_nodes(node)


@pytest.mark.integration
def test_the_line_based_import_scan_agrees_with_the_syntax_tree() -> None:
    for path in (path for package in PACKAGES for path in _sources(package)):
        assert _imports(path) == _names(path, _runtime_nodes(ast.parse(_text_of(path)))), path


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_in_one_direction(package: str) -> None:
    wrong = []
    for path in _sources(package):
        where = path.relative_to(ROOT).as_posix()
        allowed = MAY_IMPORT[package] | ENTRY_POINTS.get(where, set())
        for name in _imports(path):
            if not any(name == ok or name.startswith(ok + ".") for ok in allowed):
                wrong.append(f"{where} imports {name}")
    assert wrong == []


def test_no_reference_to_a_run_or_an_agent_is_typed_any() -> None:
    names = ("run", "session", "agent")
    untyped = re.compile(rf"\b(?:{'|'.join(names)}): Any\b")
    wrong = []
    for path in (path for package in PACKAGES for path in _sources(package)):
        text = _text_of(path)
        # much faster than a search by the pattern
        if any(f"{name}: Any" in text for name in names) and untyped.search(text):
            wrong.append(str(path))
    assert wrong == []


def test_no_module_imports_an_entry_point_that_reaches_upward() -> None:
    names = tuple(e.removesuffix(".py").replace("/", ".") for e in ENTRY_POINTS)
    sources = [path for package in PACKAGES for path in _sources(package)]
    assert [p for p in sources if any(n.startswith(names) for n in _imports(p))] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_imports_only_rooms_listed_before_it(package: str) -> None:
    order, wrong = rooms(package), []
    assert len(order) == len(set(order)) > 1
    for path in _sources(package):
        room = path.relative_to(ROOT / package).with_suffix("").parts[0]
        if room == "__init__":
            continue
        assert room in order, f"{path} is in no room that {package}/__init__.py lists"
        for name in _imports(path):
            parts = name.split(".")
            if parts[0] != package or len(parts) < 2 or parts[1] not in order:
                continue
            if order.index(parts[1]) > order.index(room):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_holds_few_files_and_states_its_purpose(package: str) -> None:
    for folder in {path.parent for path in _sources(package)}:
        where = folder.relative_to(ROOT).as_posix()
        files = [p for p in folder.glob("*.py") if p.name != "__init__.py"]
        assert len(files) <= MAX_FILES, f"{where}: {len(files)} files"
        assert (folder / "__init__.py").exists(), f"{where} has no __init__.py"
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), where


def test_the_shared_modules_of_tests_are_in_small_folders_on_the_path() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    for folder in {path.parent for path in (ROOT / "tests/support").rglob("*.py")}:
        where = folder.relative_to(ROOT).as_posix()
        assert len(list(folder.glob("*.py"))) <= MAX_FILES, where
        assert f'"{where}"' in settings, f"{where} is missing in `pythonpath`"


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


def test_every_public_name_of_the_core_can_be_imported() -> None:
    assert [name for name in ck_pro.__all__ if not hasattr(ck_pro, name)] == []
