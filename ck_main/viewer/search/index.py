"""The database of one source: the table's lines, and the texts of its runs for the search."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_main.viewer.search.texts import Text, pieces

VERSION = 1
"""Changes with the tables; a database of another version is made again."""
_UNUSED_SECONDS = 30 * 86400.0
_SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE run(
    id INTEGER PRIMARY KEY, key TEXT UNIQUE, stamp TEXT, summary TEXT, done TEXT);
CREATE TABLE place(
    id INTEGER PRIMARY KEY, run INTEGER, sid TEXT, step INTEGER, what TEXT);
CREATE INDEX place_of_run ON place(run);
CREATE TABLE seen(hash BLOB PRIMARY KEY, run INTEGER) WITHOUT ROWID;
CREATE INDEX seen_of_run ON seen(run);
CREATE VIRTUAL TABLE body USING fts5(text, tokenize = 'unicode61 remove_diacritics 2');
"""
_FIND = """
SELECT run.key, place.sid, place.step, place.what,
    snippet(body, 0, char(2), char(3), '…', 24), bm25(body) AS score
FROM body JOIN place ON place.id = body.rowid JOIN run ON run.id = place.run
WHERE body MATCH ? AND (? = '' OR run.key = ?) ORDER BY score LIMIT ?
"""
START, END = "\x02", "\x03"
"""Characters around a match in a snippet."""


@dataclass(frozen=True)
class KnownRun:
    """What the database has of a run: its line of the table, and the steps by session."""

    id: int
    stamp: str
    summary: Mapping[str, Any]
    done: Mapping[str, int]


@dataclass(frozen=True)
class Hit:
    """A text that matches a search; the snippet has `START` and `END` around each match."""

    key: str
    sid: str
    step: int
    where: str
    snippet: str
    score: float


def cache_folder() -> Path:
    """Return the folder of the databases, in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "ck-pro" / "viewer"


class Index:
    """The database of one source.

    If another viewer fills the same database, or the cache folder cannot be written, it is in a
    temporary file instead.

    Args:
        source: absolute path of the source.
        folder: of the databases.

    Attributes:
        failure: why there is no search; "" if there is one.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self.failure = ""
        self._lock = threading.Lock()
        self._held: int | None = None
        self._temporary = False
        name = hashlib.sha256(os.fsencode(source)).hexdigest()[:24]
        self._path = self._reserve(folder, f"{name}.sqlite")
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._open()
        except sqlite3.DatabaseError as e:
            self.failure = f"the search index cannot be written: {e}"

    def _reserve(self, folder: Path, name: str) -> Path:
        """Return the path of the database; lock it against other viewers."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_unused(folder)
            self._held = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(folder / f"{name}.lock")
        except OSError:
            self._temporary = True
            handle, path = tempfile.mkstemp(prefix="ck-viewer-", suffix=".sqlite")
            os.close(handle)
            return Path(path)
        return folder / name

    def _open(self) -> sqlite3.Connection:
        """Open the database; make it again if it is damaged or of another version."""
        for attempt in range(2):
            connection = sqlite3.connect(self._path, check_same_thread=False)
            try:
                self._path.chmod(0o600)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = OFF")
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == VERSION:
                    return connection
                if (
                    version == 0
                    and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                ):
                    connection.executescript(_SCHEMA)
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                    return connection
            except sqlite3.OperationalError:
                connection.close()
                raise
            except sqlite3.DatabaseError:
                if attempt:
                    raise
            connection.close()
            self._remove()
        raise sqlite3.DatabaseError("the database cannot be made")

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._path}{suffix}").unlink()

    def close(self) -> None:
        """Close the database; remove it if it is temporary."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._held is not None:
                os.close(self._held)
                self._held = None
            if self._temporary:
                self._remove()

    # --- runs --------------------------------------------------------------------------------

    def known(self) -> dict[str, KnownRun]:
        """Return the runs in the database by key."""
        found: dict[str, KnownRun] = {}
        with self._lock:
            if self._connection is None:
                return {}
            rows = self._connection.execute("SELECT key, id, stamp, summary, done FROM run")
            for key, number, stamp, summary, done in rows.fetchall():
                with suppress(ValueError):
                    found[key] = KnownRun(number, stamp, json.loads(summary), json.loads(done))
        return found

    def note(self, name: str) -> Any:
        """Return JSON data that was stored under a name; None if there is none."""
        with self._lock:
            if self._connection is None:
                return None
            query = "SELECT value FROM meta WHERE name = ?"
            row = self._connection.execute(query, (name,)).fetchone()
        try:
            return json.loads(row[0]) if row else None
        except ValueError:
            return None

    @contextmanager
    def writing(self) -> Iterator[IndexWriter]:
        """Write runs in one transaction; an error of the database ends the search."""
        with self._lock:
            if self._connection is None:
                yield IndexWriter(None)
                return
            try:
                with self._connection:
                    yield IndexWriter(self._connection)
            except sqlite3.DatabaseError as e:
                self.failure = f"the search index cannot be written: {e}"

    def find(self, expression: str, key: str, limit: int) -> list[Hit]:
        """Return the best matches of an expression.

        Args:
            expression: see `queries.match_expression`.
            key: only in this run; "" for all.
            limit: number of matches.
        """
        if self._connection is None:
            return []
        # a connection for each search: it does not wait for the writer
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            try:
                rows = connection.execute(_FIND, (expression, key, key, limit)).fetchall()
            except sqlite3.DatabaseError as e:
                self.failure = f"the search failed: {e}"
                return []
        return [Hit(key, json.loads(sid), *rest) for key, sid, *rest in rows]


