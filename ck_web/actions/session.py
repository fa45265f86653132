"""Actions on the run: save a file, turn screenshots on, stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ActionTarget, BareAction, WebAction, web_action
from ck_web.actions.tokens import (
    NUMBER,
    json_of,
    json_text,
    path_of,
    quote,
    unbracketed,
    write_number,
    write_path,
)
from ck_web.page.page_text import one_line

_PAIR = rf"({NUMBER})[, ]\s*({NUMBER})"
_UNMARKED = re.compile(r"unmarked(?=\s|$)", re.IGNORECASE)
_REGION = re.compile(rf"region\s+{_PAIR}\s+{_PAIR}(?=\s|$)", re.IGNORECASE)
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


@web_action(
    "screenshot",
    "screenshot 1 path",
    "screenshot 0",
    "screenshot 1 unmarked",
    "screenshot 1 region 10,20 300,200",
    in_prompt="full",
)
class Screenshot(WebAction):
    """Turn screenshots of the page on (True) or off (False).

    With save_path, also save an image of the whole page there. marks=False: without ids.
    region=[x, y, width, height]: once only that part, enlarged.
    """

    def write(
        self,
        flag: bool,
        save_path: str = "",
        marks: bool = True,
        region: list[float] | None = None,
    ) -> str:
        path = str(save_path or "")
        shown = _FLAGS.get(str(flag).lower())
        if shown is None:
            raise ParseError(f"screenshot takes True or False, not {quote(str(flag))}")
        words = [
            f"screenshot {int(shown)}",
            "" if marks else "unmarked",
            f"region {_region_text(region)}" if region is not None else "",
            write_path(path) if path else "",
        ]
        return " ".join(word for word in words if word)

    def parse(self, rest: str) -> BrowserAction:
        flag, _, rest = unbracketed(rest).partition(" ")
        if flag.lower() not in _FLAGS:
            raise ParseError(f"screenshot takes 1 or 0 first, not {quote(flag)}")
        given: dict[str, Any] = {"flag": _FLAGS[flag.lower()]}
        rest = rest.strip()
        if found := _UNMARKED.match(rest):
            given["marks"], rest = False, rest[found.end() :].strip()
        if found := _REGION.match(rest):
            given["region"] = [float(number) for number in found.groups()]
            rest = rest[found.end() :].strip()
        path = path_of(rest)[0] if rest.startswith('"') else rest
        return self.action(**given, path=path)

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        given = action.arguments
        return browser.set_screenshots(
            given["flag"], given["path"], given.get("marks"), given.get("region")
        )


def _region_text(region: list[float]) -> str:
    if len(region) != 4 or min(region[2:]) <= 0:
        raise ParseError("region needs four numbers: [x, y, width, height]")
    x, y, width, height = (write_number(number) for number in region)
    return f"{x},{y} {width},{height}"


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
