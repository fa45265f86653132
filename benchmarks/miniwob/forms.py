"""Policies for tasks with forms."""

from __future__ import annotations

import re

from benchmarks.miniwob.world import Element, PolicyFailed, World, matched, ordinal, policy, quoted

_MONTHS = "January February March April May June July August September October November December"


@policy("enter-text", "enter-text-dynamic", "enter-password")
def enter_quoted(world: World) -> None:
    """Type the quoted text into all fields."""
    for field in world.observe().of("textbox"):
        world.type(field, quoted(world.task)[0])
    world.submit()


@policy("enter-text-2")
def enter_in_case(world: World) -> None:
    """Type the text in upper or lower case."""
    text = quoted(world.task)[0]
    text = text.upper() if "upper case" in world.task else text.lower()
    world.type(world.observe().of("textbox")[0], text)
    world.submit()


@policy("text-transform")
def enter_shown(world: World) -> None:
    """Type the letters that are drawn one by one."""
    screen = world.observe()
    world.type(screen.of("textbox")[0], "".join(screen.texts()).replace(" ", ""))
    world.submit()


@policy("login-user", "login-user-popup")
def log_in(world: World) -> None:
    """Fill in name and password; close pop-ups."""
    name, password = quoted(world.task)[:2]
    for field, text in (("username", name), ("password", password)):
        screen = world.observe()
        for button in screen.of("button"):
            if re.search("cancel|close|no", button.name, re.IGNORECASE):
                world.click(button)
                screen = world.observe()
                break
        fields = [e for e in screen.of("textbox") if e["hint"] == field]
        world.type(fields[0], text)
    screen = world.observe()
    for button in screen.of("button"):
        if re.search("cancel|close", button.name, re.IGNORECASE):
            world.click(button)
    screen = world.observe()
    world.click(next(e for e in screen.of("button") if e.name in ("Login", "OK")))


@policy("enter-date")
def enter_date(world: World) -> None:
    """Fill in a date field, in the form year-month-day."""
    month, day, year = matched(r"(\d\d)/(\d\d)/(\d{4})", world.task).groups()
    world.type(world.observe().of("Date")[0], f"{year}-{month}-{day}")
    world.submit()


@policy("enter-time")
def enter_time(world: World) -> None:
    """Fill in a time field, in the form hour:minute of 24 hours."""
    hour, minute, half = matched(r"(\d+):(\d\d) ([AP]M)", world.task).groups()
    hours = int(hour) % 12 + (12 if half == "PM" else 0)
    world.type(world.observe().of("InputTime")[0], f"{hours:02}:{minute}")
    world.submit()


