"""Limit the long texts in a response; the page asks for the rest in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_CHARS = 200_000
"""Characters of one text in a response, and of one further piece."""
MAX_TOTAL = 8_000_000
"""Characters of all texts in a response; later texts are shortened to `_LEAST`."""
_LEAST = 2_000
_MAX_DEPTH = 60
_IMAGES = ("data:image/",)


def shortened(value: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Shorten the long texts in JSON data.

    Returns:
        The data, and for each shortened text its path ("page.text", "messages.3.content"), the
        number of characters `shown`, and `chars` in all. Images as data URLs stay whole.
    """
    more: list[dict[str, Any]] = []
    return _Shortener(more).value(value, "", 0), more


class _Shortener:
    """Shortens texts, and counts their characters."""

    def __init__(self, more: list[dict[str, Any]]) -> None:
        self._more, self._left = more, MAX_TOTAL

    def value(self, value: Any, path: str, depth: int) -> Any:
        """Return a value with its texts shortened."""
        if isinstance(value, str):
            return self._text(value, path)
        if depth > _MAX_DEPTH:
            return None if isinstance(value, Mapping | list | tuple) else value
        if isinstance(value, Mapping):
            return {k: self.value(v, f"{path}{k}.", depth + 1) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(v, f"{path}{n}.", depth + 1) for n, v in enumerate(value)]
        return value

    def _text(self, text: str, path: str) -> str:
        limit = MAX_CHARS if self._left > 0 else _LEAST
        if len(text) <= limit or text.startswith(_IMAGES):
            self._left -= len(text)
            return text
        self._left -= limit
        self._more.append({"path": path.removesuffix("."), "shown": limit, "chars": len(text)})
        return text[:limit]


def text_at(value: Any, path: str, start: int) -> dict[str, Any] | None:
    """Return a piece of the text at a path in JSON data; None if there is no text."""
    names = path.split(".")
    while names:
        if isinstance(value, Mapping):
            # a name may contain dots
            name = next((n for n in _prefixes(names) if n in value), None)
            if name is None:
                return None
            value, names = value[name], names[name.count(".") + 1 :]
        elif isinstance(value, list | tuple) and names[0].isdecimal() and len(names[0]) < 10:
            number = int(names.pop(0))
            value = value[number] if number < len(value) else None
        else:
            return None
    if not isinstance(value, str):
        return None
    start = max(0, start)
    return {"text": value[start : start + MAX_CHARS], "from": start, "chars": len(value)}


def _prefixes(names: list[str]) -> list[str]:
    return [".".join(names[:n]) for n in range(1, len(names) + 1)]
