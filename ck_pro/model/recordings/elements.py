"""Make recorded replies independent of their run: references replace ids, origins and folders.

A recorded reply says `click(id={{button 'Search'}})`. On replay, the button's current id is read
from the last observation in the prompt, whose lines have the form `[4] button 'Search'`.
`{{origin}}` and `{{workdir}}` stand for the local server and the working directory. For
comparisons, `normalise` replaces all that differs between runs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ck_pro.exceptions import ReplayError
from ck_pro.model.types import CallContext, Message

_LINE = re.compile(r"^[ \t]*\[(\d+)\] ([A-Za-z]+) '(.*)'", re.MULTILINE)
_PAGE = re.compile(r"^[ \t]*\[1\] RootWebArea '", re.MULTILINE)
_REMOVED = re.compile(r"(?:removed|gone): ([\d ]+)")
_REFERENCE = re.compile(r"\{\{([A-Za-z]+) '(.*?)'(?: (\d+))?\}\}")
# calls whose first argument is an element; in other calls, `id=` names one
_CALL = re.compile(
    r"\b((?:click|type|select|hover|press|drag|upload|clear|check|uncheck|scroll)\(\s*"
    r"|\(?\bid\s*=\s*)(\d+)\b(?!\.\d)"
)

_LOOPBACK = r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])"
_HOST_ENDS = r"(?![\w-]|\.\w|:\d)"
ORIGIN = re.compile(rf"https?://{_LOOPBACK}(?::\d{{1,5}})?{_HOST_ENDS}", re.IGNORECASE)
"""The origin of a server on this machine."""

_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_HEX4 = r"[0-9a-f]{4}"
_TMP = r"/(?:tmp|var/tmp|dev/shm|(?:private/)?var/folders|private/tmp)"

_TASK_RULES = [
    (ORIGIN, "{{origin}}"),
    (re.compile(rf"(?<![\w.-]){_LOOPBACK}:\d{{1,5}}{_HOST_ENDS}", re.IGNORECASE), "{{host}}"),
    (re.compile(rf"(?<![\w.]){_TMP}(?:/[\w.+@-]+)+"), "{{path}}"),
    (re.compile(rf"\b[0-9a-f]{{8}}-(?:{_HEX4}-){{3}}[0-9a-f]{{12}}\b", re.IGNORECASE), "{{id}}"),
]
_RULES = [
    *_TASK_RULES,
    (
        re.compile(rf"\b{_DATE}(?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?{_ZONE})?\b"),
        "{{time}}",
    ),
    (re.compile(rf"\b{_CLOCK}{_ZONE}\b"), "{{time}}"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,}\b"), "{{id}}"),
    (re.compile(r"\b(port[ :=]+)\d{2,5}\b", re.IGNORECASE), r"\1{{port}}"),
    (re.compile(r"\[\d+\]"), "[#]"),
]


@dataclass(frozen=True)
class Element:
    """An element in a line of an observation."""

    id: str
    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role} '{self.name}'"


def observed_elements(messages: Sequence[Message]) -> list[Element]:
    """Return the elements of the last observation in a prompt, in order.

    After a complete page, later messages may have page diffs: new, changed and removed lines.
    """
    texts = [message_text(message) for message in messages]
    last_page = next((i for i in reversed(range(len(texts))) if _PAGE.search(texts[i])), None)
    if last_page is None:
        lines = (list(_LINE.finditer(text)) for text in reversed(texts))
        return [Element(*m.groups()) for m in next(filter(None, lines), ())]
    start = [m.start() for m in _PAGE.finditer(texts[last_page])][-1]
    found: dict[str, Element] = {}
    for line in "\n".join([texts[last_page][start:], *texts[last_page + 1 :]]).split("\n"):
        if removed := _REMOVED.fullmatch(line):
            for id_ in removed[1].split():
                found.pop(id_, None)
        elif element := _LINE.match(line):
            found[element[1]] = Element(*element.groups())
    return list(found.values())


def fill_reply(text: str, messages: Sequence[Message], context: CallContext) -> str:
    """Replace the references of a recorded reply by the values of this run.

    Args:
        text: with `{{role 'name'}}`, or `{{role 'name' 2}}` for the second of several;
            `{{origin}}`, the first local origin of the task or prompt; `{{workdir}}`.
        messages: the prompt; its last observation has the elements.
        context: has the task and the working directory.

    Raises:
        ReplayError: a reference matches no element or several.
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
                "prompt has a local URL"
            )
        text = text.replace("{{origin}}", origin)
    if "{{workdir}}" in text:
        if not context.workdir:
            raise ReplayError(
                f"replay: the reply for {where} needs {{{{workdir}}}}, but this run has none"
            )
        text = text.replace("{{workdir}}", context.workdir)
    return text


