"""Base classes of all events, and their conversion from dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ck_pro.exceptions import InputError

_E = TypeVar("_E", bound="Event")


class Event(BaseModel):
    """Base of actions and observations: immutable; `kind` is the name of the type.

    `version` counts changes of a type's fields. `to_dict` writes it if it is above 1, and a type
    with a higher version overrides `upgraded` to read the data of older ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1
    registry: ClassVar[dict[str, type[Event]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if cls.kind:
            cls.registry[cls.kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON data: its `kind`, its `version` if above 1, and its fields."""
        version = {"version": self.version} if self.version > 1 else {}
        return {"kind": self.kind, **version, **self.model_dump(mode="json")}

    @classmethod
    def upgraded(cls, fields: dict[str, Any], version: int) -> dict[str, Any]:
        """Return the fields of an older version of this type as those of the current one."""
        return fields


class Action(Event):
    """A decision of an agent."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Action:
        """Read an action written by `to_dict`; see `action_from_dict`."""
        return action_from_dict(data)


class Observation(Event):
    """A result of an action. `text` is what the model sees."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    text: str = ""

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Observation:
        """Read an observation written by `to_dict`; see `observation_from_dict`."""
        return observation_from_dict(data)

    def __str__(self) -> str:
        return self.text


def action_from_dict(data: dict[str, Any]) -> Action:
    """Read an action written by `Action.to_dict`.

    Raises:
        InputError: an unknown kind, or invalid fields for it.
    """
    return _from_dict(Action, data)


def observation_from_dict(data: dict[str, Any]) -> Observation:
    """Read an observation written by `Observation.to_dict`.

    Raises:
        InputError: an unknown kind, or invalid fields for it.
    """
    return _from_dict(Observation, data)


def _from_dict(base: type[_E], data: dict[str, Any]) -> _E:
    what = base.__name__.lower()
    if not isinstance(data, Mapping):
        raise InputError(f"{what}: {data!r:.80} is not a dict")
    cls = base.registry.get(str(data.get("kind", "")))
    if cls is None:
        known = ", ".join(sorted(base.registry))
        raise InputError(f"{what}: unknown kind {data.get('kind')!r}; known are: {known}")
    try:
        version = int(data.get("version", 1))
        if version > cls.version:
            raise InputError(
                f"{what} '{cls.kind}' has version {version}; this version of ck-pro reads up to "
                f"{cls.version}"
            )
        fields = {k: v for k, v in data.items() if k not in ("kind", "version")}
        event = cls.model_validate(
            fields if version == cls.version else cls.upgraded(fields, version)
        )
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(str(p) for p in first["loc"])
        raise InputError(f"{what} '{cls.kind}', field '{field}': {first['msg']}") from None
    assert isinstance(event, base)
    return event
