"""Wordings that this project does not use; see the reasons in docs/architecture.md.

The list prevents regressions. It does not make a text good.
"""

from __future__ import annotations

import re
from pathlib import Path

from paths import ROOT

FOLDERS = ("ck_pro", "ck_main", "ck_web", "web_server", "docs", "tests", "benchmarks", "examples")
FILES = ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run")
KINDS = {".py", ".js", ".md", ".sh", ".yaml"}

BANNED = {
    ("nobody", "somebody", "whoever"): "no client, the caller, the user",
    ("told", "tells", "tell of"): "reported, shows, the message says",
    ("go on with", "go on from", "go on where", "goes on", "gone on", "went on"): "resumes",
    ("going on with", "going on from", "going on where"): "resumes",
    ("under way",): "in progress, pending",
    ("cut off",): "interrupted",
    ("by itself", "at will"): "automatically, any number of times",
    ("mend", "mends", "mended"): "fixed",
    ("ours", "theirs"): "this project's, that of the caller",
    ("of its own", "of their own", "of one's own", "of his own"): "its own X, custom",
    ("in good order",): "cleanly, gracefully",
    ("kept a while", "left behind"): "cached, orphaned",
    ("what it takes", "what it holds", "what it hears"): "its parameters, its contents",
    ("is none", "are none"): "there are no, no X",
    ("as it was before", "what was as", "what must be so"): "the previous version",
    ("deed", "deeds"): "actions",
    ("has gone", "is gone", "are gone"): "closed, lost",
    ("begun",): "started",
    ("thereby", "thereof", "wherein", "herein", "whereof"): "a shorter sentence",
    ("# Mind", "are not shown.)"): "# Notes, (Earlier steps omitted.)",
}
WORDS = tuple(word for words in BANNED for word in words)


def banned_in(text: str) -> list[tuple[int, str]]:
    """Return (line, wording) of each banned wording in a text."""
    found = []
    for word in WORDS:
        if word not in text:  # much faster than a search by a pattern
            continue
        for match in re.finditer(rf"(?<!\w)(?<!there ){re.escape(word)}(?!\w)", text):
            found.append((text.count("\n", 0, match.start()) + 1, word))
    return sorted(found)


def documents() -> list[Path]:
    """Return every text of the project that a person or a model reads, except this file."""
    found = [ROOT / name for name in FILES]
    for folder in FOLDERS:
        found += [p for p in (ROOT / folder).rglob("*") if p.suffix in KINDS]
    return sorted(p for p in found if p != Path(__file__) and "node_modules" not in p.parts)


def test_texts_use_plain_wordings() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}"
        for path in documents()
        for line, word in banned_in(path.read_text())
    ]
    assert not found, f"{len(found)} wordings to replace:\n" + "\n".join(found)


def test_a_banned_wording_is_found_as_a_whole_word() -> None:
    assert banned_in("It goes on.\nThe deeds are gone.\n") == [
        (1, "goes on"),
        (2, "are gone"),
        (2, "deeds"),
    ]
    assert banned_in("It is none; indeeds, courses, there are none.") == [(1, "is none")]
