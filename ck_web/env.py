"""`WebEnv`: one browser as an agent's environment."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ck_pro.approval import ActionRejected, Approver, AutoApprover, Guard, require_approval
from ck_pro.environment import Environment
from ck_pro.events import (
    Action,
    BrowserAction,
    BrowserObservation,
    ComputerObservation,
    ErrorObservation,
)
from ck_pro.events import Observation as Event
from ck_pro.exceptions import BrowserServerError, ParseError, ToolError
from ck_web.actions import parse_action
from ck_web.actions.wire_fields import NOT_DONE, RESTING, TELLING, read_whole
from ck_web.browser import server_process as sandbox
from ck_web.browser.browser import Browser
from ck_web.browser.client import LEAN, RequestRefused
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.consent import Consent
from ck_web.browser.files import write_inside
from ck_web.page.notices import mostly_visual, page_notices
from ck_web.page.page_text import one_line, said_by_server
from ck_web.page.state import WebState, describe, is_other_page, what_changed
from web_server.contract import Observation

Pictures = Literal["off", "asked", "auto", "on"]
"""When observations carry a screenshot: never, once `screenshot(True)` asked for it, also where the
text of a page cannot tell enough, always."""

_BOXED = LEAN.model_copy(update={"screenshot": "boxed", "imageFormat": "jpeg"})
_PLAIN = _BOXED.model_copy(update={"screenshot": "plain"})
_PLACED = LEAN.model_copy(update={"elements": True})
_MESSAGE_LENGTH = 300
_UNCHANGED = 3  # so many actions in a row without effect are worth a notice
_NEW_BROWSER = (
    "the browser of this run was closed meanwhile, and this is a new one at the same address: "
    "logins and what was typed may be lost"
)
NOTHING_CHANGED = "; nothing changed"
"""How the server ends what it says of an action without effect."""
_DOCUMENT_STAYED = "; the page changed"
"""How it ends what it says of one that changed the document and led to no other."""


class WebEnv(Environment):
    """A browser with one current page. Opens it at once; `close` gives everything back.

    Safe to use from several threads: actions take turns.

    Args:
        config: the settings, or a dict of them.
        workdir: where downloads, saved files and screenshots go, and uploads come from.
        target_url: the page to begin with, instead of the configured one.
        pictures: see `Pictures`.
        left: what `suspend` of an earlier environment returned, to be taken up again.
        last_url: where a run was that goes on in a new browser.
        outlive: once suspended, the browser outlives this process, also where that started its
            server.
        setting: where the configuration stands among the settings of a command, for messages.
        approver: reviews what is done beside `execute`: action strings, and answers to cookie
            banners.

    Raises:
        BrowserServerError: no server, no free browser, or the server failed.
    """

    def __init__(
        self,
        config: WebEnvConfig | dict[str, Any] | None = None,
        *,
        workdir: str | Path = ".",
        target_url: str | None = None,
        pictures: Pictures = "asked",
        left: Mapping[str, Any] | None = None,
        last_url: str = "",
        approver: Approver | None = None,
        outlive: bool = False,
        setting: str = "web_env",
    ):
        self._approver = approver or AutoApprover()
        self.config = config if isinstance(config, WebEnvConfig) else WebEnvConfig(**config or {})
        self.workdir = Path(workdir)
        self.pictures = pictures
        self._lock = threading.RLock()
        self._done: list[str] = []  # what came of each action since the last take_log()
        self._unchanged = 0  # actions in a row that changed nothing
        first = target_url or self.config.target_url
        self._browser = Browser(self.config, self.workdir, first, left, outlive, setting)
        self.taken_up = self._browser.taken_up
        self._consent = Consent(self._browser, self.config.cookie_banners, self._approved)
        try:
            last_url = str((left or {}).get("url") or last_url)
            if last_url and not self.taken_up:
                if last_url != self._state.step_url:
                    self.execute(BrowserAction(name="goto", value=last_url))
                    self._done.clear()
                self._browser.pending.append(_NEW_BROWSER)
            self._consent.answer()
        except BaseException:
            self.close()
            raise

    # --- the environment -------------------------------------------------------------------

    def observe(self) -> BrowserObservation | ComputerObservation:
        """The current page as the model reads it, with what happened since the last look."""
        with self._lock, self._browser.explained():
            before = self._state
            self._look()
            if self._consent.answer_late(before):
                self._look()
            pending, self._browser.pending = self._browser.pending, []
            s = self._state
            text = "\n".join([f"URL: {s.step_url}", self._page_text(), *self._footer(pending)])
            return BrowserObservation(text=text, url=s.step_url, image=s.boxed_screenshot)

    def execute(self, action: Action) -> Event:
        """Do one browser action and tell in one line what came of it (or what was read).

        Returns:
            `BrowserObservation`, or `ErrorObservation` when the action could not be done.

        Raises:
            BrowserServerError: the server or the browser is gone.
        """
        if not isinstance(action, BrowserAction):
            return ErrorObservation(text=f"a browser cannot do a '{action.kind}' action")
        with self._lock, self._browser.explained():
            shown = describe(self._state, action)
            step = self._state.curr_step + 1
            self._note(curr_step=step, action_string=shown, error_message="")
            try:
                said = self._do(action)
            except (RequestRefused, ToolError) as e:
                reason = self._not_done(e)
                self._unchanged += 1
                self._note(error_message=reason)
                self._done.append(f"{shown} failed: {reason}")
                return ErrorObservation(text=self._done[-1])
            if action.name not in TELLING:  # a text is for the code, which prints what matters
                said = f"{shown}: {said}"
                self._done.append(said)
            return BrowserObservation(text=said, url=self._state.step_url)

    def step_state(self, action_string: str) -> str:
        """Do the action that a string means; what came of it, never an error.

        Raises:
            BrowserServerError: the server or the browser is gone.
            GuardStopped: the approver ends the run.
        """
        try:
            return Guard(self, self._approver).execute(parse_action(action_string)).text
        except ParseError as e:
            return f"not done: {e}"

    def reset_to_state(self, target: WebState | Mapping[str, Any]) -> bool:
        """Go back to the page of an earlier state, if the browser shows another one.

        Only the address is restored: what was typed or clicked there is not.

        Args:
            target: the state, or its dict (`to_dict`, a step's `web_state_before`).

        Returns:
            Whether the browser was sent back.

        Raises:
            BrowserServerError: the server or the browser is gone, or the page cannot be opened.
        """
        state = target if isinstance(target, WebState) else WebState.create_from_dict(target)
        with self._lock:
            url = state.step_url or state.target_url
            if not url or url == self._state.step_url:
                return False
            done = self.execute(BrowserAction(name="goto", value=url))
            if isinstance(done, ErrorObservation):
                raise BrowserServerError(f"cannot go back to {url}: {done.text}")
            self._note(num_revert_state=self._state.num_revert_state + 1)
            return True

    def sync_files(self) -> list[str]:
        """Copy new downloads to the working directory now; paths of all copies, relative to it.

        Raises:
            BrowserServerError: the server or the browser is gone.
        """
        with self._lock, self._browser.explained():
            self._browser.take(self._browser.look(LEAN))
            return list(self._state.downloaded_file_path)

    def take_log(self) -> list[str]:
        """One line of each action since this was last asked."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def get_state(self) -> WebState:
        """What is known of the browser; asks nothing of it."""
        with self._lock:
            return self._state

    def state(self) -> dict[str, Any]:
        """`get_state` for the log."""
        return self.get_state().to_dict()

    @property
    def sandbox(self) -> sandbox.Sandbox | None:
        """The leased browser, while there is one."""
        return self._browser.lease

    def stop(self) -> None:
        """Give the browser back, and the server if we started it; harmless when repeated."""
        # not the lock of the actions: one of them may be waiting for a slow page in another thread
        self._browser.close()

    def close(self) -> None:
        """The same as `stop`."""
        self.stop()

    def suspend(self) -> dict[str, Any] | None:
        """Let go of the browser without ending it; see `Environment.suspend`."""
        with self._lock:
            return self._browser.suspend()

    @property
    def _state(self) -> WebState:
        return self._browser.state

    def _note(self, **facts: Any) -> None:
        self._browser.state = replace(self._browser.state, **facts)

    # --- looking ---------------------------------------------------------------------------

    def _look(self) -> None:
        """Observe the page, with a picture where one is wanted."""
        asked = self._state.curr_screenshot_mode and self.pictures != "off"
        pictured = self.pictures == "on" or asked
        unasked = self.pictures == "auto" and not pictured
        picture = _BOXED if self.config.screenshot_boxed else _PLAIN
        seen = self._browser.look(picture if pictured else _PLACED if unasked else LEAN)
        if unasked and self._needs_picture(seen):
            pictured, first = True, seen
            seen = self._browser.look(picture)
            told = {"events": first.events + seen.events, "dialogs": first.dialogs + seen.dialogs}
            seen = seen.model_copy(update=told)
        self._browser.take(seen)
        if not pictured:  # older servers send one unasked
            self._note(boxed_screenshot="")

    def _needs_picture(self, seen: Observation) -> bool:
        stuck = self._unchanged >= _UNCHANGED
        return stuck or mostly_visual(seen.yaml, seen.elements, seen.viewport)

    def _page_text(self) -> str:
        text, limit = self._state.current_accessibility_tree.rstrip(), self.config.max_page_chars
        if len(text) <= limit:
            return text
        cut = text.rfind("\n", 0, limit)
        return text[: cut if cut > 0 else limit] + "\n(the page text is longer; this is its start)"

    def _footer(self, pending: list[str]) -> list[str]:
        """What is to be said below the page: news, what bars the way, files."""
        tree = self._state.current_accessibility_tree
        # what the server tells within the page need not stand below it too
        told = "\n".join(said_by_server(tree))
        said = [line for line in pending if line not in told]
        said += [*page_notices(tree), *self._consent.notice()]
        if self._unchanged >= _UNCHANGED:
            said.append(
                f"the last {self._unchanged} actions changed nothing on the page: try another way"
            )
        lines = [f"Note: {line}" for line in said]
        if self._state.downloaded_file_path:
            lines.append(f"Downloaded files: {', '.join(self._state.downloaded_file_path)}")
        return lines

    # --- acting ----------------------------------------------------------------------------

    def named(self, action: Action) -> Action:
        """The action with the element that it would reach now, and the page's address."""
        if not isinstance(action, BrowserAction):
            return action
        with self._lock, self._browser.explained():
            return self._browser.described(action)

    def _approved(self, action: BrowserAction) -> BrowserAction | None:
        """An action that no agent asked for, as the approver saw it; None if it said no."""
        if type(self._approver) is AutoApprover:
            return action
        action = self._browser.described(action)
        try:
            require_approval(self._approver, action)
        except ActionRejected:
            return None
        return action

    def _do(self, action: BrowserAction) -> str:
        """Do the action; what to say of it."""
        arguments = action.arguments
        match action.name:
            case "save":
                return self._browser.save(arguments["remote"], arguments["local"])
            case "screenshot":
                return self._screenshot(arguments["flag"], arguments["path"])
            case "stop" | "nop":
                return "nothing to do in the browser"
            case "read" if not action.value:
                return read_whole(lambda part: self._browser.send(_part(part)))
            case "read" | "find" | "answer_dialog":
                return self._browser.send(action)
            case _:
                return self._perform(action)

    def _perform(self, action: BrowserAction) -> str:
        before, heard = self._state, len(self._browser.pending)
        message = self._browser.send(action)
        asked = action.value if action.name in ("goto", "new_tab") else ""
        stayed = message.endswith(_DOCUMENT_STAYED)
        changed = what_changed(before, self._state, asked or "", stayed)
        if action.name not in RESTING:
            self._unchanged = 0 if changed else self._unchanged + 1
        if is_other_page(before, self._state, stayed):
            # what opens later the model may have asked for
            self._consent.answer()
        # what is told here need not be told again by the next look
        told = self._browser.pending
        self._browser.pending, pending = told[:heard], told[heard:]
        if pending:
            self._unchanged = 0
        if changed:
            return "; ".join([changed, *pending])
        said = one_line(message, _MESSAGE_LENGTH) or "done, and the page looks the same"
        if pending:
            said = said.removesuffix(NOTHING_CHANGED)
        # the server's words may be the news, or a part of them
        said = "" if any(said in line for line in pending) else said
        return "; ".join(filter(None, [said, *(line for line in pending if line not in said)]))

    def _screenshot(self, flag: bool, path: str) -> str:
        self._note(curr_screenshot_mode=flag)
        said = f"screenshots are {'on' if flag else 'off'} from the next observation on"
        if self.pictures == "off" and flag:
            said = "this run shows no screenshots"
        if not path:
            return said
        written = write_inside(self.workdir, path, self._browser.picture())
        return f"{said}; the page was saved as {written!r}"

    def _not_done(self, error: RequestRefused | ToolError) -> str:
        """The reason for the model; raises when it is not the action that is at fault."""
        if isinstance(error, ToolError):
            return str(error)
        if error.status not in NOT_DONE:
            raise error
        if error.observation is not None:
            self._browser.take(error.observation)
        elif error.status == 404:
            self._look()  # raises if it is not the element that is gone, but the browser
        return error.reason


def _part(number: int) -> BrowserAction:
    return BrowserAction(name="read", value=str(number))
