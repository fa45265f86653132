"""What happened in a session since it was last looked at, for its next observation."""

from __future__ import annotations

MAX_LINES = 50
"""Of so many lines of each kind a session keeps the first."""


MOST_ANSWERS = 10
"""So many answers to dialogs may be ordered ahead."""

Answer = tuple[bool, str | None]
"""Whether to accept a dialog, and the text for a prompt (None: the text that it proposes)."""


class PendingEvents:
    """Lines of what happened, each kept once; and the answers ordered for the next dialogs.

    Attributes:
        events: a line for each thing that happened.
        notices: those of them that the tree shows as well.
        dialogs: a line for each dialog that was answered.
        asked: how many dialogs came in all.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.notices: list[str] = []
        self.dialogs: list[str] = []
        self._answers: list[Answer] = []
        self._same_dialog = (0, "")
        self.asked = 0

    def note(self, line: str, *, loud: bool = False) -> None:
        """Something happened; `loud` lines are shown in the tree as well."""
        for lines in (self.events, self.notices) if loud else (self.events,):
            if len(lines) < MAX_LINES and line not in lines:
                lines.append(line)

    def withdraw(self, line: str) -> None:
        """What was noted was not so."""
        for lines in (self.events, self.notices):
            if line in lines:
                lines.remove(line)

    def tell_dialog(self, line: str) -> None:
        """A dialog was shown and answered; one that comes again and again is a single line."""
        self.asked += 1
        count, last = self._same_dialog
        if self.dialogs and line == last:
            self._same_dialog = (count + 1, line)
            self.dialogs[-1] = f"{line} ({count + 1} times)"
        elif len(self.dialogs) < MAX_LINES:
            self._same_dialog = (1, line)
            self.dialogs.append(line)

    def order_answer(self, answer: Answer) -> int:
        """Order the answer to the next dialog; the same answer again is for the one after it.

        Returns:
            how many dialogs have an answer now.
        """
        if self._answers and self._answers[-1] != answer:
            self._answers.clear()
        if len(self._answers) < MOST_ANSWERS:
            self._answers.append(answer)
        return len(self._answers)

    def take_answer(self) -> Answer | None:
        """Return the answer that was ordered for a dialog that is open now; None without one."""
        return self._answers.pop(0) if self._answers else None

    def forget_answers(self) -> None:
        """Drop answers that were ordered and not used."""
        self._answers.clear()

    def forget(self) -> None:
        """All of it was told."""
        self.events, self.notices, self.dialogs = [], [], []
