"""Actions on the run: save a file, turn screenshots on, stop."""

from __future__ import annotations

from collections.abc import Callable

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ActionTarget, BareAction, WebAction, web_action
from ck_web.actions.tokens import json_of, json_text, path_of, quote, unbracketed, write_path
from ck_web.page.page_text import one_line

_FLAGS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


@web_action("save", "save remote local", "save URL local", in_prompt="full")
class Save(WebAction):
    """Copy a download (by its listed name) to local_path in the working directory.

    remote_path may also be a URL, such as that of an image.
    """

    def write(self, remote_path: str, local_path: str) -> str:
        return f"save {write_path(str(remote_path))} {write_path(str(local_path))}"

    def parse(self, rest: str) -> BrowserAction:
        remote, rest = path_of(rest)
        local, rest = path_of(rest)
        if not remote or not local or rest.strip():
            raise ParseError(
                "save needs two paths, the download and the new file; "
                'write a path with spaces in double quotes: save "a b.csv" b.csv'
            )
        return self.action(remote=remote, local=local)

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        return [one_line(action.arguments["remote"])]

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.save(action.arguments["remote"], action.arguments["local"])


@web_action("screenshot", "screenshot 1 path", "screenshot 0", in_prompt="full")
class Screenshot(WebAction):
    """Turn screenshots of the page on (True) or off (False).

    With save_path, also save an image of the whole page there.
    """

    def write(self, flag: bool, save_path: str = "") -> str:
        path = str(save_path or "")
        shown = _FLAGS.get(str(flag).lower())
        if shown is None:
            raise ParseError(f"screenshot takes True or False, not {quote(str(flag))}")
        return f"screenshot {int(shown)} {write_path(path) if path else ''}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        flag, _, path = unbracketed(rest).partition(" ")
        if flag.lower() not in _FLAGS:
            raise ParseError(f"screenshot takes 1 or 0 first, not {quote(flag)}")
        path = path.strip()
        path = path_of(path)[0] if path.startswith('"') else path
        return self.action(flag=_FLAGS[flag.lower()], path=path)

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.set_screenshots(action.arguments["flag"], action.arguments["path"])


class _WithoutEffect(WebAction):
    """Base of actions that do nothing in the browser."""

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return "nothing to do in the browser"


@web_action("stop", 'stop ["answer", "summary"]', in_prompt="never")
class Stop(_WithoutEffect):
    """End the task."""

    def write(self, answer: str = "", summary: str = "") -> str:
        return f"stop {json_text([str(answer), str(summary)])}"

    def parse(self, rest: str) -> BrowserAction:
        given = json_of(rest)
        if isinstance(given, list) and len(given) == 2:
            answer, summary = (str(part) for part in given)
        else:
            answer, summary = unbracketed(rest), ""
        return self.action(answer=answer, summary=summary)


@web_action("nop", "nop", in_prompt="never")
class Nop(_WithoutEffect, BareAction):
    """Do nothing."""
