"""SQLite databases: each table is a part."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence

from ..document import Document, Facts, Part, Row
from ..problem import ToolError

_MAX_ROWS = 200_000
_MAX_CELL = 2000


class Reader(Document):
    """A database, opened read-only without its extensions."""

    def facts(self) -> Facts:
        with self._opened() as db:
            names = [str(name) for (name,) in db.execute(_OF_KIND, ("table",))]
            views = [str(name) for (name,) in db.execute(_OF_KIND, ("view",))]
            rows = [(name, _count(db, name)) for name in names]
            triggers = [str(name) for (name,) in db.execute(_OF_KIND, ("trigger",))]
        tables = ", ".join(f"{_on_line(name)} ({count:,} rows)" for name, count in rows)
        facts = [f"{len(names)} tables: {tables}"]
        if views:
            facts.append(f"views: {', '.join(map(_on_line, views))}")
        return Facts(facts, [f"trigger {name!r}" for name in triggers])

    def parts(self) -> Sequence[Part]:
        with self._opened() as db:
            names = [str(n) for kind in ("table", "view") for (n,) in db.execute(_OF_KIND, (kind,))]
        return [Part(name, f"table {name!r}") for name in names] or [Part("tables", "no tables")]

    def blocks(self, part: str) -> Iterator[str]:
        with self._opened() as db:
            for (definition,) in db.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", (part,)
            ):
                yield f"{definition}\n"
            try:
                cursor = db.execute(f"SELECT * FROM {_quoted(part)}")
                yield "\t".join(column[0] for column in cursor.description) + "\n"
                for row in cursor:
                    yield "\t".join(map(_text, row)) + "\n"
            except sqlite3.Error as error:  # such as a view of a table that was removed
                yield f"[{part!r} cannot be read: {error}]\n"

    def tables(self, part: str) -> list[list[Row]]:
        with self._opened() as db:
            cursor = db.execute(f"SELECT * FROM {_quoted(part)}")
            rows = [[column[0] for column in cursor.description]]
            for row in cursor:
                rows.append(["" if cell is None else _text(cell, len(str(cell))) for cell in row])
                if len(rows) > _MAX_ROWS:
                    raise ToolError(f"table {part!r} has more than {_MAX_ROWS:,} rows; use sqlite3")
        return [rows]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            yield db
        except sqlite3.Error as error:
            raise ToolError(f"the database is damaged: {error}") from None
        finally:
            db.close()


_OF_KIND = (
    "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name"
)


def _on_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _count(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0])


def _text(cell: object, limit: int = _MAX_CELL) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        return f"({len(cell):,} bytes)"
    text = str(cell)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"
