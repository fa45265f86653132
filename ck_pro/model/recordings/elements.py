"""Replies that do not depend on one run: elements by role and name, `{{origin}}`, `{{workdir}}`.

A recorded reply says `click(id={{button 'Search'}})`. The id that this button has now is read off
the last observation in the prompt, whose lines have the form `[4] button 'Search'`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ck_pro.exceptions import ReplayError
from ck_pro.model.recordings.normalise import ORIGIN, normalise, without_workdir
from ck_pro.model.types import CallContext, Message

_LINE = re.compile(r"^[ \t]*\[(\d+)\] ([A-Za-z]+) '(.*)'", re.MULTILINE)
_PAGE = re.compile(r"^[ \t]*\[1\] RootWebArea '", re.MULTILINE)
_REMOVED = re.compile(r"(?:removed|gone): ([\d ]+)")
_REFERENCE = re.compile(r"\{\{([A-Za-z]+) '(.*?)'(?: (\d+))?\}\}")
# calls whose first argument is an element; `id=` names one in any call
_CALL = re.compile(
    r"\b((?:click|type|select|hover|press|drag|upload|clear|check|uncheck|scroll)\(\s*"
    r"|\(?\bid\s*=\s*)(\d+)\b(?!\.\d)"
)


@dataclass(frozen=True)
class Element:
    """A line of an observation."""

    id: str
    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role} '{self.name}'"


def observed_elements(messages: Sequence[Message]) -> list[Element]:
    """The elements of the last observation in a prompt, in its order; empty when it has none.

    What follows a page may say what changed on it since: new lines, changed ones, those gone.
    """
    texts = [message_text(message) for message in messages]
    whole = next((i for i in reversed(range(len(texts))) if _PAGE.search(texts[i])), None)
    if whole is None:
        listed = (list(_LINE.finditer(text)) for text in reversed(texts))
        return [Element(*m.groups()) for m in next(filter(None, listed), ())]
    start = [m.start() for m in _PAGE.finditer(texts[whole])][-1]
    found: dict[str, Element] = {}
    for line in "\n".join([texts[whole][start:], *texts[whole + 1 :]]).split("\n"):
        if removed := _REMOVED.fullmatch(line):
            for id_ in removed[1].split():
                found.pop(id_, None)
        elif listed_ := _LINE.match(line):
            found[listed_[1]] = Element(*listed_.groups())
    return list(found.values())


def fill_reply(text: str, messages: Sequence[Message], context: CallContext) -> str:
    """Put into a recorded reply what this run has in the places of its references.

    Args:
        text: with `{{role 'name'}}` or, among several alike, `{{role 'name' 2}}` (the second);
            `{{origin}}`, the first local origin of task and prompt; `{{workdir}}`.
        messages: the prompt; its last observation has the elements.
        context: task and working directory.

    Raises:
        ReplayError: a reference cannot be resolved, or not to one element.
    """
    where = context.where()
    if _REFERENCE.search(text):
        elements = observed_elements(messages)
        text = _REFERENCE.sub(lambda m: _resolved(m, elements, where), text)
    if "{{origin}}" in text:
        origin = first_origin(messages, context)
        if not origin:
            raise ReplayError(
                f"replay: the reply for {where} needs {{{{origin}}}}, but neither the task nor the "
                "prompt names a local address"
            )
        text = text.replace("{{origin}}", origin)
    if "{{workdir}}" in text:
        if not context.workdir:
            raise ReplayError(f"replay: the reply for {where} needs {{{{workdir}}}}: there is none")
        text = text.replace("{{workdir}}", context.workdir)
    return text


def _resolved(match: re.Match[str], elements: Sequence[Element], where: str) -> str:
    role, name, ordinal = match.group(1), match.group(2), int(match.group(3) or 0)
    alike = _alike(role, name, elements)
    if len(alike) == 1 and ordinal <= 1:
        return alike[0].id
    if 1 <= ordinal <= len(alike):
        return alike[ordinal - 1].id
    if not alike:
        problem = f"is not in the observation; {_near(role, name, elements)}"
    elif not ordinal:
        ids = ", ".join(f"[{e.id}]" for e in alike)
        problem = f"means {len(alike)} elements ({ids}); write {{{{{role} '{name}' 1}}}} and so on"
    else:
        problem = f"asks for number {ordinal} of {len(alike)}"
    raise ReplayError(f"replay ({where}): {match.group(0)} {problem}")


def _alike(role: str, name: str, elements: Sequence[Element]) -> list[Element]:
    of_role = [e for e in elements if e.role.lower() == role.lower()]
    exact = [e for e in of_role if e.name == name]
    return exact or [e for e in of_role if normalise(e.name) == normalise(name)]


def _near(role: str, name: str, elements: Sequence[Element]) -> str:
    if not elements:
        return "the prompt shows no page"
    shown = {str(e): e for e in reversed(elements)}  # of several alike the first
    near = difflib.get_close_matches(f"{role} '{name}'", shown, n=3, cutoff=0.4)
    page = next((e.name for e in elements if e.role == "RootWebArea"), "")
    named = ", ".join(f"[{shown[n].id}] {n}" for n in near) or "nothing like it"
    return f"the page '{page}' has: {named}"


def template_reply(text: str, messages: Sequence[Message], context: CallContext) -> str:
    """The reply with references in the place of ids, origins and the working directory.

    `fill_reply` with the same prompt gives the reply back.
    """
    origin = first_origin(messages, context)
    if origin:
        text = re.sub(rf"{re.escape(origin)}(?![\w.-]|:\d)", "{{origin}}", text)
    text = without_workdir(text, context.workdir)
    elements = observed_elements(messages)

    def reference(match: re.Match[str]) -> str:
        element = next((e for e in elements if e.id == match.group(2)), None)
        return match.group(0) if element is None else match.group(1) + _written(element, elements)

    return _CALL.sub(reference, text)


def _written(element: Element, elements: Sequence[Element]) -> str:
    alike = _alike(element.role, element.name, elements)
    same = [e.id for e in alike]
    ordinal = f" {same.index(element.id) + 1}" if len(alike) > 1 else ""
    written = f"{{{{{element.role} '{element.name}'{ordinal}}}}}"
    read = _REFERENCE.fullmatch(written)
    # a name that could not be read back stays an id
    return written if read and read.group(2) == element.name else element.id


def first_origin(messages: Sequence[Message], context: CallContext) -> str:
    """The first local origin that the task, or else the prompt, names."""
    for text in (context.task, *(message_text(m) for m in messages)):
        if found := ORIGIN.search(text):
            return found.group(0)
    return ""


def message_text(message: Message) -> str:
    """All text of a message, whose content may be a list of parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content or ""]
    return "\n".join(str(p.get("text") or "") if isinstance(p, dict) else str(p) for p in parts)
