"""`Seat`: the page and its routes; `open_seat` opens the one of this process."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from flask import Response, request

from ck_pro.exceptions import ConfigError, InputError, ManualAbort, ModelRefused
from ck_pro.local_page.app import LocalApp, json_body, json_response
from ck_pro.local_page.opening import can_open, open_in_browser
from ck_pro.model.backends.targets import check_target, known_schemes, parse_target, without_secrets
from ck_pro.model.seat.hand_overs import SCOPES
from ck_pro.model.seat.replying import PARTS, composed, described, preview
from ck_pro.model.seat.waiting import WaitingCalls

_PAGE = Path(__file__).parent / "page"
_WAIT_SECONDS = 20.0
_ROUTES = (
    ("/api/queue", "queue", "GET"),
    ("/api/call/<name>", "call", "GET"),
    ("/api/call/<name>/picture", "picture", "GET"),
    ("/api/call/<name>/check", "check", "POST"),
    ("/api/call/<name>/send", "send", "POST"),
    ("/api/call/<name>/fail", "fail", "POST"),
    ("/api/call/<name>/hand_over", "hand_over", "POST"),
    ("/api/handed/<name>/take_back", "take_back", "POST"),
)


class Seat:
    """The page of a person who is the model, and the calls that wait for them.

    Args:
        port: port of the page; 0 picks a free one.

    Raises:
        ConfigError: the port is in use.
    """

    def __init__(self, port: int = 0) -> None:
        self.calls = WaitingCalls()
        try:
            self._app = LocalApp(_PAGE, port=port)
        except ConfigError as e:
            reason = str(e).partition(";")[0]
            raise ConfigError(f"manual:web: {reason}; without ?port= it takes a free one") from None
        for path, name, method in _ROUTES:
            self._app.flask.add_url_rule(path, name, getattr(self, f"_{name}"), methods=[method])
        self._app.start()

    @property
    def url(self) -> str:
        """The address for the person, with its key."""
        return self._app.url

    def close(self) -> None:
        """Stop serving."""
        self._app.stop()

    # --- routes ----------------------------------------------------------------------------

    def _queue(self) -> Response:
        """Return the waiting calls; with `since`, when they differ from that version."""
        since = request.args.get("since", type=int)
        if since is not None:
            self.calls.wait_for_change(since, _WAIT_SECONDS)
        version, answered = self.calls.version, self.calls.answered
        waiting = [call.facts() for call in self.calls.all()]
        handed = [one.facts() for one in self.calls.handed.all()]
        facts = {"version": version, "answered": answered, "waiting": waiting, "handed": handed}
        return json_response(facts)

    def _call(self, name: str) -> Response:
        call = self.calls.find(name)
        same = {"messages": call.same_messages, "characters": call.same_characters}
        facts = {**call.facts(), "messages": call.request.messages, "same": same}
        facts["task"] = call.request.context.task
        facts["models"] = _examples()
        guide = described(call.request)
        return json_response({**facts, "guide": guide, "draft": call.draft})

    def _picture(self, name: str) -> Response:
        guide = self.calls.find(name).request.context.guide
        return json_response({"picture": guide.picture() if guide is not None else None})

    def _check(self, name: str) -> Response:
        """Keep the parts as the draft, and return the dry run of the reply that they make.

        A page checks a moment after each change, so the call may have its reply already: then there
        is no dry run, and no error.
        """
        try:
            call = self.calls.find(name)
        except InputError:
            return json_response({"parts": None})
        call.draft = _parts(json_body())
        return json_response(preview(call.request, call.draft))

    def _send(self, name: str) -> Response:
        """Send the reply; not if the model would get an error, unless `anyway` is set."""
        call, body = self.calls.find(name), json_body()
        parts = _parts(body)
        seen = preview(call.request, parts)
        kinds = {part["kind"] for part in seen["parts"]}
        sent = "refused" not in kinds and (bool(body.get("anyway")) or "error" not in kinds)
        if sent:
            call.answer(composed(call.request, parts))
        return json_response({**seen, "sent": sent})

    def _fail(self, name: str) -> Response:
        """End a call with an error, or with `run` the whole run."""
        call, body = self.calls.find(name), json_body()
        reason = " ".join(str(body.get("reason") or "").split()) or "no reason given"
        if body.get("run"):
            where = call.request.context.where()
            call.answer(ManualAbort(f"manual: aborted by the user ({where}): {reason}"))
        else:
            call.answer(
                ModelRefused(f"manual: the person who is the model gave no reply: {reason}")
            )
        return json_response({"sent": True})

    def _hand_over(self, name: str) -> Response:
        """Hand a call and the later ones of its agent or run over to a model, after a check."""
        call, body = self.calls.find(name), json_body()
        target, scope = str(body.get("target") or "").strip(), body.get("scope")
        if scope not in SCOPES:
            raise InputError(f"scope: must be one of {', '.join(SCOPES)}")
        if not target:
            raise InputError("name a model, such as " + ", ".join(_examples()))
        check_target(target)
        if parse_target(target).innermost().scheme.interactive:
            raise InputError(
                f"{without_secrets(target)} is a person; name a model: {', '.join(_examples())}"
            )
        call.request.check_target(target)
        self.calls.hand_over(call, scope, target)
        return json_response({"sent": True})

    def _take_back(self, name: str) -> Response:
        """Let the person answer again."""
        self.calls.handed.take_back(name)
        return json_response({})


def _examples() -> list[str]:
    """Return how targets are written that are no persons."""
    return [scheme.form for scheme in known_schemes() if not scheme.interactive]


def _parts(body: dict[str, Any]) -> dict[str, str]:
    """Return the parts of a reply in a request."""
    given = {name: body[name] for name in PARTS if body.get(name) is not None}
    if not all(isinstance(text, str) for text in given.values()):
        raise InputError("the parts of a reply are texts")
    return given


_seats: dict[int, Seat] = {}
_opening = threading.Lock()


def open_seat(port: int = 0) -> Seat:
    """Return the seat of this process. When it opens, its address is printed.

    Args:
        port: port of the page; 0: that of the open seat, or a free one.

    Raises:
        ConfigError: the port is in use.
    """
    with _opening:
        seat = _seats.get(port) or (next(iter(_seats.values()), None) if not port else None)
        if seat is None:
            seat = _seats[port] = Seat(port)
            sys.stderr.write(f"You are the model: open {seat.url}\n")
            sys.stderr.flush()
            if can_open():
                open_in_browser(seat.url)
        return seat


def close_seats() -> None:
    """Close the seats of this process, for tests."""
    with _opening:
        while _seats:
            _seats.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_seats.clear)
