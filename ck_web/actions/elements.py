"""Actions on an element of the page, or on the focused one: click, type, select, drag and so on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ElementAction, WebAction, web_action
from ck_web.actions.tokens import (
    free_text_of,
    hold_field,
    hold_word,
    json_list_of,
    json_text,
    optional_target_of,
    path_of,
    plain_id,
    point_of,
    quote,
    target_of,
    text_of,
    typed_text_of,
    unbracketed,
    write_free_text,
    write_optional_target,
    write_path,
    write_point,
    write_target,
    write_typed_text,
)
from ck_web.page.page_text import one_line

_DIRECTIONS = ("down", "up", "left", "right")


@web_action("click", "click [3] name", "click [button 'Save']", in_prompt="full")
class Click(WebAction):
    """Click an element: its id or name, as in click("Save", role="button"), for any id below.

    link_name is for the log.
    """

    roles = ("*",)

    def write(self, id: int | str, link_name: str = "", role: str = "") -> str:
        return f"click {write_target(id, role)} {link_name}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        target, link_name = target_of(self.name, rest)
        return self.action(target, link_name=link_name.strip())


@web_action(
    "type",
    "type [3] text",
    "type [3] text[NOENTER]",
    "type [textbox 'Name'] text",
    in_prompt="full",
)
class Type(WebAction):
    """Replace the content of the field [id].

    Then press Enter, which submits most forms. Pass enter=False to fill in several fields.
    """

    roles = ("textbox", "searchbox", "spinbutton", "combobox")
    value_name = "content"

    def write(self, id: int | str, content: str, enter: bool = True, role: str = "") -> str:
        return f"type {write_target(id, role)} {write_typed_text(content, enter, default=True)}"

    def parse(self, rest: str) -> BrowserAction:
        target, content = target_of(self.name, rest)
        content, enter = typed_text_of(content, default=True)
        return self.action(target, content, enter=enter)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"needEnter": bool(action.arguments.get("enter"))}


@web_action("select", "select [3] label", 'select [3] ["a", "b"]')
class Select(WebAction):
    """Choose an option by its label, or several (a list)."""

    roles = ("combobox", "listbox")
    value_name = "option"

    def write(self, id: int | str, option: str | list[str], role: str = "") -> str:
        shown = write_target(id, role)
        if not isinstance(option, str) and isinstance(option, Iterable):
            return f"select {shown} {json_text([str(o) for o in option])}"
        label = str(option)
        plain = label == label.strip() and not label.startswith("[")
        return f"select {shown} {label if plain else json_text([label])}"

    def parse(self, rest: str) -> BrowserAction:
        target, option = target_of(self.name, rest)
        option = option.strip()
        values = json_list_of(option)
        if not option or values == []:
            raise ParseError("select needs the label of an option: select [3] label")
        if values is None or len(values) == 1:
            return self.action(target, values[0] if values else option)
        return self.action(target, ", ".join(values), values=values)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        values = action.arguments.get("values")
        return {"actionName": "select_option", "values": values} if values else {}


@web_action("check", "check [3]")
class Check(ElementAction):
    """Turn a checkbox or radio button on."""

    roles = ("checkbox", "switch", "radio")


@web_action("uncheck", "uncheck [3]")
class Uncheck(ElementAction):
    """Turn a checkbox off."""

    roles = ("checkbox", "switch")


@web_action("clear", "clear [3]")
class Clear(ElementAction):
    """Empty a field."""

    roles = ("textbox", "searchbox", "spinbutton")


@web_action("edit", 'edit [3] ["old", "new"]')
class Edit(WebAction):
    """Replace the text `old` in a field or editor, and nothing else."""

    roles = ("textbox",)
    value_name = "old"
    keeps_message = True

    def write(self, id: int | str, old: str, new: str, role: str = "") -> str:
        return f"edit {write_target(id, role)} {json_text([str(old), str(new)])}"

    def parse(self, rest: str) -> BrowserAction:
        target, texts = target_of(self.name, rest)
        given = json_list_of(texts.strip())
        if given is None or len(given) != 2 or not given[0]:
            raise ParseError('edit needs the old text and the new one: edit [3] ["old", "new"]')
        return self.action(target, given[0], new=given[1])

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.arguments["new"]}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        return ["by", repr(one_line(action.arguments["new"]))]


@web_action("press", "press Control+a", "press [3] Tab Enter")
class Press(WebAction):
    """Press keys, such as "Escape" or "Control+a", at the focus or in [id]."""

    value_name = "keys"
    at_focus = True

    def write(self, keys: str, id: int | str | None = None) -> str:
        return f"press {write_optional_target(id)}{keys}"

    def parse(self, rest: str) -> BrowserAction:
        target, keys = optional_target_of(rest)  # a bare number is a key
        if not keys.split():
            raise ParseError("press needs a key: press Enter, press Control+a, press [3] Escape")
        return self.action(target, " ".join(keys.split()))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        keys = (action.value or "").split()
        return {"keys": keys, "actionValue": "", **hold_field(action.arguments)}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        return [word] if (word := hold_word(action.arguments)) else []


@web_action("type_text", "type_text words", "type_text words[ENTER]")
class TypeText(WebAction):
    """Type text at the focus."""

    quotes_value = True
    at_focus = True

    def write(self, text: str, enter: bool = False) -> str:
        return f"type_text {write_typed_text(text, enter, default=False)}"

    def parse(self, rest: str) -> BrowserAction:
        content, enter = typed_text_of(rest, default=False)
        if not content and not enter:
            raise ParseError("type_text needs a text: type_text some words")
        return self.action(value=content, enter=enter)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        enter = bool(action.arguments.get("enter"))
        return {"text": action.value or "", "needEnter": enter, "actionValue": ""}


@web_action("hover", "hover [3]")
class Hover(ElementAction):
    """Move the mouse over [id]."""

    roles = ("*",)
    expects_change = False


@web_action("drag", "drag [3] to [5]", "drag [3] to 10,20", "drag [3] by 40,0")
class Drag(WebAction):
    """Drag [id] onto [to_id], to x, y, or by [right, down] pixels."""

    def write(
        self,
        id: int | str,
        to_id: int | str | None = None,
        x: float | None = None,
        y: float | None = None,
        by: Sequence[float] | None = None,
    ) -> str:
        shown = write_target(id)
        if to_id is not None:
            return f"drag {shown} to {write_target(to_id)}"
        if by is not None:
            return f"drag {shown} by {write_point(by)}"
        if x is None or y is None:
            raise ParseError("drag needs to_id, or both x and y, or by=[right, down]")
        return f"drag {shown} to {write_point((x, y))}"

    def parse(self, rest: str) -> BrowserAction:
        target, where = target_of(self.name, rest)
        where = re.sub(r"\A\s*to\b", "", where, flags=re.IGNORECASE).strip()
        if distance := re.fullmatch(r"by\b(.*)", where, re.IGNORECASE | re.DOTALL):
            right, down, _ = point_of("drag [3] by", distance[1])
            return self.action(target, by=[right, down])
        onto, after = optional_target_of(where)
        if (onto and not after) or where.isdecimal():
            return self.action(target, to=onto or plain_id(where))
        x, y, _ = point_of("drag [3] to", where)
        return self.action(target, x=x, y=y)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        given = action.arguments
        if "to" in given:
            return {"toId": given["to"]}
        if "by" in given:
            return {"deltaX": given["by"][0], "deltaY": given["by"][1]}
        return {"x": given["x"], "y": given["y"]}

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        given = action.arguments
        if "to" in given:
            return ["to", element(given["to"])]
        if "by" in given:
            return [f"by {given['by'][0]:g},{given['by'][1]:g}"]
        return [f"to {given['x']:g},{given['y']:g}"]


class _Upload(WebAction):
    """Base of both functions that upload files."""

    def parse(self, rest: str) -> BrowserAction:
        to_page = rest.lstrip().startswith('"')
        target, rest = ("", rest.lstrip()) if to_page else target_of(self.name, rest)
        paths = []
        while rest.strip():
            path, rest = path_of(rest)
            paths.append(path)
        if not all(paths) or not paths:
            raise ParseError("upload needs a file of the working directory: upload [3] report.csv")
        return self.action(target, paths=paths)

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        return [one_line(", ".join(action.arguments["paths"]))]


@web_action("upload", 'upload [3] report.csv "b c.csv"')
class Upload(_Upload):
    """Upload a file of the working directory (or a list) to [id]."""

    roles = ("button",)

    def write(self, id: int | str, path: str | list[str]) -> str:
        return f"upload {write_target(id)} {' '.join(write_path(p) for p in _as_list(path))}"


class UploadToPage(_Upload):
    """Upload a file of the working directory (or a list), after a click opened a file chooser."""

    name = "upload"

    def write(self, path: str | list[str]) -> str:
        return f"upload {' '.join(json_text(p) for p in _as_list(path))}"


@web_action("scroll_in", "scroll_in [3] down")
class ScrollIn(WebAction):
    """Scroll inside [id]."""

    value_name = "direction"

    def write(self, id: int | str, direction: str = "down") -> str:
        return f"scroll_in {write_target(id)} {direction}"

    def parse(self, rest: str) -> BrowserAction:
        target, direction = target_of(self.name, rest)
        direction = unbracketed(direction).lower() or "down"
        if direction not in _DIRECTIONS:
            known = ", ".join(_DIRECTIONS)
            raise ParseError(f"scroll_in takes one of {known}, not {quote(direction)}")
        return self.action(target, direction)


@web_action("scroll_to", "scroll_to [3]", "scroll_to some text")
class ScrollTo(WebAction):
    """Scroll to an id or a text."""

    quotes_value = True

    def write(self, target: int | str) -> str:
        shown = f"[{target}]" if isinstance(target, int) else write_free_text(target)
        return f"scroll_to {shown}"

    def parse(self, rest: str) -> BrowserAction:
        target, after = optional_target_of(rest)
        if target and not after.strip():
            return self.action(target)
        return self.action(value=text_of(self.name, rest))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.value or "", "actionValue": ""}


@web_action("select_text", "select_text some words", "select_text [3] words", "select_text [3]")
class SelectText(WebAction):
    """Select text on the page or in [id] (all of it if no text is given)."""

    quotes_value = True

    def write(self, text: str = "", id: int | str | None = None) -> str:
        if id is None:
            return f"select_text {write_free_text(text)}"
        return f"select_text {write_target(id)} {write_free_text(text) if text else ''}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        target, text = optional_target_of(rest)
        if not target:
            return self.action(value=text_of(self.name, text))
        return self.action(target, free_text_of(text.strip()))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.value or "", "actionValue": ""}


def _as_list(path: str | list[str]) -> list[str]:
    paths = [path] if isinstance(path, str) or not isinstance(path, Iterable) else path
    return [str(p) for p in paths]
