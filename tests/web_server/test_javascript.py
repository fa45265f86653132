"""The JavaScript of the browser server is in files with correct headers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import web_server
from web_server.javascript import bundle_script, call_script, load_script
from web_server.observe import observer, walker
from web_server.settle import settle_world

PACKAGE = Path(web_server.__file__).parent
FILES = sorted(PACKAGE.glob("*/js/**/*.js"))
BUNDLES = (
    ("observe", walker.PARTS),
    ("observe", observer.RECORDER_PARTS),
    ("settle", settle_world.PARTS),
)


def _header(room: str, part: str, keyword: str) -> set[str]:
    """The names in the `global` or `exported` comments of a part."""
    text = load_script(room, part)
    found = re.findall(rf"/\* {keyword} (.*?)(?: -- .*?)?\*/", text, re.DOTALL)
    return {name.split(":")[0].strip() for names in found for name in names.split(",")}


def _declared(room: str, part: str) -> list[str]:
    """The names that a part declares at its top level."""
    text = load_script(room, part)
    return re.findall(r"(?m)^(?:const|let|class|async function|function) (\w+)", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_file_begins_with_a_comment_on_its_purpose(path: Path) -> None:
    assert re.match(r"// (Part of|Function file,|Runs in) ", path.read_text())


@pytest.mark.parametrize(("room", "parts"), BUNDLES)
def test_a_part_uses_only_names_that_another_part_of_its_bundle_provides(
    room: str, parts: tuple[str, ...]
) -> None:
    provided = {name for part in parts for name in _header(room, part, "exported")}
    for part in parts:
        missing = _header(room, part, "global") - provided - {"SECRET", "TOKEN"}
        assert not missing, f"{part}.js uses {missing}"


@pytest.mark.parametrize(("room", "parts"), BUNDLES)
def test_a_part_provides_only_names_that_another_part_uses(
    room: str, parts: tuple[str, ...]
) -> None:
    used = {name for part in parts for name in _header(room, part, "global")}
    for part in parts:
        assert _header(room, part, "exported") <= used | {"TOKEN"}, part


@pytest.mark.parametrize(("room", "parts"), BUNDLES)
def test_no_two_parts_of_a_bundle_declare_the_same_name(room: str, parts: tuple[str, ...]) -> None:
    counts = Counter(name for part in parts for name in _declared(room, part))
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_python_string_holds_javascript_of_several_lines() -> None:
    pattern = re.compile(r"=>\s*[{\[]|\bfunction\b[^\n]*\(.*?\)\s*\{")
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"
        for package in ("web_server", "ck_web", "ck_main", "ck_pro")
        for path in sorted((PACKAGE.parent / package).rglob("*.py"))
        for text in [path.read_text()]
        if ("=>" in text or "function" in text) and pattern.search(text)  # parsing is slow
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "\n" in node.value.strip()
        and pattern.search(node.value)
    ]
    assert found == []


def test_a_bundle_is_one_function_that_runs_the_parts_with_the_constants() -> None:
    script = bundle_script("settle", ("timers",), TOKEN='a"b')
    assert script.startswith('(() => {\n\'use strict\';\nconst TOKEN = "a\\"b";\n')
    assert script.endswith("})();")


def test_a_function_file_is_called_with_its_argument() -> None:
    script = call_script("session", "session_storage", {"https://a.example": "{}"})
    assert script.endswith('}\n)({"https://a.example": "{}"});')