def _resolved(match: re.Match[str], elements: Sequence[Element], where: str) -> str:
    role, name, ordinal = match.group(1), match.group(2), int(match.group(3) or 0)
    matches = _matching(role, name, elements)
    if len(matches) == 1 and ordinal <= 1:
        return matches[0].id
    if 1 <= ordinal <= len(matches):
        return matches[ordinal - 1].id
    if not matches:
        problem = f"is not in the observation; {_near(role, name, elements)}"
    elif not ordinal:
        ids = ", ".join(f"[{e.id}]" for e in matches)
        problem = f"matches {len(matches)} elements ({ids}); choose one: {{{{{role} '{name}' 1}}}}"
    else:
        problem = f"selects number {ordinal} of {len(matches)} elements"
    raise ReplayError(f"replay ({where}): {match.group(0)} {problem}")


def _matching(role: str, name: str, elements: Sequence[Element]) -> list[Element]:
    of_role = [e for e in elements if e.role.lower() == role.lower()]
    exact = [e for e in of_role if e.name == name]
    return exact or [e for e in of_role if normalise(e.name) == normalise(name)]


def _near(role: str, name: str, elements: Sequence[Element]) -> str:
    if not elements:
        return "the prompt contains no page"
    shown = {str(e): e for e in reversed(elements)}  # the first of several equal ones
    near = difflib.get_close_matches(f"{role} '{name}'", shown, n=3, cutoff=0.4)
    page = next((e.name for e in elements if e.role == "RootWebArea"), "")
    named = ", ".join(f"[{shown[n].id}] {n}" for n in near) or "no similar element"
    return f"the page '{page}' has: {named}"


def template_reply(text: str, messages: Sequence[Message], context: CallContext) -> str:
    """Replace ids, origins and the working directory of a reply by references.

    `fill_reply` with the same prompt restores the reply.
    """
    origin = first_origin(messages, context)
    if origin:
        text = re.sub(rf"{re.escape(origin)}(?![\w.-]|:\d)", "{{origin}}", text)
    text = without_workdir(text, context.workdir)
    elements = observed_elements(messages)

    def reference(match: re.Match[str]) -> str:
        element = next((e for e in elements if e.id == match.group(2)), None)
        return match.group(0) if element is None else match.group(1) + _reference(element, elements)

    return _CALL.sub(reference, text)


def _reference(element: Element, elements: Sequence[Element]) -> str:
    same = [e.id for e in _matching(element.role, element.name, elements)]
    ordinal = f" {same.index(element.id) + 1}" if len(same) > 1 else ""
    written = f"{{{{{element.role} '{element.name}'{ordinal}}}}}"
    read = _REFERENCE.fullmatch(written)
    # keep the id if the reference cannot be parsed back
    return written if read and read.group(2) == element.name else element.id


def first_origin(messages: Sequence[Message], context: CallContext) -> str:
    """Return the first local origin in the task, else in the prompt; "" if there is none."""
    for text in (context.task, *(message_text(m) for m in messages)):
        if found := ORIGIN.search(text):
            return found.group(0)
    return ""


def message_text(message: Message) -> str:
    """Return all text of a message, whose content may be a list of parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content or ""]
    return "\n".join(str(p.get("text") or "") if isinstance(p, dict) else str(p) for p in parts)


# --- the normal form of texts --------------------------------------------------------------------


def normalise(text: str, workdir: str = "") -> str:
    """Replace local origins, ports, ids, paths, dates and times by placeholders.

    Args:
        text: any text.
        workdir: the run's working directory; becomes `{{workdir}}`.

    Returns:
        The text with placeholders in braces. The function is idempotent.
    """
    return _applied(text, workdir, _RULES)


def normalise_task(text: str, workdir: str = "") -> str:
    """Normalise a task: like `normalise`, but keep dates and times, which may distinguish tasks."""
    return _applied(text, workdir, _TASK_RULES)


def _applied(text: str, workdir: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    before = None
    while before != text:  # the result of one rule may match another
        before = text
        text = without_workdir(text, workdir)
        for pattern, placeholder in rules:
            text = pattern.sub(placeholder, text)
    return text


def without_workdir(text: str, workdir: str) -> str:
    """Replace the complete path of the working directory by `{{workdir}}`."""
    if len(workdir) < 2:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(workdir.rstrip('/'))}(?![\w-])", "{{workdir}}", text)