@policy("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def choose_date(world: World) -> None:
    """Choose a day in the calendar that the field opens."""
    month, day, year = (int(n) for n in matched(r"(\d+)/(\d+)/(\d+)", world.task).groups())
    world.click(next(e for e in world.observe().of("textbox") if e["hint"] == "datepicker"))
    pick_day(world, year, month, day)
    world.submit()


def pick_day(world: World, year: int, month: int, day: int) -> None:
    """Click a day in an open calendar."""
    for _ in range(40):
        screen = world.observe()
        text = " ".join(e.name for e in screen.elements)
        shown = matched(rf"({_MONTHS.replace(' ', '|')})\s+(\d{{4}})", text)
        months = (year - int(shown[2])) * 12 + month - 1 - _MONTHS.split().index(shown[1])
        if months == 0:
            world.click(screen.named(str(day), "link"))
            return
        world.click(screen.named("Prev" if months < 0 else "Next"))
    raise PolicyFailed("the calendar does not reach the month")


@policy("use-autocomplete", "use-autocomplete-nodelay")
def autocomplete(world: World) -> None:
    """Type the beginning and choose the suggestion with the given end."""
    begin, *end = quoted(world.task)
    world.type(world.observe().of("textbox")[0], begin)
    world.click(_suggested(world, begin, end[0] if end else ""))
    world.submit()


def _suggested(world: World, begin: str, end: str = "") -> Element:
    for _ in range(20):
        for option in world.observe().elements:
            name = option.name.strip()
            inner = option.role not in ("textbox", "StaticText") or option.has("clickable")
            if inner and name.startswith(begin) and name.endswith(end):
                return option
        world.act("wait")
    raise PolicyFailed(f"no suggestion begins with {begin!r}")


@policy("book-flight", "book-flight-nodelay")
def book_flight(world: World) -> None:
    """Search the flights of a day and book the cheapest or shortest."""
    best, origin, target, month, day, year = matched(
        r"Book the (\w+) one-way flight from: (.+) to: (.+) on (\d+)/(\d+)/(\d+)", world.task
    ).groups()
    for field, place in (("From:", origin), ("To:", target)):
        code = place.strip()
        world.type(world.observe().named(field, "textbox"), code)
        world.click(_containing(world, code))
    world.click(next(e for e in world.observe().of("textbox") if e["hint"] == "datepicker"))
    pick_day(world, int(year), int(month), int(day))
    world.submit("Search")
    world.click(_best_flight(world, best))


def _containing(world: World, text: str) -> Element:
    """Return the suggestion that contains a text."""
    for _ in range(20):
        for option in world.observe().elements:
            if option.role in ("option", "menuitem", "listitem", "link", "generic") and (
                text in option.name
            ):
                return option
        world.act("wait")
    raise PolicyFailed(f"no suggestion contains {text!r}")


@policy("buy-ticket")
def buy_ticket(world: World) -> None:
    """Buy the cheapest, most expensive, longest or shortest ticket."""
    world.click(_best_flight(world, world.task))


def _best_flight(world: World, wish: str) -> Element:
    """Return the button of the best offer, after scrolling through the page."""
    offers: dict[int, tuple[float, float, Element]] = {}
    for _ in range(30):
        screen = world.observe()
        minutes = 0.0
        found_new = False
        for element in screen.elements:
            time = re.search(r"(\d+)h (\d+)m", element.name)
            if time:
                minutes = int(time[1]) * 60 + int(time[2])
            price = re.search(r"\$(\d+)", element.name)
            if price and element.role == "button" and element.id not in offers:
                offers[element.id] = (float(price[1]), minutes, element)
                found_new = True
        below = any(re.search(r"[1-9]\d* px below", e["scroll"]) for e in screen.elements)
        if not below or not found_new:
            break
        world.act("scroll_down")
    if not offers:
        raise PolicyFailed("the observation has no offer")
    by_price = "cheap" in wish or "expensive" in wish or "price" in wish
    worst = "longest" in wish or "expensive" in wish
    ranked = sorted(offers.values(), key=lambda offer: offer[0] if by_price else offer[1])
    return ranked[-1 if worst else 0][2]


@policy("multi-layouts", "multi-orderings")
def search_movies(world: World) -> None:
    """Fill in the fields by their labels, in any layout."""
    genre, director, year = matched(
        r"Search for (\w+) movies directed by (\w+) from year (\d+)", world.task
    ).groups()
    screen = world.observe()
    words = {**dict.fromkeys(("year", "date"), year), "genre": genre, "director": director}
    values = [words[word] for e in screen.elements for word in words if word in _label(e).lower()]
    for value, element in zip(values, screen.of("textbox"), strict=False):
        world.type(element, value)
    last = [e for e in world.observe().elements if e.role == "button" or e.has("clickable")][-1]
    world.click(last)


def _label(element: Element) -> str:
    """Return the label of a field: the text or heading beside it, or its name or hint."""
    return element.name if element.role != "textbox" or element.name else element["hint"]


@policy("form-sequence-2")
def radio_and_number(world: World) -> None:
    """Check a radio button and fill in a field, both by number."""
    parts = re.split(r" and ", world.task)
    for part in parts:
        screen = world.observe()
        if "radio" in part:
            world.click(screen.of("radio")[ordinal(part) - 1])
        else:
            world.type(screen.of("textbox", "spinbutton")[ordinal(part) - 1], quoted(part)[0])
    world.submit()


@policy("form-sequence-3")
def dropdown_and_button(world: World) -> None:
    """Choose in a custom list, then click the button."""
    option = matched(r"Choose (.+) from the dropdown", world.task)[1]
    world.act("select", world.observe().of("combobox")[0].id, option)
    button = world.observe().named(quoted(world.task)[0], "button")
    if button["covered by"]:  # the list is still open
        world.act("press", "Escape")
    world.click(button)
