"""`Document`: what the reader of each kind of file offers to the functions of this package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .problem import ToolError

Row = list[str]


@dataclass(frozen=True)
class Reading:
    """How to treat what a person would not see at once.

    Attributes:
        changes: tracked changes: "mark" shows both states, "accept" and "reject" one of them.
        authors: with "accept" or "reject", only the changes of these authors; the rest is marked.
        hidden: hidden rows, columns, sheets, slides and text: "mark" or "omit".
    """

    changes: Literal["mark", "accept", "reject"] = "mark"
    authors: tuple[str, ...] | None = None
    hidden: Literal["mark", "omit"] = "mark"

    def change_state(self, author: str) -> Literal["mark", "accept", "reject"]:
        """Return how to treat a tracked change of an author."""
        if self.authors is not None and author not in self.authors:
            return "mark"
        return self.changes


@dataclass(frozen=True)
class Part:
    """A page, sheet, slide, table or member of a file.

    Attributes:
        name: to give as `part`, such as "3" or "Sheet1".
        title: for people, such as "page 3" or "sheet 'Sheet1' (hidden)".
        is_file: whether it is a separate file, which `Document.member` unpacks.
    """

    name: str
    title: str
    is_file: bool = False


@dataclass(frozen=True)
class Facts:
    """The description of a file.

    Attributes:
        facts: such as "12 pages".
        hidden: what a person would not see at once, such as "row 7 of 'Sheet1' is hidden".
    """

    facts: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


class Document:
    """An open file. The class `Reader` of each module in `formats` is a subclass.

    Args:
        path: of the file.
        reading: how to treat changes and hidden parts.

    Attributes:
        shown: its path for calls: of a file inside a file, "all.zip/a.png".
        unread: what `blocks` did not read, and why, in one line each.
    """

    def __init__(self, path: Path, reading: Reading):
        self.path = path
        self.shown = str(path)
        self.unread: list[str] = []
        self.reading = reading

    def facts(self) -> Facts:
        """Describe the file: size of its parts, and everything hidden."""
        return Facts()

    def parts(self) -> Sequence[Part]:
        """Return the parts in reading order, at least one."""
        raise NotImplementedError

    def blocks(self, part: str) -> Iterator[str]:
        """Yield the text of a part as paragraphs, lines or rows, each with its line end.

        Args:
            part: name of a part that is not a separate file.
        """
        raise NotImplementedError

    def plain_blocks(self, part: str) -> Iterator[str]:
        """Yield the text of a part for a search, without checks that take long."""
        return self.blocks(part)

    def tables(self, part: str) -> list[list[Row]]:
        """Return the tables of a part, each as rows of cells."""
        raise ToolError("this kind of file has no tables")

    def member(self, part: str) -> Path | None:
        """Unpack a part that is a separate file, and return its path."""
        return None
