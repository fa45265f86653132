"""`KwargsInitializable`: validated configuration by keyword arguments, declared on the class.

A configurable class declares its settings as annotated class attributes with defaults. A subclass
may override a default, with or without the annotation. Keyword arguments override both:

>>> class Model(KwargsInitializable):
...     call_target: str = "manual"
...     retries: int = 3
>>> class Agent(KwargsInitializable):
...     model: Model = Model(retries=9)
...     max_steps: int = 10
>>> agent = Agent(max_steps="5", model={"call_target": "gpt:x"})
>>> agent.max_steps, agent.model.call_target, agent.model.retries
(5, 'gpt:x', 9)

It is a plain class with one cached pydantic `TypeAdapter` per setting, because a `BaseModel` would
forbid attributes before `super().__init__`, overrides without annotation, and settings named
`model` or `copy`. A partial dict would also discard the defaults that the parent class set.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import re
import sys
import types
import typing
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, PydanticUserError, SecretStr, TypeAdapter, ValidationError

from ck_pro.exceptions import ConfigError

_T = TypeVar("_T", bound="KwargsInitializable")
_MISSING = object()
_SECRET_KEY = re.compile(r"(key|token|secret|password|authorization|cookie)$", re.IGNORECASE)
_USER_INFO = re.compile(r"(\w://)[^/\s@]+@")
_SECRET_QUERY = re.compile(
    r"([?&][\w.-]*(?:key|token|secret|password|signature|sig)=)[^&#\s]+", re.IGNORECASE
)
_ATOMIC = frozenset({str, int, float, bool, bytes, type(None), types.FunctionType})
_ADAPTER_CONFIG = ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True)


class KwargsInitializable:
    """Base of all configurable objects. Has settings only, never the state of a run.

    Args:
        kwargs: settings by name. For a nested configurable object, or a dict setting, a dict
            merges into the default, and an object replaces it. A string for a nested object sets
            the setting that its class names in `string_setting`. Attributes that a subclass sets
            before `super().__init__(**kwargs)` are also settings, with that default.

    Raises:
        ConfigError: an unknown name (with the nearest known one), or a value of a wrong type.
    """

    string_setting: ClassVar[str | None] = None
    """The setting that a string sets when it is given for an object of this class."""

    former_names: ClassVar[Mapping[str, str]] = {}
    """Old names of settings: name -> dotted name of the setting. With a "?" suffix, 0 and the empty
    text mean None. For a removed setting: name -> "!" and the reason."""

    _local_names: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # String annotations of a class in a function may name local variables, which only the
        # calling frame knows.
        around = sys._getframe(1).f_locals
        text = " ".join(a for a in inspect.get_annotations(cls).values() if isinstance(a, str))
        used = set(re.findall(r"\w+", text))
        cls._local_names = {n: around[n] for n in used if n in around}

    def __init__(self, **kwargs: Any) -> None:
        preset = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        declared = setting_types(type(self))
        self._preset_names = tuple(n for n in preset if n not in declared)
        defaults = _class_defaults(type(self))
        self.__dict__.update({**defaults, **preset})
        for name in preset.keys() & declared.keys():
            setattr(self, name, self._converted(name, preset[name], defaults.get(name)))
        known = self.setting_names()
        for name, value in self._current_names(kwargs, known):
            if name not in known:
                raise SettingError(type(self).__name__, "", self._unknown(name, known))
            setattr(self, name, self._converted(name, value))
        for name in known:
            if not hasattr(self, name):
                raise ConfigError(f"{type(self).__name__}: the setting '{name}' must be given")

    def setting_names(self) -> tuple[str, ...]:
        """Return the names that keyword arguments may set, in order of declaration."""
        return (*setting_types(type(self)), *self._preset_names)

    def used_settings(self) -> dict[str, Any]:
        """Return the settings by name, without those that a run does not use."""
        return {name: getattr(self, name) for name in self.setting_names()}

    def _current_names(
        self, given: Mapping[str, Any], known: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the given settings under their current names."""
        for name, value in given.items():
            bases = (b.__dict__.get("former_names", {}) for b in type(self).__mro__)
            former = next((names[name] for names in bases if name in names), None)
            if former is None or name in known:
                yield name, value
                continue
            if former.startswith("!"):
                raise SettingError(type(self).__name__, "", f"'{name}': {former[1:].strip()}")
            if former.endswith("?") and not value:
                value = None
            elif value is None:
                continue  # not set
            first, *rest = former.rstrip("?").split(".")
            for part in reversed(rest):
                value = {part: value}
            yield first, value

    def _unknown(self, name: str, known: tuple[str, ...]) -> str:
        default = inspect.getattr_static(type(self), name, None)
        if name.startswith("_") or default is None or callable(default):
            return unknown_name(name, known)
        kind = type(default).__name__
        return f"'{name}' is not a setting, as it has no type: write `{name}: {kind} = ...`"

    def updated(self: _T, updates: Mapping[str, Any]) -> _T:
        """Return a new object of the same class with `updates` merged into its settings."""
        settings = {n: getattr(self, n) for n in self.setting_names()}
        known = tuple(settings)
        for name, value in self._current_names(updates, known):
            if name not in settings:
                raise SettingError(type(self).__name__, "", unknown_name(name, known))
            settings[name] = self._converted(name, value, settings[name])
        return type(self)(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data, without secrets, functions and runtime objects."""
        types_ = setting_types(type(self))
        out: dict[str, Any] = {}
        for name in self.setting_names():
            value = getattr(self, name)
            if _is_secret(types_.get(name)) or (
                isinstance(value, str) and _SECRET_KEY.search(name)
            ):
                continue
            value = _plain(value)
            if value is not _MISSING:
                out[name] = value
        return out

    def _converted(self, name: str, value: Any, current: Any = _MISSING) -> Any:
        """Convert `value` for the setting `name`, and merge it into the current value."""
        annotation = setting_types(type(self)).get(name, Any)
        current = getattr(self, name, None) if current is _MISSING else current
        try:
            return merge(annotation, current, value)
        except ConfigError as e:
            raise _located(e, type(self).__name__, name) from None


class SettingError(ConfigError):
    """An invalid name or value, with its path: `CKAgent.web_agent.model: ...`.

    Args:
        cls: name of the outermost class.
        path: names from there to the setting, each after a dot.
        problem: what is wrong.
    """

    def __init__(self, cls: str, path: str, problem: str):
        super().__init__(f"{cls}{path}: {problem}")
        self.path, self.problem = path, problem


def _located(error: ConfigError, cls: str, name: str) -> SettingError:
    """Extend an error's path by one level."""
    if isinstance(error, SettingError):
        return SettingError(cls, f".{name}{error.path}", error.problem)
    return SettingError(cls, f".{name}", str(error))


def iter_nested(
    part: KwargsInitializable,
    kind: type[_T],
    path: tuple[str, ...] = (),
    *,
    used: bool = False,
) -> list[tuple[tuple[str, ...], _T]]:
    """Return (names that lead to it, object) of every nested setting of a class, at any depth.

    Args:
        part: the object to search.
        kind: the class.
        path: names that lead to `part`.
        used: search only what a run uses, such as the functions that an agent offers.
    """
    found: list[tuple[tuple[str, ...], _T]] = []
    settings = part.used_settings() if used else {n: getattr(part, n) for n in part.setting_names()}
    for name, value in settings.items():
        if isinstance(value, kind):
            found.append(((*path, name), value))
        if isinstance(value, KwargsInitializable):
            found += iter_nested(value, kind, (*path, name), used=used)
    return found


def expand_texts(part: KwargsInitializable, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with each text for a nested object as the setting that it stands for.

    `{"web_env": "http://host"}` becomes `{"web_env": {"server_url": "http://host"}}`, so that
    further settings of that object merge with it.

    Args:
        part: an object that has these settings.
        settings: settings by name.
    """
    expanded: dict[str, Any] = {}
    for name, value in settings.items():
        nested = getattr(part, name, None)
        if isinstance(nested, KwargsInitializable):
            if isinstance(value, str) and nested.string_setting:
                value = {nested.string_setting: value}
            elif isinstance(value, Mapping):
                value = expand_texts(nested, value)
        expanded[name] = value
    return expanded


def merge(annotation: Any, current: Any, value: Any) -> Any:
    """Merge `value` into `current` under a type. All settings use this rule.

    Args:
        annotation: the declared type; `Any` for a setting declared only by assignment.
        current: the value so far (a default).
        value: the new value.

    Raises:
        ConfigError: the value does not match the type.
    """
    nested = _nested_class(annotation)
    if isinstance(current, KwargsInitializable) and not isinstance(value, KwargsInitializable):
        nested = type(current)
    if nested is not None and isinstance(value, str) and nested.string_setting:
        value = {nested.string_setting: value}
    if nested is not None and isinstance(value, Mapping):
        base = current if isinstance(current, KwargsInitializable) else nested()
        return base.updated(value)
    if isinstance(current, dict) and isinstance(value, Mapping):
        value = {**current, **value}
    elif annotation is Any and isinstance(current, dict | list | bool | int | float):
        # `self.delay = 2` declares a number, not an integer
        annotation = int | float if type(current) is int else type(current)
    return _validated(annotation, value)


def unknown_name(name: str, known: tuple[str, ...]) -> str:
    """Describe an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"
    return f"unknown setting '{name}' ({hint})"


def setting_types(cls: type) -> dict[str, Any]:
    """Return name -> declared type of every public annotated attribute, base classes first."""
    return _setting_types(cls)


@cache
def _setting_types(cls: Hashable) -> dict[str, Any]:
    assert isinstance(cls, type)
    out: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, annotation in inspect.get_annotations(base).items():
            if name.startswith("_"):
                continue
            resolved = _resolved(base, name, annotation)
            if resolved is not ClassVar and typing.get_origin(resolved) is not ClassVar:
                out[name] = resolved
    return out


def _resolved(base: type, name: str, annotation: Any) -> Any:
    """Resolve an annotation with the names around the class."""
    names = base.__dict__.get("_local_names", {})
    # one attribute at a time: on the whole class, get_type_hints fails for all
    probe = type("probe", (), {"__annotations__": {name: annotation}})
    space = {**vars(sys.modules[base.__module__]), **names}
    try:
        return typing.get_type_hints(probe, space, space, include_extras=True)[name]
    except NameError as e:
        raise ConfigError(f"{base.__name__}.{name}: cannot resolve its type: {e}") from None


def _class_defaults(cls: type) -> dict[str, Any]:
    """Return copies of the class-level defaults, each subclass's merged over its parent's."""
    types_ = setting_types(cls)
    out: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name in types_:
            if name not in base.__dict__:
                continue
            # use the type declared at that base, since a subclass may narrow it
            annotation = setting_types(base).get(name, types_[name])
            value = _copy_default(base.__dict__[name])
            try:
                out[name] = merge(annotation, out.get(name), value)
            except ConfigError as e:
                raise _located(e, base.__name__, name) from None
    for name, annotation in types_.items():
        nested = _nested_class(annotation)
        if name not in out and nested is not None and annotation is nested:
            out[name] = nested()
    return out


def _copy_default(value: Any, made: dict[int, Any] | None = None) -> Any:
    """Copy a default value deeply.

    Parts that cannot be copied, such as a lock or a connection, stay shared: back ends, approvers.
    For plain data and configurable objects this is several times as fast as `copy.deepcopy`,
    which matters because an agent's class makes many objects.

    Args:
        value: the default.
        made: copies so far, by id of the original.
    """
    kind = type(value)
    if kind in _ATOMIC:
        return value
    made = {} if made is None else made
    if id(value) in made:
        return made[id(value)]
    out: Any
    if kind is list:
        out = made[id(value)] = []
        out += [v if type(v) in _ATOMIC else _copy_default(v, made) for v in value]
    elif kind is dict:
        out = made[id(value)] = {}
        _copy_items(value, out, made)
    elif isinstance(value, KwargsInitializable) and not hasattr(kind, "__deepcopy__"):
        out = made[id(value)] = object.__new__(kind)
        _copy_items(vars(value), vars(out), made)
    elif kind is tuple and _ATOMIC.issuperset(map(type, value)):
        return value
    else:
        return _copied(value, made)
    return out


def _copy_items(given: dict[Any, Any], out: dict[Any, Any], made: dict[int, Any]) -> None:
    """Copy the items of one dict to another; most values of settings need no call."""
    for name, value in given.items():
        out[name] = value if type(value) in _ATOMIC else _copy_default(value, made)


def _copied(value: Any, made: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value)
    except (TypeError, copy.Error):
        if type(value) is tuple:
            return tuple(_copy_default(v, made) for v in value)
        return value


def _nested_class(annotation: Any) -> type[KwargsInitializable] | None:
    """Return the configurable class in `annotation`, also of `X | None` and `Annotated[X, ...]`."""
    try:
        return _cached_nested_class(annotation)
    except TypeError:  # an annotation that cannot be hashed
        return _find_nested_class(annotation)


def _find_nested_class(annotation: Any) -> type[KwargsInitializable] | None:
    if isinstance(annotation, type) and issubclass(annotation, KwargsInitializable):
        return annotation
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        for arg in typing.get_args(annotation):
            found = _nested_class(arg)
            if found is not None:
                return found
    return None


_cached_nested_class = cache(_find_nested_class)


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or SecretStr in typing.get_args(annotation)


def type_adapter(annotation: Any) -> TypeAdapter[Any]:
    """Return the adapter that checks and converts values of a type, as for settings."""
    try:
        return _cached_adapter(annotation)
    except TypeError:  # an annotation that cannot be hashed
        return _new_adapter(annotation)


def _new_adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation, config=_ADAPTER_CONFIG)
    except PydanticUserError:  # a model or dataclass has its own configuration
        return TypeAdapter(annotation)


_cached_adapter = cache(_new_adapter)


def _validated(annotation: Any, value: Any) -> Any:
    if annotation is Any:
        return value
    adapter = type_adapter(annotation)
    try:
        return adapter.validate_python(value)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        at = "".join(f"[{p!r}]" for p in first["loc"] if isinstance(p, str | int))
        shown = "" if _is_secret(annotation) else f" (got {_short(value)})"
        hint = _list_hint(value) if first["type"] == "list_type" and not at else ""
        raise ConfigError(f"{at + ': ' if at else ''}{first['msg']}{shown}{hint}") from None


def _list_hint(value: Any) -> str:
    """Return how to write a text as a list."""
    if not isinstance(value, str):
        return ""
    items = [item.strip(" '\"") for item in value.strip("[]() ").split(",")]
    return f"; write {[item for item in items if item]!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _without_secrets(text: str) -> str:
    """Mask the logins and the keys of URLs."""
    if "@" in text:
        text = _USER_INFO.sub(r"\1***@", text)
    return _SECRET_QUERY.sub(r"\1***", text) if "=" in text else text


def _plain(value: Any) -> Any:
    """`value` as JSON-able data, or `_MISSING` for what is not configuration."""
    if isinstance(value, KwargsInitializable):
        return value.to_dict()
    if isinstance(value, str):
        return _without_secrets(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        named = {str(k): v for k, v in value.items() if not _SECRET_KEY.search(str(k))}
        items = {k: _plain(v) for k, v in named.items()}
        return {k: v for k, v in items.items() if v is not _MISSING}
    if isinstance(value, list | tuple | set | frozenset):
        if any(isinstance(v, KwargsInitializable) for v in value):
            return _MISSING  # objects made by code; a dict could not make them again
        plain = [_plain(v) for v in value]
        return [v for v in plain if v is not _MISSING]
    return _MISSING
