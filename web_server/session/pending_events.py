"""Events of a session since its last observation, and queued answers to dialogs."""

from __future__ import annotations

MAX_LINES = 50
"""Lines of each kind that a session keeps; later ones are dropped."""
MAX_ANSWERS = 10
"""Answers to dialogs that may be queued."""

Answer = tuple[bool, str | None]
"""Whether to accept a dialog, and the text for a prompt (None: the text that it proposes)."""


class PendingEvents:
    """Lines to report in the next observation, each once; and answers for the next dialogs.

    Attributes:
        events: a line for each event.
        notices: the events that the tree shows too.
        dialogs: a line for each dialog that was answered.
        dialog_count: number of dialogs so far.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.notices: list[str] = []
        self.dialogs: list[str] = []
        self.dialog_count = 0
        self._answers: list[Answer] = []
        self._repeated_dialog = (0, "")

    def note(self, line: str, *, in_tree: bool = False) -> None:
        """Add an event; with `in_tree` the tree shows it too."""
        for lines in (self.events, self.notices) if in_tree else (self.events,):
            if len(lines) < MAX_LINES and line not in lines:
                lines.append(line)

    def withdraw(self, line: str) -> None:
        """Remove an event that turned out to be wrong."""
        for lines in (self.events, self.notices):
            if line in lines:
                lines.remove(line)

    def note_dialog(self, line: str) -> None:
        """Add a dialog; the same dialog several times in a row becomes one line with a count."""
        self.dialog_count += 1
        count, last = self._repeated_dialog
        if self.dialogs and line == last:
            self._repeated_dialog = (count + 1, line)
            self.dialogs[-1] = f"{line} ({count + 1} times)"
        elif len(self.dialogs) < MAX_LINES:
            self._repeated_dialog = (1, line)
            self.dialogs.append(line)

    def queue_answer(self, answer: Answer) -> int:
        """Queue the answer to the next dialog; a different answer replaces those in the queue.

        Returns:
            how many dialogs have an answer now.
        """
        if self._answers and self._answers[-1] != answer:
            self._answers.clear()
        if len(self._answers) < MAX_ANSWERS:
            self._answers.append(answer)
        return len(self._answers)

    def take_answer(self) -> Answer | None:
        """Return the queued answer for a dialog that is open now; None without one."""
        return self._answers.pop(0) if self._answers else None

    def forget_answers(self) -> None:
        """Drop queued answers."""
        self._answers.clear()

    def clear(self) -> None:
        """Drop all events: an observation reported them."""
        self.events, self.notices, self.dialogs = [], [], []