class IndexWriter:
    """Writes runs and their texts within a transaction.

    Args:
        connection: of the database; None writes nothing.
    """

    def __init__(self, connection: sqlite3.Connection | None) -> None:
        self._connection = connection

    def forget(self, run: KnownRun) -> None:
        """Remove the texts of a run."""
        if self._connection is None:
            return
        places = "SELECT id FROM place WHERE run = ?"
        self._connection.execute(f"DELETE FROM body WHERE rowid IN ({places})", (run.id,))
        self._connection.execute("DELETE FROM place WHERE run = ?", (run.id,))
        self._connection.execute("DELETE FROM seen WHERE run = ?", (run.id,))

    def remove(self, run: KnownRun) -> None:
        """Remove a run."""
        self.forget(run)
        if self._connection is not None:
            self._connection.execute("DELETE FROM run WHERE id = ?", (run.id,))

    def put_note(self, name: str, value: Any) -> None:
        """Store JSON data under a name."""
        if self._connection is not None:
            facts = (name, json.dumps(value))
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts)

    def put_run(
        self, key: str, stamp: str, summary: Mapping[str, Any], done: Mapping[str, int]
    ) -> KnownRun | None:
        """Write a run's line of the table, and how many steps of each session are in."""
        if self._connection is None:
            return None
        facts = (key, stamp, json.dumps(summary), json.dumps(done))
        row = self._connection.execute(
            "INSERT INTO run(key, stamp, summary, done) VALUES (?, ?, ?, ?) ON CONFLICT(key) "
            "DO UPDATE SET stamp = excluded.stamp, summary = excluded.summary, "
            "done = excluded.done RETURNING id",
            facts,
        ).fetchone()
        return KnownRun(row[0], stamp, summary, done)

    def put_text(self, run: KnownRun, text: Text) -> None:
        """Write a text."""
        if self._connection is None:
            return
        for piece in pieces(text.text):
            clean = piece.encode("utf-8", "replace").decode().replace("\0", " ")
            place = (run.id, json.dumps(text.sid), text.step, text.where)
            row = self._connection.execute(
                "INSERT INTO place(run, sid, step, what) VALUES (?, ?, ?, ?)", place
            )
            self._connection.execute(
                "INSERT INTO body(rowid, text) VALUES (?, ?)", (row.lastrowid, clean)
            )

    def seen(self, run: KnownRun, name: bytes) -> bool:
        """Return whether a hash was given before, for any run, and remember it."""
        if self._connection is None:
            return True
        row = self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (name, run.id))
        return row.rowcount == 0


def _remove_unused(folder: Path) -> None:
    """Remove the databases that no viewer has used for a month."""
    for lock in folder.glob("*.sqlite.lock"):
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > _UNUSED_SECONDS:
                for suffix in (".lock", "-wal", "-shm", ""):
                    Path(f"{str(lock).removesuffix('.lock')}{suffix}").unlink(missing_ok=True)
