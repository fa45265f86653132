"""Read runs once: their lines of the table, and their texts for the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.open_runs import close
from ck_main.viewer.runs.outline import IN_PROGRESS, SessionOutline
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.summaries import summary_of_outline
from ck_main.viewer.search.index import END, START, Hit, Index, IndexWriter
from ck_main.viewer.search.queries import match_expression
from ck_main.viewer.search.texts import Text, output_texts, step_texts, task_text
from ck_pro.exceptions import CKError

MAX_HITS = 100
_ENDED = "/end"
_ROWS = "rows"
_MAX_LIVE = 64
_PAUSE_EVERY = 8


class Indexer:
    """The databases of all sources.

    Args:
        library: the runs.
        folder: of the databases.
        pause: called often while texts are read; may wait for requests to end.
    """

    def __init__(
        self, library: Library, folder: Path, pause: Callable[[], None] = lambda: None
    ) -> None:
        self._library, self._pause = library, pause
        self._indexes = [Index(source.path, folder) for source in library.sources]
        self._known = [index.known() for index in self._indexes]
        self._saved: dict[int, list[int]] = {}
        self._live: dict[str, JournalRun] = {}

    @property
    def failures(self) -> list[str]:
        """Why the search does not find all, one line each."""
        return [index.failure for index in self._indexes if index.failure]

    def close(self) -> None:
        """Close the databases."""
        for index in self._indexes:
            index.close()
        for reader in self._live.values():
            close(reader)

    def restore(self) -> None:
        """Take the rows that did not change from the databases, before the sources are scanned."""
        for number, index in enumerate(self._indexes):
            state = index.note(_ROWS)
            if isinstance(state, dict):
                entries = self._library.scanner(number).restore(state)
                for entry in entries:
                    self.recall(entry)
                self._library.touch(entries)

    def save(self) -> None:
        """Store where the rows are, for `restore`."""
        for number, index in enumerate(self._indexes):
            state = self._library.scanner(number).rows_state()
            if state is not None and state["file"] != self._saved.get(number):
                self._saved[number] = state["file"]
                with index.writing() as writer:
                    writer.put_note(_ROWS, state)

    def recall(self, entry: Entry) -> bool:
        """Set the summary of a run that did not change since it was read; return whether it did."""
        known = self._known[entry.source].get(entry.key)
        if known is None or known.stamp != entry.stamp:
            return False
        entry.summary = {**entry.summary, **known.summary}
        entry.complete, entry.read = True, known.stamp
        return True

    def renew(self, entry: Entry, report: Callable[[Entry], None] = lambda entry: None) -> None:
        """Read a run that is new or has grown.

        Args:
            entry: the run.
            report: called when its summary is known, before its texts are read.
        """
        stamp = entry.stamp
        try:
            with self._reader(entry) as reader, self._indexes[entry.source].writing() as writer:
                summary = summary_of_outline(reader.outline)
                entry.summary = {**entry.summary, **_known_values(summary)}
                report(entry)
                self._write(entry, stamp, reader, writer)
        except CKError as e:
            entry.summary["problem"] = str(e)
        entry.complete, entry.read = True, stamp

    @contextmanager
    def _reader(self, entry: Entry) -> Iterator[RunReader]:
        """Open a run, apart from the requests. The journal of a live run stays open."""
        if not self._library.is_live(entry) or entry.journal is None:
            live = self._live.pop(entry.key, None)
            close(live)
            with self._library.read_once(entry) as reader:
                yield reader
            return
        live = self._live.get(entry.key)
        if live is None:
            if len(self._live) >= _MAX_LIVE:
                close(self._live.pop(next(iter(self._live))))
            live = self._live[entry.key] = JournalRun(entry.journal)
        live.refresh()
        yield live

    def _write(self, entry: Entry, stamp: str, reader: RunReader, writer: IndexWriter) -> None:
        known = self._known[entry.source].get(entry.key)
        done = dict(known.done) if known is not None else {}
        if known is not None and (entry.place is not None or _shrank(reader, done)):
            writer.forget(known)
            done = {}
        run = writer.put_run(entry.key, stamp, entry.summary, done)
        if run is None:
            return
        for n, text in enumerate(_new_texts(reader, done, partial(writer.seen, run))):
            writer.put_text(run, text)
            if n % _PAUSE_EVERY == 0:
                self._pause()
        run = writer.put_run(entry.key, stamp, entry.summary, done)
        if run is not None:
            self._known[entry.source][entry.key] = run

    def remove_gone(self) -> None:
        """Remove the runs that the sources no longer have."""
        keys = {entry.key for entry in self._library.entries()}
        for index, known in zip(self._indexes, self._known, strict=True):
            gone = [run for key, run in known.items() if key not in keys]
            if gone:
                with index.writing() as writer:
                    for run in gone:
                        writer.remove(run)
            for key in [key for key in known if key not in keys]:
                del known[key]

    # --- search ------------------------------------------------------------------------------

    def search(self, text: str, *, key: str = "", limit: int = MAX_HITS) -> Mapping[str, Any]:
        """Search all texts.

        Args:
            text: what the user typed; see `queries.match_expression`.
            key: only in this run; "" for all.
            limit: maximum number of hits.

        Returns:
            `hits` with the best first, `more` whether there are more, and `failures`.
        """
        expression = match_expression(text)
        found: list[Hit] = []
        for index in self._indexes if expression else ():
            found += index.find(expression, key, limit + 1)
        found = [hit for hit in found if self._library.known(hit.key) is not None]
        found.sort(key=lambda hit: hit.score)
        hits = [_hit_json(hit) for hit in found[:limit]]
        return {"hits": hits, "more": len(found) > limit, "failures": self.failures}


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "key": hit.key,
        "sid": hit.sid,
        "step": hit.step,
        "where": hit.where,
        "snippet": snippet_parts(hit.snippet),
    }


def snippet_parts(snippet: str) -> list[tuple[str, bool]]:
    """Split a snippet into parts: text, and whether it is a match."""
    parts: list[tuple[str, bool]] = []
    for n, part in enumerate(snippet.split(START)):
        match, ends, rest = part.partition(END)
        if n and ends:
            parts += [(match, True), (rest, False)]
        else:
            parts.append((part, False))
    return [part for part in parts if part[0]]


def _known_values(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if value is not None}


def _shrank(reader: RunReader, done: Mapping[str, int]) -> bool:
    """Whether a journal has fewer steps than were read: it was replaced."""
    sessions = reader.outline.sessions
    return any(
        not name.endswith(_ENDED) and (name not in sessions or count > len(sessions[name].steps))
        for name, count in done.items()
    )


def _new_texts(
    reader: RunReader, done: dict[str, int], seen: Callable[[bytes], bool]
) -> Iterator[Text]:
    """Yield the texts that were not read yet; update `done`."""
    for session in list(reader.outline.sessions.values()):
        if session.sid not in done:
            done[session.sid] = 0
            yield task_text(session)
        steps = _finished_steps(session)
        for step in steps[done[session.sid] :]:
            yield from step_texts(reader, session.sid, step, seen)
        done[session.sid] = max(done[session.sid], len(steps))
        if session.status != IN_PROGRESS and session.sid + _ENDED not in done:
            done[session.sid + _ENDED] = 1
            yield from output_texts(session)


def _finished_steps(session: SessionOutline) -> Sequence[Any]:
    return session.steps if session.status != IN_PROGRESS else session.steps[:-1]
