"""Settings for a run: a configuration file and `--updates`, merged from left to right.

A configuration file is YAML (`.yaml`, `.yml`), JSON (`.json`) or a Python dict (`.py`, `.txt`). It
contains only literals; no code runs. An update is a Python or JSON dict, or `dotted.name=value`.
The value is a literal if it parses as one, and text otherwise:

>>> load_settings(None, ["{'max_steps': 5}", "web_agent.model.call_target=gpt:x"])
{'max_steps': 5, 'web_agent': {'model': {'call_target': 'gpt:x'}}}
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ck_pro.exceptions import ConfigError

MODEL_SETTING = "call_target"
"""The setting that a plain text stands for in a model's settings: see `LLM.string_setting`."""

_INT, _FLOAT, _TIME = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
_OLD_TAGS = (_INT, _FLOAT, _TIME)
_KINDS: dict[type, str] = {list: "a list", tuple: "a list", str: "a text"}
_MOST_VALUES = 100_000
_DOTTED = re.compile(r"\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*=(.*)", re.DOTALL)


def load_settings(config: Path | None, updates: Sequence[str] = ()) -> dict[str, Any]:
    """Load a configuration file and merge the updates into it; the last one wins.

    Args:
        config: the file, or None.
        updates: dict texts or `dotted.name=value`, merged from left to right.

    Raises:
        ConfigError: a file or an update cannot be parsed; the message has the file and line.
    """
    settings = {} if config is None else read_config(config)
    for text in updates:
        settings = merge_settings(settings, parse_update(text))
    return settings


def read_config(path: Path) -> dict[str, Any]:
    """Load the settings from a file; its suffix selects the format.

    Raises:
        ConfigError: a missing file, an unknown suffix, a syntax error, or not a dict of settings.
    """
    readers = {".json": _json, ".py": _literal, ".txt": _literal, ".yaml": _yaml, ".yml": _yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"config {path}: the name must end in one of {', '.join(readers)}")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would block
            raise ConfigError(f"config {path}: is a pipe or a device; write the settings to a file")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as e:
        raise ConfigError(f"config {path}: cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        line = e.object.count(b"\n", 0, e.start) + 1
        raise ConfigError(f"config {path}, line {line}: not UTF-8; save it as UTF-8") from None
    if not text.strip():
        return {}
    try:
        value = reader(text)
    except _SyntaxProblem as e:
        at = f", line {e.line}" if e.line else ""
        raise ConfigError(f"config {path}{at}: {e.text}") from None
    try:
        return _checked({} if value is None else value, f"config {path}")
    except RecursionError:  # possible with YAML aliases
        raise ConfigError(f"config {path}: a value contains itself; write it out") from None


def parse_update(text: str) -> dict[str, Any]:
    """Parse one update to a nested dict.

    Raises:
        ConfigError: the text is neither a dict nor `dotted.name=value`.
    """
    if text.strip().startswith("{"):
        for reader in (_literal, _json):
            try:
                return _checked(reader(text.strip()), "--updates")
            except _SyntaxProblem as e:
                problem = e.text
        raise ConfigError(f"--updates {_short(text)}: not a Python or JSON dict: {problem}")
    found = _DOTTED.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"--updates {_short(text)}: write a dict, \"{{'max_steps': 5}}\", or name=value, "
            '"web_agent.model.call_target=gpt:NAME"'
        )
    value = _value(found[2].strip())
    for name in reversed(found[1].split(".")):
        value = {name: value}
    return _checked(value, f"--updates {_short(text)}")


