"""`SeatBackend`: a person in the browser completes the prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.exceptions import ConfigError
from ck_pro.local_page import require_flask
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.types import RawReply
from ck_pro.terminal import waiting_for_user

_PREFIX = "web"


def read_port(argument: str) -> int:
    """Return the port in the argument `web` or `web?port=N`; 0 if there is none.

    Raises:
        ConfigError: the argument has another form.
    """
    name, _, option = argument.partition("?")
    key, _, number = option.partition("=")
    if name != _PREFIX or (option and key != "port"):
        raise ConfigError(f"unknown argument '{argument}'")
    if not option:
        return 0
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < 65536):
        raise ConfigError("port: not a number from 1 to 65535")
    return int(number)


class SeatBackend(Backend):
    """A person on a local page who writes the replies; all calls of the process share it.

    Args:
        port: port of the page; 0 for any.
    """

    free = True

    def __init__(self, port: int = 0):
        self._port = port

    def describe(self) -> str:
        return "a person in the browser (manual:web)"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "manual"

    def check(self) -> None:
        """Open the page, so that a run does not start without it."""
        require_flask("manual:web")
        from ck_pro.model.seat.seat import open_seat  # imports Flask

        open_seat(self._port)

    def complete(self, request: ChatRequest) -> RawReply:
        """Wait for the reply. A person may take any time: `request.seconds` does not apply.

        Raises:
            HandedOver: a model completes the calls of this agent or run.
        """
        require_flask("manual:web")
        from ck_pro.model.seat.seat import open_seat

        seat = open_seat(self._port)
        with request.context.asking(), waiting_for_user():
            return seat.calls.ask(request)
