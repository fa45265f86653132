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
    r"nobody|somebody|whoever": "no client, the caller, the user",
    r"\btold\b|\btells\b|\btell of\b": "reported, shows, the message says",
    r"\bgo(?:es|ing)? on (?:with|from|where)\b|\bwent on\b|\bgone on\b|\bgoes on\b": "resumes",
    r"\bunder way\b": "in progress, pending",
    r"\bcut off\b": "interrupted",
    r"\bby itself\b|\bat will\b": "automatically, any number of times",
    r"\bmend(?:s|ed)?\b": "fixed",
    r"\bours\b|\btheirs\b|\bof (?:its|their|one's|his) own\b": "this project's, its own X, custom",
    r"\bin good order\b": "cleanly, gracefully",
    r"\bkept a while\b|\bleft behind\b": "cached, orphaned",
    r"\bwhat it (?:takes|holds|hears)\b": "its parameters, its contents",
    r"(?<!there )\b(?:is|are) none\b": "there are no, no X",
    r"\bas it was before\b|\bwhat was as\b|\bwhat must be so\b": "the previous version",
    r"\bdeeds?\b|\b(?:has|is|are) gone\b|\bbegun\b": "actions; closed, lost; started",
    r"\b(?:thereby|thereof|wherein|herein|whereof)\b": "a shorter sentence",
    r"# Mind\b|\bare not shown\.\)": "# Notes, (Earlier steps omitted.)",
}
PATTERN = re.compile("|".join(f"(?:{wording})" for wording in BANNED))


def documents() -> list[Path]:
    """Return every text of the project that a person or a model reads, except this file."""
    found = [ROOT / name for name in FILES]
    for folder in FOLDERS:
        found += [p for p in (ROOT / folder).rglob("*") if p.suffix in KINDS]
    return sorted(p for p in found if p != Path(__file__) and "node_modules" not in p.parts)


def test_texts_use_plain_wordings() -> None:
    found = []
    for path in documents():
        text = path.read_text()
        for match in PATTERN.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match.group()!r}")
    assert not found, f"{len(found)} wordings to replace:\n" + "\n".join(found)
