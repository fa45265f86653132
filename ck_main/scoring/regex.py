"""A regular expression for the whole answer.

Matching runs in a child process, because a pattern may take forever and Python cannot stop a match.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from ck_main.scoring.scorer import Case, Check, Score, Scorer
from ck_pro.exceptions import ConfigError

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge

MATCH_SECONDS = 5.0
"""Limit of one match, in seconds."""
_START_SECONDS = 60.0
_MAX_CHARS = 100_000
_PROGRAM = """
import json, re, signal, sys
print("ready", flush=True)
for line in sys.stdin:
    pattern, text = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    found = re.fullmatch(pattern, text, re.DOTALL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(int(found is not None), flush=True)
"""
"""The timer ends the process during a match, also if its parent was killed."""


def make(text: str, judge: Judge | None) -> Check:
    """Return the check for a pattern; without one, the right answer is the pattern.

    Raises:
        ConfigError: the pattern is invalid.
    """
    if error := _fault(text):
        raise ConfigError(f"scorer regex: {text!r}: {error}")
    matcher = Matcher()

    def check(case: Case) -> Score:
        pattern = text or case.gold
        if pattern is None:
            return Score(None)
        if error := _fault(pattern):
            return Score(None, f"the pattern is invalid: {error}")
        found = matcher.matches(pattern, case.pred.strip()[:_MAX_CHARS])
        if found is None:
            return Score(None, f"the match took more than {MATCH_SECONDS:g} s")
        return Score(float(found))

    return check


def _fault(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as e:
        return str(e)
    return ""


class Matcher:
    """Match patterns in a child process, which starts on first use. Thread-safe.

    Args:
        seconds: limit of one match.
    """

    def __init__(self, seconds: float = MATCH_SECONDS):
        self._seconds, self._lock = seconds, threading.Lock()
        self._child: subprocess.Popen[str] | None = None

    def matches(self, pattern: str, text: str) -> bool | None:
        """Whether a pattern matches a whole text; None if that takes too long."""
        with self._lock:
            child = self._child or self._start()
            assert child.stdin is not None
            child.stdin.write(json.dumps([pattern, text]) + "\n")
            child.stdin.flush()
            answer = self._line(child, self._seconds)
            if answer is None:
                self._stop()
            return None if answer is None else answer == "1"

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(2 * self._seconds)]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self._line(self._child, _START_SECONDS)
        return self._child

    @staticmethod
    def _line(child: subprocess.Popen[str], seconds: float) -> str | None:
        assert child.stdout is not None
        ready, _, _ = select.select([child.stdout], [], [], seconds)
        return child.stdout.readline().strip() if ready else None

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # unsent text of a closed pipe
                    pass
        child.wait()

    def __del__(self) -> None:
        self._stop()


SCORER = Scorer(
    name="regex",
    help="the whole answer matches a pattern: regex:PATTERN, or the right answer is the pattern",
    make=make,
)
