"""Search the journals of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ck_pro.exceptions import InputError, JournalError
from ck_pro.journal import journal_folders, read_events
from ck_pro.ranking import Ranking
from ck_pro.session.session import AgentSession, sessions_from_events

_MOST_JOURNALS = 100
_FOUND = 10
_UNREADABLE = (JournalError, InputError, KeyError, TypeError, ValueError, AttributeError)
"""Errors of a journal of another version, or of a damaged one."""


def search_journals(folders: Iterable[str | Path], query: str) -> list[str]:
    """Return short texts of the sessions in journals that match a query, best match first.

    Args:
        folders: folders of journals, or folders above them.
        query: some words; see `AgentSession.search`.
    """
    journals = [found for folder in folders for found in journal_folders(Path(folder))]
    journals.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    sessions = [s for folder in journals[:_MOST_JOURNALS] for s in _sessions_in(folder)]
    ranked = Ranking(_text(session) for session in sessions).best(query)[:_FOUND]
    return [text for n in ranked for text in _found_in(sessions[n], query)][:_FOUND]


def _sessions_in(folder: Path) -> list[AgentSession]:
    try:
        return list(sessions_from_events(read_events(folder)).values())
    except _UNREADABLE:
        return []


def _text(session: AgentSession) -> str:
    answer = session.final_results["output"] if session.final_results else ""
    steps = "\n".join(session.step_texts())
    return f"{session.task}\n{answer}\n{steps}"


def _found_in(session: AgentSession, query: str) -> list[str]:
    """Return the best steps of a session, below its task and answer."""
    answer = session.final_results["output"] if session.final_results else ""
    head = f"Earlier task: {session.task[:200]}\nAnswer: {answer[:200]}"
    return ["\n".join([head, *session.search(query, limit=2)])]
