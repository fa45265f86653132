"""Policies for the tasks with a mail box."""

from __future__ import annotations

import re

from benchmarks.miniwob.world import Element, PolicyFailed, Screen, World, matched, policy


@policy(
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
)
def mail(world: World) -> None:
    """Find a mail by its sender, and delete, star, answer or forward it."""
    sender = matched(r"Find the email by (\w+)", world.task)[1]
    if "trash" in world.task:
        _press(world, sender, "trash")
    if "star" in world.task:
        _press(world, sender, "star")
    forward = re.search(r"forward that email to (\w+)", world.task)
    if forward:
        _forward(world, sender, forward[1])
    _reply(world, sender, matched(r'with the text "(.*)"', world.task)[1])


@policy("email-inbox-forward-nl", "email-inbox-forward-nl-turk", "email-inbox-nl-turk")
def mail_in_words(world: World) -> None:
    """The same for tasks in free wording."""
    senders = {name for name in _senders(world) if re.search(rf"\b{name}\b", world.task)}
    if not senders:
        raise PolicyFailed("the task names no sender in the mail box")
    sender = _from(world.task, senders)
    wish = world.task.lower()
    text = re.search(r'"(.*)"', world.task)
    if re.search(r"\b(delete|trash|erase|remove|rid|discard|garbage|bin)\b", wish):
        _press(world, sender, "trash")
    if re.search(r"\b(star|starred|important|importance|favorite|flag)\b", wish):
        _press(world, sender, "star")
    if re.search(r"\b(repl\w+|respond|answer|response|write)\b", wish) and "forward" not in wish:
        given = text or matched(
            r"(?:with|saying|say|text|message|respond|reply|:)[ ,:]+(.+)$", world.task
        )
        _reply(world, sender, re.sub(r"^(the )?(text|words?|message) ", "", given[1]))
    others = [name for name in re.findall(r"\b[A-Z][a-z]+\b", world.task[1:]) if name != sender]
    if not others:
        raise PolicyFailed("the task names no recipient")
    _forward(world, sender, others[-1])


def _from(task: str, senders: set[str]) -> str:
    """Return the name of the sender."""
    for name in senders:
        if re.search(rf"(from|by|of)\s+{name}\b|{name}('s| sent| wrote| gave)", task):
            return name
    if len(senders) == 1:
        return next(iter(senders))
    for name in senders:
        if not re.search(rf"\bto\s+{name}\b", task):
            return name
    raise PolicyFailed("the sender is ambiguous")


def _threads(screen: Screen) -> dict[str, Element]:
    """Map senders to the lines of their mails."""
    return {
        e.children[0].name: e
        for e in screen.clickables()
        if e.children and e.children[0].role == "StaticText" and not e.name
    }


def _senders(world: World) -> set[str]:
    names: set[str] = set()
    for _ in range(20):
        screen = world.observe()
        names |= set(_threads(screen))
        if not _scrolled(world, screen):
            break
    while _scrolled(world, world.observe(), up=True):
        pass
    return names


def _scrolled(world: World, screen: Screen, up: bool = False) -> bool:
    """Scroll if the page has more; returns whether it has."""
    side = "above" if up else "below"
    if not any(re.search(rf"[1-9]\d* px {side}", e["scroll"]) for e in screen.elements):
        return False
    world.act("scroll_up" if up else "scroll_down")
    return True


def _thread(world: World, sender: str, inside: str = "") -> Element:
    """Scroll to the mail of a sender and return its line, or an icon in it."""
    for _ in range(20):
        screen = world.observe()
        thread = _threads(screen).get(sender)
        if thread is not None:
            icons = [e for e in thread.walk() if e["hint"].split(" ")[0] == inside]
            if not inside:
                return thread
            if icons:
                return icons[0]
        if not _scrolled(world, screen):
            break
    raise PolicyFailed(f"the mail box has no mail by {sender}")


def _press(world: World, sender: str, icon: str) -> None:
    world.click(_thread(world, sender, icon))


def _open(world: World, sender: str, button: str) -> None:
    """Open a mail and click Reply or Forward, which are icons without a name."""
    world.click(_first_text(_thread(world, sender)))
    for _ in range(20):
        screen = world.observe()
        for element in screen.elements:
            if element.has("clickable") and button in f"{element['hint']} {element.name.lower()}":
                world.click(element)
                return
        if not _scrolled(world, screen):
            break
    raise PolicyFailed(f"the mail has no {button}")


def _first_text(thread: Element) -> Element:
    """Return the part of the line that is not an icon."""
    return thread.children[0]


def _reply(world: World, sender: str, text: str) -> None:
    _open(world, sender, "reply")
    world.type(world.observe().of("textbox")[-1], text)
    _send(world, "reply")


def _forward(world: World, sender: str, to: str) -> None:
    _open(world, sender, "forward")
    world.type(world.observe().of("textbox")[0], to)
    _send(world, "forward")


def _send(world: World, kind: str) -> None:
    for element in world.observe().elements:
        if "send" in element["hint"] or element.name.lower() == "send":
            world.click(element)
    raise PolicyFailed("the page has no send button")
