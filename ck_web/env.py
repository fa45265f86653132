"""`WebEnv`: one browser as an agent's environment."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ck_pro.approval import ActionRejected, Approver, AutoApprover, Guard, require_approval
from ck_pro.environment import Environment
from ck_pro.events import (
    Action,
    BrowserAction,
    BrowserObservation,
    ComputerObservation,
    ErrorObservation,
    Observation,
)
from ck_pro.events.journal_events import PictureData
from ck_pro.exceptions import BrowserServerError, GuardStopped, ParseError, ToolError
from ck_pro.executor import current_call
from ck_web.actions import ACTIONS, WebAction, parse_action
from ck_web.browser.browser import Browser
from ck_web.browser.client import LEAN, RequestRefused, Sandbox
from ck_web.browser.config import Pictures, WebEnvConfig
from ck_web.browser.site_secrets import allowed_names
from ck_web.browser.viewing import step_picture
from ck_web.page.notices import page_notices
from ck_web.page.page_text import describe_element, server_messages
from ck_web.page.state import WebState

_NEW_BROWSER = (
    "the browser of this run was closed, and this is a new one at the same address: logins and "
    "typed text may be lost"
)


class WebEnv(Environment):
    """A browser with one current page. The constructor opens it; `close` releases everything.

    Thread-safe: concurrent actions run one after another.

    Args:
        config: the settings, or a dict of them.
        workdir: folder for downloads, saved files, screenshots and uploads.
        target_url: the start page, instead of the configured one.
        pictures: when observations have a screenshot.
        suspended: from `suspend` of an earlier environment, to use its browser again.
        last_url: the page of the resumed run, for a new browser.
        keep_after_exit: a suspended browser stays open after this process exits, even if the
            process started its server.
        setting: where the configuration is among the settings of a command, for messages.
        approver: reviews what is done besides `execute`: action strings and answers to cookie
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
        suspended: Mapping[str, Any] | None = None,
        last_url: str = "",
        approver: Approver | None = None,
        keep_after_exit: bool = False,
        setting: str = "web_env",
    ):
        self._approver = approver or AutoApprover()
        self.config = config if isinstance(config, WebEnvConfig) else WebEnvConfig(**config or {})
        self.step_pictures = self.config.step_pictures
        self._lock = threading.RLock()
        self._browser = Browser(
            self.config,
            Path(workdir),
            target_url or self.config.target_url,
            pictures=pictures,
            suspended=suspended,
            keep_after_exit=keep_after_exit,
            setting=setting,
            approve=self._approve,
        )
        same_url = (suspended or {}).get("url") in (None, self._browser.state.step_url)
        self.taken_up = self._browser.reconnected and same_url
        try:
            last_url = str((suspended or {}).get("url") or last_url)
            if last_url and not self._browser.reconnected:
                self._return_to(last_url)
            self._browser.banners.answer()
        except BaseException:
            self.close()
            raise

    # --- the environment -------------------------------------------------------------------

    def observe(self) -> BrowserObservation | ComputerObservation:
        """Return the current page as the model reads it, with what happened since the last call."""
        browser = self._browser
        with self._lock:
            browser.check_lease()
            before = browser.state
            browser.refresh()
            if browser.banners.answer_late(before):
                browser.refresh()
            state = browser.state
            lines = [f"URL: {state.step_url}", self._page_text(), *self._footer()]
            lines += [browser.screenshots.text] if state.boxed_screenshot else []
            text = "\n".join(lines)
            return BrowserObservation(text=text, url=state.step_url, image=state.boxed_screenshot)

    def execute(self, action: Action) -> Observation:
        """Do one browser action; return its result in one line, or the text that it read.

        If code called the action, the line also stands in the output of its step.

        Returns:
            `BrowserObservation`, or `ErrorObservation` if the action failed.

        Raises:
            BrowserServerError: the server or the browser failed.
        """
        seen, report = self._execute(action)
        call = current_call()
        if report and call is not None:
            call.report(report)
        return seen

    def _execute(self, action: Action) -> tuple[Observation, str]:
        """Do one browser action; return its result, and a line that reports it or is empty."""
        if not isinstance(action, BrowserAction) or action.name not in ACTIONS:
            name = action.name if isinstance(action, BrowserAction) else action.kind
            return ErrorObservation(text=f"a browser cannot do a '{name}' action"), ""
        declared, browser = ACTIONS[action.name], self._browser
        with self._lock:
            state, failure = browser.state, ""
            browser.state = replace(state, curr_step=state.curr_step + 1, error_message="")
            try:
                self._check_setting(declared)
                result = declared.execute(action, browser)
            except (RequestRefused, ToolError) as e:
                failure = browser.failure(e)
                browser.unchanged += 1
            tree = state.current_accessibility_tree
            named = declared.describe(action, partial(describe_element, tree, browser.named))
            browser.state = replace(browser.state, action_string=named, error_message=failure)
            if failure:
                report = f"{named} failed: {failure}"
                return ErrorObservation(text=report), report
            for_code = declared.reads_only or declared.returns_data  # it prints from the result
            summary = declared.report(result) if for_code else result
            report = f"{named}: {summary}" if summary else ""
            result = result if for_code else report
            return BrowserObservation(text=result, url=browser.state.step_url), report

    def start_at(self, url: str) -> None:
        """Open an address of a task as its start page; a note reports the result.

        An address that is not approved stays closed, so that the model can ask for it itself.

        Raises:
            BrowserServerError: the server or the browser failed.
        """
        action = BrowserAction(name="goto", value=url)
        with self._lock:
            try:
                if self._approve(action) is None:
                    return
            except GuardStopped:
                return
            seen, _ = self._execute(action)
            note = f"opened {url}, an address of the task"
            if isinstance(seen, ErrorObservation):
                note = f"could not open the address of the task: {seen.text}"
            else:
                browser = self._browser
                browser.state = replace(browser.state, target_url=url, curr_step=0)
            self._browser.pending.append(note)

    def step_state(self, action_string: str) -> str:
        """Do the action of an action string; return its result or the reason of its failure.

        Raises:
            BrowserServerError: the server or the browser failed.
            GuardStopped: the approver ends the run.
            PageRefused: the settings forbid the first page.
        """
        try:
            return Guard(self, self._approver).execute(parse_action(action_string)).text
        except ParseError as e:
            return f"not done: {e}"

    def reset_to_state(self, target: WebState | Mapping[str, Any]) -> bool:
        """Return to the page of an earlier state, if the browser shows another one.

        This restores only the address, not typed text or clicks.

        Args:
            target: the state, or its dict (`to_dict`, a step's `web_state_before`).

        Returns:
            Whether the browser had to return.

        Raises:
            BrowserServerError: the server or the browser failed, or the page cannot be opened.
        """
        state = target if isinstance(target, WebState) else WebState.create_from_dict(target)
        with self._lock:
            url = state.step_url or state.target_url
            if not url or url == self._browser.state.step_url:
                return False
            result, _ = self._execute(BrowserAction(name="goto", value=url))
            if isinstance(result, ErrorObservation):
                raise BrowserServerError(f"cannot return to {url}: {result.text}")
            count = self._browser.state.num_revert_state + 1
            self._browser.state = replace(self._browser.state, num_revert_state=count)
            return True

    def sync_files(self) -> list[str]:
        """Copy new downloads to the working directory; return the relative paths of all copies.

        Raises:
            BrowserServerError: the server or the browser failed.
        """
        with self._lock:
            self._browser.apply(self._browser.observe(LEAN))
            return list(self._browser.state.downloaded_file_path)

    def get_state(self) -> WebState:
        """Return the last known state, without a request to the browser."""
        with self._lock:
            return self._browser.state

    def state(self) -> dict[str, Any]:
        """Return `get_state` as a dict, for the log."""
        return self.get_state().to_dict()

    @property
    def sandbox(self) -> Sandbox | None:
        """The leased browser; None after `close`."""
        return self._browser.lease.sandbox

    def named(self, action: Action) -> Action:
        """Return the action with its current target and the page's URL, for approvers."""
        if not isinstance(action, BrowserAction) or action.name not in ACTIONS:
            return action
        with self._lock:
            return self._browser.describe_target(action)

    def picture(self, action: Action | None = None) -> PictureData | None:
        """Return a small picture of the page with the boxes of its elements, for people.

        Raises:
            BrowserServerError: the server took none.
        """
        if isinstance(action, BrowserAction) and action.name in ACTIONS:
            if ACTIONS[action.name].reads_only:
                return None
        else:
            action = None
        with self._lock:
            return step_picture(self._browser, action)

    def stop(self) -> None:
        """Close the browser, and release a server that this process started.

        Later calls have no effect.
        """
        # without the lock: another thread may be in the middle of a slow action
        self._browser.close()

    def close(self) -> None:
        """The same as `stop`."""
        self.stop()

    def suspend(self) -> dict[str, Any] | None:
        """Disconnect without closing the browser; see `Environment.suspend`."""
        with self._lock:
            return self._browser.suspend()

    def park(self) -> dict[str, Any] | None:
        """Disconnect for a later run of this process; see `Environment.park`."""
        with self._lock:
            return self._browser.suspend(after_exit=False)

    def lease(self) -> dict[str, Any] | None:
        """Return how to reconnect after a kill; see `Environment.lease`."""
        with self._lock:
            return self._browser.facts_after_kill()

    def hold(self, held: bool) -> bool:
        """Keep the browser, also if this process is killed; see `Environment.hold`."""
        # without the lock: the approver may ask a person in the middle of an observation
        kept = self._browser.lease.hold(held)
        if held:
            self._browser.lease.renew()
        return kept

    def _check_setting(self, declared: WebAction) -> None:
        """Raise ToolError for an action that a setting switches off."""
        if declared.setting and not getattr(self.config, declared.setting):
            raise ToolError(f"the setting {declared.setting} of the browser switches this off")

    # --- parts -----------------------------------------------------------------------------

    def _return_to(self, url: str) -> None:
        """Open the last page of a resumed run in its new browser."""
        if url != self._browser.state.step_url:
            self._execute(BrowserAction(name="goto", value=url))
        self._browser.pending.append(_NEW_BROWSER)

    def _approve(self, action: BrowserAction) -> BrowserAction | None:
        """Return an action of this program as approved; None if it was rejected."""
        if type(self._approver) is AutoApprover:
            return action
        action = self._browser.describe_target(action)
        try:
            require_approval(self._approver, action)
        except ActionRejected:
            return None
        return action

    def _page_text(self) -> str:
        text = self._browser.state.current_accessibility_tree.rstrip()
        limit = self.config.max_page_chars
        if len(text) <= limit:
            return text
        end = text.rfind("\n", 0, limit)
        return text[: end if end > 0 else limit] + "\n(the page text is truncated here)"

    def _footer(self) -> list[str]:
        """Return the notes below the page; clear the pending ones."""
        browser, state = self._browser, self._browser.state
        tree = state.current_accessibility_tree
        pending, browser.pending = browser.pending, []
        shown = "\n".join(server_messages(tree))
        notes = [line for line in pending if line not in shown]
        notes += filter(None, [*page_notices(tree), browser.banners.notice()])
        if names := allowed_names(self.config.secret_domains(), state.step_url):
            typed = ", ".join(f"{{{{secret:{name}}}}}" for name in names)
            notes.append(f"type these texts as they are; the browser fills in the secrets: {typed}")
        if browser.without_effect:
            notes.append(
                f"the last {browser.unchanged} actions changed nothing on the page: try another way"
            )
        lines = [f"Note: {note}" for note in notes]
        if state.downloaded_file_path:
            lines.append(f"Downloaded files: {', '.join(state.downloaded_file_path)}")
        return lines
