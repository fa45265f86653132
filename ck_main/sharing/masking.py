"""Mask the secrets of the environment in what leaves this machine."""

from __future__ import annotations

from typing import Any

from ck_pro.journal.masking import MASK, MIN_SECRET, Secrets, secrets_of_environment

_SHORTEST = MIN_SECRET // 2
"""Characters of a secret at the end of a text that count as its beginning."""


class SharedSecrets(Secrets):
    """The secrets of the environment, also those that a shortened text contains in part."""

    def __init__(self) -> None:
        super().__init__(secrets_of_environment())

    def masked(self, value: Any) -> Any:
        """See `Secrets`. Also mask the beginning of a secret at the end of a text."""
        found = super().masked(value)
        return self._without_beginning(found) if isinstance(found, str) else found

    def text(self, text: str) -> str:
        """Mask a text."""
        return str(self.masked(text))

    def _without_beginning(self, text: str) -> str:
        whole = text.removesuffix("…")
        for secret in self.known:
            at = whole.rfind(secret[:_SHORTEST], max(0, len(whole) - len(secret)))
            if at >= 0 and secret.startswith(whole[at:]):
                return whole[:at] + MASK + text[len(whole) :]
        return text
