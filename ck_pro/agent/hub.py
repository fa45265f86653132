"""The agent hub: agents by name, registered here or by installed packages."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TypeVar, overload

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.exceptions import ConfigError

GROUP = "ck_pro.agents"
"""The group of entry points: NAME = "module:Class"."""
_Agent = TypeVar("_Agent", bound=MultiStepAgent)
_registered: dict[str, type[MultiStepAgent]] = {}


@dataclass(frozen=True)
class AgentEntry:
    """An agent of the hub.

    Attributes:
        name: its name.
        target: "module:Class".
        source: the package that provides it; "" for one registered in this process.
    """

    name: str
    target: str
    source: str = ""


@overload
def register_agent(name: str, kind: type[_Agent]) -> type[_Agent]: ...


@overload
def register_agent(name: str, kind: None = None) -> Callable[[type[_Agent]], type[_Agent]]: ...


def register_agent(
    name: str, kind: type[_Agent] | None = None
) -> type[_Agent] | Callable[[type[_Agent]], type[_Agent]]:
    """Register a class of agents under a name; without `kind`, as a decorator.

    Args:
        name: the name for `--agent NAME`.
        kind: a subclass of `MultiStepAgent` that can be made from settings alone.

    Raises:
        ConfigError: another class has this name, or `kind` is not a class of agents.
    """
    if kind is None:
        return lambda decorated: register_agent(name, decorated)
    _checked(kind, f"register_agent({name!r})")
    if _registered.setdefault(name, kind) is not kind:
        raise ConfigError(f"two agents are named {name!r}")
    return kind


def list_agents(builtin: Mapping[str, str] | None = None) -> list[AgentEntry]:
    """Return the known agents, sorted by name.

    Args:
        builtin: agents of the caller, as name -> "module:Class". They take precedence, then those
            registered in this process, then those of installed packages.
    """
    entries: dict[str, AgentEntry] = {}
    for point in entry_points(group=GROUP):
        source = point.dist.name if point.dist is not None else "an installed package"
        entries[point.name] = AgentEntry(point.name, point.value, source)
    for name, kind in _registered.items():
        entries[name] = AgentEntry(name, f"{kind.__module__}:{kind.__qualname__}")
    for name, target in (builtin or {}).items():
        entries[name] = AgentEntry(name, target, "ck-pro")
    return [entries[name] for name in sorted(entries)]


def agent_class(name: str, builtin: Mapping[str, str] | None = None) -> type[MultiStepAgent]:
    """Return the class of an agent.

    Args:
        name: a name of the hub, or "module:Class".
        builtin: as for `list_agents`.

    Raises:
        ConfigError: the name is unknown, or does not lead to a class of agents.
    """
    registered = _registered.get(name)
    if registered is not None and name not in (builtin or {}):
        return registered
    known = {entry.name: entry.target for entry in list_agents(builtin)}
    target = known.get(name, name)
    if ":" not in target:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"
        raise ConfigError(f"no agent {name!r}; {hint} A class is given as MODULE:CLASS")
    return _loaded(target)


def summary_of(entry: AgentEntry) -> str:
    """Return the first line of an agent's docstring, or why the agent cannot be loaded."""
    try:
        doc = inspect.getdoc(_loaded(entry.target)) or ""
    except ConfigError as e:
        return f"not usable: {e}"
    return doc.partition("\n")[0]


def _loaded(target: str) -> type[MultiStepAgent]:
    module, _, path = target.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as e:  # noqa: BLE001 - another package's module may raise anything
        raise ConfigError(f"agent {target}: {type(e).__name__}: {e}") from None
    return _checked(found, f"agent {target}")


def _checked(kind: object, what: str) -> type[MultiStepAgent]:
    if not (isinstance(kind, type) and issubclass(kind, MultiStepAgent)):
        raise ConfigError(f"{what}: not a subclass of MultiStepAgent")
    return kind
