"""Lists that read their entries from the disk on access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

_Key = TypeVar("_Key")


class LazyList(Sequence[Any]):
    """A list that makes each entry on every access and stores none.

    Args:
        keys: one key per entry, such as its position or hash.
        entry: makes an entry from its key.
    """

    def __init__(self, keys: Sequence[_Key], entry: Callable[[_Key], Any]):
        self.keys, self.entry = keys, entry

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self.entry(key) for key in self.keys[index]]
        return self.entry(self.keys[index])
