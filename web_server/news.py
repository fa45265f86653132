"""What happened in a session since it was last looked at, for its next observation."""

from __future__ import annotations

MAX_LINES = 50
"""Of so many lines of each kind a session keeps the first."""


class News:
    """Lines of what happened, each kept once; and how the next dialog is to be answered.

    Attributes:
        events: a line for each thing that happened.
        notices: those of them that the tree shows as well.
        dialogs: a line for each dialog that was answered.
        next_answer: whether to accept the next dialog, and with what text; None: accept it.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.notices: list[str] = []
        self.dialogs: list[str] = []
        self.next_answer: tuple[bool, str | None] | None = None
        self._same_dialog = (0, "")

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
        count, last = self._same_dialog
        if self.dialogs and line == last:
            self._same_dialog = (count + 1, line)
            self.dialogs[-1] = f"{line} ({count + 1} times)"
        elif len(self.dialogs) < MAX_LINES:
            self._same_dialog = (1, line)
            self.dialogs.append(line)

    def dialog_answer(self) -> tuple[bool, str | None]:
        """The answer that was ordered for the next dialog; else it is accepted."""
        answer, self.next_answer = self.next_answer, None
        return answer or (True, None)

    def forget(self) -> None:
        """All of it was told."""
        self.events, self.notices, self.dialogs = [], [], []
