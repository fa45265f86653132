"""Settings of the runs behind rows, and their differences from the settings of a command."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ck_pro.run.fingerprint import hash_of_json
from ck_pro.settings import leaves

UNSET = "unset"
_SHOWN = 20
_VALUE_CHARS = 60
_PROMPTS, _VERSION = ("(prompts)",), ("(ck-pro version)",)


@dataclass(frozen=True)
class Setup:
    """The settings of one run.

    Args:
        key: equal for equal setups.
        settings: values by the path of their names.
        version, prompts: version of ck-pro and hash of the prompts; "" if unknown.
    """

    key: str
    settings: Mapping[tuple[str, ...], Any] = field(compare=False, repr=False)
    version: str = field(default="", compare=False)
    prompts: str = field(default="", compare=False)


_KNOWN: weakref.WeakValueDictionary[str, Setup] = weakref.WeakValueDictionary()
"""Setups in use, by key, so that many rows share one object."""
_RECORDED: weakref.WeakValueDictionary[tuple[str, ...], Setup] = weakref.WeakValueDictionary()
"""Setups in use, by the hashes that rows record."""


def setup_of(info: Mapping[str, Any]) -> Setup | None:
    """Return the setup that a row's `session.info` records, or None.

    The seed of a try is ignored, because each try has a different one.
    """
    config = info.get("config")
    if not isinstance(config, Mapping) or not config:
        return None
    limits = info.get("limits")
    recorded = tuple(str(info.get(k)) for k in ("settings_hash", "prompts_hash", "version"))
    if not info.get("settings_hash"):
        return _setup(info, config, limits)
    key = (*recorded, str(limits), str(info.get("try")))
    found = _RECORDED.get(key)
    if found is None:
        found = _RECORDED[key] = _setup(info, config, limits)
    return found


def _setup(info: Mapping[str, Any], config: Mapping[str, Any], limits: Any) -> Setup:
    settings = leaves({**config, "limits": limits} if limits else config)
    if isinstance(info.get("try"), Mapping) and info["try"].get("seed") is not None:
        settings = {k: v for k, v in settings.items() if k[-2:] != ("call_kwargs", "seed")}
    settings = {k: v for k, v in settings.items() if v not in ({}, None)}
    version, prompts = str(info.get("version") or ""), str(info.get("prompts_hash") or "")
    flat = {".".join(k): v for k, v in settings.items()}
    key = hash_of_json([flat, version, prompts])
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = Setup(key, settings, version, prompts)
    return found


def differences(before: Setup, now: Setup) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield (path of a setting, value before, value now) for each difference.

    If the versions of ck-pro differ, a setting that only one of them has is ignored.
    """
    same_version = before.version == now.version
    for name in dict.fromkeys((*before.settings, *now.settings)):
        old, new = (s.settings.get(name, UNSET) for s in (before, now))
        if old != new and (same_version or UNSET not in (old, new)):
            yield name, _format_value(old), _format_value(new)
    if before.prompts and now.prompts and before.prompts != now.prompts:
        yield _PROMPTS, before.prompts, now.prompts
    if before.version and not same_version:
        yield _VERSION, before.version, now.version or UNSET


def warnings_about(earlier: Iterable[Setup | None], now: Setup | None) -> list[str]:
    """Return lines that list the differences between the rows' setups and the command's.

    Args:
        earlier: setup of each row.
        now: setup of the command.
    """
    counted = Counter(s for s in earlier if s is not None and s != now)
    if now is None:
        return []
    found: dict[tuple[tuple[str, ...], str, str], int] = Counter()
    rows = 0
    for setup, number in counted.items():
        changed = list(differences(setup, now))
        rows += number * bool(changed)
        for change in changed:
            found[change] += number
    if not found:
        return []
    lines = [f"{rows} rows of the output have other settings than this command:"]
    for (name, old, new), number in list(found.items())[:_SHOWN]:
        lines.append(f"  {'.'.join(name)}: {old} in {number} rows, now {new}")
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    return [
        *lines,
        "  name another --output to separate them, or run all tasks again with --rerun all",
    ]


def _format_value(value: Any) -> str:
    text = value if value is UNSET else repr(value)
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 3] + "..."
