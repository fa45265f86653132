"""The tree of sessions in a row: every step of every agent, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ck_pro.trajectory.reading.attempts import agent_of, nested_sessions, sid_of
from ck_pro.trajectory.reading.big_json import is_list


@dataclass(frozen=True)
class Place:
    """A session in the tree.

    Args:
        sid: its id; see `sid_of`.
        parent: id of the session that called it; "" for the main session.
        called_at: index of the step that called it; None for the main session.
        path: names of the agents from the main agent down.
        session: the session.
    """

    sid: str
    parent: str
    called_at: int | None
    path: tuple[str, ...]
    session: Mapping[str, Any]

    @property
    def depth(self) -> int:
        """Number of sessions above it."""
        return len(self.path) - 1


@dataclass(frozen=True)
class Visit:
    """A step of a session.

    Args:
        place: its session.
        index: its index.
        step: the step.
        nested: the sessions of the sub-agents that it called; filled when the step has ended.
        ended: False before the steps of these sessions, True after them.
    """

    place: Place
    index: int
    step: Mapping[str, Any]
    nested: Sequence[Mapping[str, Any]] = field(default=())
    ended: bool = False


def visits(session: Mapping[str, Any]) -> Iterator[Visit]:
    """Yield every step of a session and of its sub-agents twice: at its start and at its end.

    Copies of a session are visited once.
    """
    yield from _session(session, "", None, (), set())


def _session(
    session: Mapping[str, Any],
    parent: str,
    called_at: int | None,
    above: tuple[str, ...],
    known: set[str],
) -> Iterator[Visit]:
    sid = sid_of(session)
    if sid in known:
        return
    known.add(sid)
    place = Place(sid, parent, called_at, (*above, agent_of(session, len(above))), session)
    steps = session.get("steps")
    for index, step in enumerate(steps if is_list(steps) else ()):
        if not isinstance(step, Mapping):
            continue
        yield Visit(place, index, step)
        action = step.get("action")
        nested = list(nested_sessions(action)) if isinstance(action, Mapping) else []
        for sub in nested:
            yield from _session(sub, sid, index, place.path, known)
        yield Visit(place, index, step, nested, ended=True)
