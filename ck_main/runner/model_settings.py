"""Apply settings to every model of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.model import LLM

_OF_SERVICE = ("call_target", "call_kwargs", "price", "api_key_env", "headers")
_NOT_INHERITED = ("backend", "wait")


def settings_of_models(agent: KwargsInitializable, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return agent settings that apply `settings` to its model and to all nested models."""
    return _nested({path: dict(settings) for path, _ in iter_nested(agent, LLM)})


def inherited_settings(agent: KwargsInitializable, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return agent settings that pass the settings of its `model` on to its other models.

    A model gets each setting that it does not set itself. If it sets another `call_target`, it does
    not get the settings that belong to the service, such as `call_kwargs` and `price`.

    Args:
        agent: the main agent.
        given: the settings that it was built from.
    """
    main = getattr(agent, "model", None)
    if not isinstance(main, LLM):
        return {}
    usual = LLM()
    names = [n for n in usual.setting_names() if n not in _NOT_INHERITED]
    changed = {n: getattr(main, n) for n in names if getattr(main, n) != getattr(usual, n)}
    found = {}
    for path, model in iter_nested(agent, LLM):
        own = _own_settings(model, usual, names, _at(given, path))
        inherited = _inherited(changed, own, main.call_target) if path != ("model",) else {}
        if inherited:  # a model given as a text is its call_target
            found[path] = {**inherited, "call_target": own.get("call_target", main.call_target)}
    return _nested(found)


def _inherited(
    changed: Mapping[str, Any], own: Mapping[str, Any], call_target: str
) -> dict[str, Any]:
    """Return the settings of the main model that a model with its own settings gets."""
    same_service = own.get("call_target", call_target) == call_target
    found: dict[str, Any] = {}
    for name, value in changed.items():
        if name in _OF_SERVICE and not same_service:
            continue
        if isinstance(value, dict):
            found[name] = {**value, **own.get(name, {})}
        elif name not in own:
            found[name] = value
    return found


def _own_settings(model: LLM, usual: LLM, names: Sequence[str], given: Any) -> dict[str, Any]:
    """Return those of the named settings that a model sets itself, as given or in its class."""
    given = {"call_target": given} if isinstance(given, str) else given or {}
    return {
        name: getattr(model, name)
        for name in names
        if name in given or getattr(model, name, None) != getattr(usual, name)
    }


def _at(settings: Any, path: tuple[str, ...]) -> Any:
    """Return the setting at a path of names; None if it is not given."""
    for name in path:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _nested(settings: Mapping[tuple[str, ...], dict[str, Any]]) -> dict[str, Any]:
    """Return settings by path as nested dicts."""
    out: dict[str, Any] = {}
    for path, value in settings.items():
        at = out
        for name in path:
            at = at.setdefault(name, {})
        at.update(value)
    return out
