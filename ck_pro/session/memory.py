"""`Memory`: the entries of earlier runs, for the prompts of the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from typing_extensions import TypedDict

from ck_pro.exceptions import InputError
from ck_pro.session.observed import observation_text
from ck_pro.session.session import AgentSession

EntryType = Literal["user", "assistant", "environment"]
_SHOWN_NAMES = {"user": "User", "assistant": "Agent", "environment": "Result"}


class MemoryEntry(TypedDict):
    """A text of the user, of the agent, or from its environment."""

    type: EntryType
    content: str


class Memory:
    """The entries of earlier runs, in order: `agent.run(task, memory=...)` shows them in prompts.

    Args:
        entries: dicts with `type` ("user", "assistant" or "environment") and `content`.

    Raises:
        InputError: an entry has another form.
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]] = ()):
        self._entries: list[MemoryEntry] = []
        for entry in entries:
            self.add_memory(entry)

    @classmethod
    def of(cls, *sources: AgentSession | Iterable[Mapping[str, Any]] | Mapping[str, Any]) -> Memory:
        """Return the memory of sessions, memories and entries, in this order.

        A session contributes its own memory, its task, its steps and its answer.
        """
        memory = cls()
        for source in sources:
            if isinstance(source, Mapping):
                memory.add_memory(source)
                continue
            for entry in _entries_of(source) if isinstance(source, AgentSession) else source:
                memory.add_memory(entry)
        return memory

    def add_memory(self, entry: Mapping[str, Any]) -> None:
        """Add an entry."""
        if not isinstance(entry, Mapping) or entry.get("type") not in get_args(EntryType):
            raise InputError(
                f"memory: {str(entry)[:100]!r} is not an entry; give "
                '{"type": "user", "content": "..."}, or the type "assistant" or "environment"'
            )
        self._entries.append({"type": entry["type"], "content": str(entry.get("content", ""))})

    def get_memories(self, limit: int | None = None) -> list[MemoryEntry]:
        """Return the entries in order; with `limit`, only the latest ones."""
        return list(self._entries if limit is None else self._entries[-limit:] if limit else [])

    def latest(self, chars: int) -> list[MemoryEntry]:
        """Return the latest entries whose contents have at most `chars` characters in total."""
        kept: list[MemoryEntry] = []
        for entry in reversed(self._entries):
            chars -= len(entry["content"])
            if chars < 0:
                break
            kept.append(entry)
        return kept[::-1]

    def __iter__(self) -> Iterator[MemoryEntry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def text(self, chars: int) -> str:
        """Return the latest entries as one text of about `chars` characters; the rest is omitted.

        Args:
            chars: limit of the text. One entry gets at most a quarter of it.
        """
        lines: list[str] = []
        left = chars
        for entry in reversed(self._entries):
            line = f"{_SHOWN_NAMES[entry['type']]}: {_cut(entry['content'], chars // 4)}"
            if len(line) > left:
                lines.append("(Earlier entries omitted.)")
                break
            left -= len(line)
            lines.append(line)
        return "\n".join(reversed(lines))


def _cut(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n[...]\n{text[-half:]}"


def _entries_of(session: AgentSession) -> Iterator[MemoryEntry]:
    """Yield the entries of a session."""
    yield from Memory(session.info.get("memory", ()))
    yield {"type": "user", "content": session.task}
    messages = {turn["step"]: turn["text"] for turn in session.turns}
    said = ""
    for n, step in enumerate(session.steps):
        if n in messages:
            yield {"type": "user", "content": messages[n]}
        action = step["action"]
        said = "\n".join(text for text in (action["thought"], action["code"]) if text)
        if said:
            yield {"type": "assistant", "content": said}
        seen = observation_text(action["observation"])
        if seen and seen != said:  # else the message itself is the answer
            yield {"type": "environment", "content": seen}
    answer = session.final_results["output"] if session.final_results else ""
    if answer and answer != said:
        yield {"type": "assistant", "content": f"Answer: {answer}"}