def merge_settings(base: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `update` into `base`: dicts merge key by key, other values replace.

    A model given as a text means its `call_target`. Text and dict merge too, so naming another
    model keeps its call parameters.
    """
    merged = dict(base)
    for name, value in update.items():
        current = merged.get(name)
        if name == "model" or name.endswith("_model"):
            if isinstance(current, str) and isinstance(value, Mapping):
                current = {MODEL_SETTING: current}
            elif isinstance(current, Mapping) and isinstance(value, str):
                value = {MODEL_SETTING: value}
        if isinstance(current, Mapping) and isinstance(value, Mapping):
            value = merge_settings(current, value)
        merged[name] = value
    return merged


def leaves(settings: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return every setting that is not a dict of settings, by the names that lead to it."""
    found: dict[tuple[str, ...], Any] = {}
    for name, value in settings.items():
        names = (*path, name)
        if isinstance(value, Mapping) and value:
            found.update(leaves(value, names))
        else:
            found[names] = value
    return found


def line_of(path: Path, names: Sequence[str]) -> int | None:
    """Return the line of a setting in a configuration file; None if not found.

    Args:
        path: a file that `read_config` can load.
        names: the names that lead to the setting.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() in (".py", ".txt"):
        lead = len(text) - len(text.lstrip())
        found = _literal_line(ast.parse(text.strip(), mode="eval").body, names)
        return found and found + text.count("\n", 0, lead)
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # JSON with tabs is not YAML
        return None
    line = None
    for name in names:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        key, node = next(((k, v) for k, v in pairs if k.value == name), (None, None))
        if key is None:
            return None
        line = key.start_mark.line + 1
    return line


def _literal_line(node: ast.expr | None, names: Sequence[str]) -> int | None:
    line = None
    for name in names:
        pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
        found = [(k, v) for k, v in pairs if isinstance(k, ast.Constant) and k.value == name]
        if not found:
            return None
        line, node = found[-1][0].lineno, found[-1][1]
    return line


class _SyntaxProblem(Exception):
    """A syntax error in a text, with its line (0: unknown)."""

    def __init__(self, text: str, line: int = 0):
        super().__init__(text)
        self.text, self.line = text, line


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as e:
        raise _SyntaxProblem(f"not JSON: {e.msg}", e.lineno) from None
    except (ValueError, RecursionError) as e:
        raise _SyntaxProblem(f"not JSON: {e}") from None


def _literal(text: str) -> Any:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        raise _SyntaxProblem(f"not a Python literal: {e.msg}", e.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise _SyntaxProblem(f"not a Python literal: {e}") from None
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, RecursionError):
        line = _first_computed(tree)
        said = "only literals are allowed (text, numbers, True, None, lists, dicts)"
        raise _SyntaxProblem(said, line) from None


def _first_computed(tree: ast.Expression) -> int:
    """Return the line of the first expression that is not a literal."""
    plain = (ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.UnaryOp, ast.BinOp)
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.expr) and not _is(n, plain)]
    return min(lines, default=0)


def _is(node: ast.AST, types: tuple[type, ...]) -> bool:
    return isinstance(node, types)


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML with an error for repeated keys and the numbers of YAML 1.2.

    `1e-3` is a number, `010` is ten, and `1:30` and `2026-01-31` are texts.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if isinstance(key, str) and key in seen:
                mark = key_node.start_mark
                raise yaml.constructor.ConstructorError(None, None, f"'{key}' is given twice", mark)
            if isinstance(key, str) and key != "<<":
                seen.add(key)
        return super().construct_mapping(node, deep)


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag not in _OLD_TAGS]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_StrictLoader.add_constructor(_INT, _whole)
_StrictLoader.add_implicit_resolver(
    _INT, re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")
)
_StrictLoader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    list("-+.0123456789"),
)


def _yaml(text: str) -> Any:
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as e:
        line = e.problem_mark.line + 1 if e.problem_mark is not None else 0
        raise _SyntaxProblem(f"not YAML: {e.problem or e.context}", line) from None
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position) + 1
        raise _SyntaxProblem(f"not YAML: {e.reason}", line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise _SyntaxProblem(f"not YAML: {e}") from None
    if _written_out(value, {}) > _MOST_VALUES:
        raise _SyntaxProblem(f"its aliases stand for more than {_MOST_VALUES:,} values")
    return value


def _written_out(value: Any, counted: dict[int, int]) -> int:
    """Return the number of values in a YAML document if each alias is written out.

    Args:
        counted: the numbers of the lists and dicts that were counted, by their identity.
    """
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in counted:
        counted[id(value)] = 1  # for a value that contains itself
        parts = value.values() if isinstance(value, dict) else value
        counted[id(value)] = 1 + sum(_written_out(part, counted) for part in parts)
    return counted[id(value)]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ValueError(f"'{name}' is given twice")
        out[name] = value
    return out


def _checked(value: Any, where: str) -> dict[str, Any]:
    """Return `value` if it is a dict with only texts as keys, at every level."""
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "a single value")
        raise ConfigError(f"{where}: must be a dict of settings, not {kind}")
    for name, nested in value.items():
        if not isinstance(name, str):
            raise ConfigError(f"{where}: the name {name!r} is not text; put it in quotes")
        for part in _dicts_in(nested):
            _checked(part, f"{where}, {name}")
    return value


def _dicts_in(value: Any) -> Iterator[dict[Any, Any]]:
    """Yield `value` if it is a dict, or the dicts in it if it is a list."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _dicts_in(part)


def _value(text: str) -> Any:
    for reader in (_literal, _json):
        try:
            return reader(text)
        except _SyntaxProblem:
            continue
    return text


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
