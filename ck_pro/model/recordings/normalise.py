"""Remove from texts what differs between runs, to compare recordings. Pure."""

from __future__ import annotations

import re

_LOOPBACK = r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])"
_HOST_ENDS = r"(?![\w-]|\.\w|:\d)"
ORIGIN = re.compile(rf"https?://{_LOOPBACK}(?::\d{{1,5}})?{_HOST_ENDS}", re.IGNORECASE)
"""The origin of a server on this machine."""

_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_HEX4 = r"[0-9a-f]{4}"
_TMP = r"/(?:tmp|var/tmp|dev/shm|(?:private/)?var/folders|private/tmp)"

_TASK_RULES = [
    (ORIGIN, "{{origin}}"),
    (re.compile(rf"(?<![\w.-]){_LOOPBACK}:\d{{1,5}}{_HOST_ENDS}", re.IGNORECASE), "{{host}}"),
    (re.compile(rf"(?<![\w.]){_TMP}(?:/[\w.+@-]+)+"), "{{path}}"),
    (re.compile(rf"\b[0-9a-f]{{8}}-(?:{_HEX4}-){{3}}[0-9a-f]{{12}}\b", re.IGNORECASE), "{{id}}"),
]
_RULES = [
    *_TASK_RULES,
    (
        re.compile(rf"\b{_DATE}(?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?{_ZONE})?\b"),
        "{{time}}",
    ),
    (re.compile(rf"\b{_CLOCK}{_ZONE}\b"), "{{time}}"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,}\b"), "{{id}}"),
    (re.compile(r"\b(port[ :=]+)\d{2,5}\b", re.IGNORECASE), r"\1{{port}}"),
    (re.compile(r"\[\d+\]"), "[#]"),
]


def normalise(text: str, workdir: str = "") -> str:
    """Replace local origins, ports, ids, paths, dates and times by placeholders.

    Args:
        text: any text.
        workdir: the run's working directory; becomes `{{workdir}}`.

    Returns:
        The text with placeholders in braces. The function is idempotent.
    """
    return _applied(text, workdir, _RULES)


def normalise_task(text: str, workdir: str = "") -> str:
    """Normalise a task: like `normalise`, but keep dates and times, which may distinguish tasks."""
    return _applied(text, workdir, _TASK_RULES)


def _applied(text: str, workdir: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    before = None
    while before != text:  # the result of one rule may match another
        before = text
        text = without_workdir(text, workdir)
        for pattern, placeholder in rules:
            text = pattern.sub(placeholder, text)
    return text


def without_workdir(text: str, workdir: str) -> str:
    """Replace the complete path of the working directory by `{{workdir}}`."""
    if len(workdir) < 2:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(workdir.rstrip('/'))}(?![\w-])", "{{workdir}}", text)
