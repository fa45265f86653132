"""Policies for tasks that are done by filling in forms."""

from __future__ import annotations

import re

from miniwob_world import Element, GaveUp, World, matched, ordinal, policy, quoted

_MONTHS = "January February March April May June July August September October November December"


@policy("enter-text", "enter-text-dynamic", "enter-password")
def enter_quoted(world: World) -> None:
    """Type what is in quotes into all fields."""
    for field in world.look().of("textbox"):
        world.type(field, quoted(world.task)[0])
    world.submit()


@policy("enter-text-2")
def enter_in_case(world: World) -> None:
    """Type the text in upper or lower case."""
    text = quoted(world.task)[0]
    text = text.upper() if "upper case" in world.task else text.lower()
    world.type(world.look().of("textbox")[0], text)
    world.submit()


@policy("text-transform")
def enter_shown(world: World) -> None:
    """Type the letters that are drawn one by one."""
    screen = world.look()
    world.type(screen.of("textbox")[0], "".join(screen.texts()).replace(" ", ""))
    world.submit()


@policy("login-user", "login-user-popup")
def log_in(world: World) -> None:
    """Fill in name and password; send away what pops up."""
    name, password = quoted(world.task)[:2]
    for field, text in (("username", name), ("password", password)):
        screen = world.look()
        for button in screen.of("button"):
            if re.search("cancel|close|no", button.name, re.IGNORECASE):
                world.click(button)
                screen = world.look()
                break
        fields = [e for e in screen.of("textbox") if e["hint"] == field]
        world.type(fields[0], text)
    screen = world.look()
    for button in screen.of("button"):
        if re.search("cancel|close", button.name, re.IGNORECASE):
            world.click(button)
    screen = world.look()
    world.click(next(e for e in screen.of("button") if e.name in ("Login", "OK")))


@policy("enter-date")
def enter_date(world: World) -> None:
    """Fill in a date field, whose value is written year-month-day."""
    month, day, year = matched(r"(\d\d)/(\d\d)/(\d{4})", world.task).groups()
    world.type(world.look().of("Date")[0], f"{year}-{month}-{day}")
    world.submit()


@policy("enter-time")
def enter_time(world: World) -> None:
    """Fill in a time field, whose value is written hour:minute of 24 hours."""
    hour, minute, half = matched(r"(\d+):(\d\d) ([AP]M)", world.task).groups()
    hours = int(hour) % 12 + (12 if half == "PM" else 0)
    world.type(world.look().of("InputTime")[0], f"{hours:02}:{minute}")
    world.submit()


@policy("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def choose_date(world: World) -> None:
    """Choose a day in the calendar that the field opens."""
    month, day, year = (int(n) for n in matched(r"(\d+)/(\d+)/(\d+)", world.task).groups())
    world.click(next(e for e in world.look().of("textbox") if e["hint"] == "datepicker"))
    pick_day(world, year, month, day)
    world.submit()


def pick_day(world: World, year: int, month: int, day: int) -> None:
    """Go to the month in an open calendar and click the day."""
    for _ in range(40):
        screen = world.look()
        text = " ".join(e.name for e in screen.elements)
        shown = matched(rf"({_MONTHS.replace(' ', '|')})\s+(\d{{4}})", text)
        months = (year - int(shown[2])) * 12 + month - 1 - _MONTHS.split().index(shown[1])
        if months == 0:
            world.click(screen.named(str(day), "link"))
            return
        world.click(screen.named("Prev" if months < 0 else "Next"))
    raise GaveUp("the calendar does not get to the month")


@policy("use-autocomplete", "use-autocomplete-nodelay")
def autocomplete(world: World) -> None:
    """Type the beginning and choose a suggestion that ends as asked."""
    begin, *end = quoted(world.task)
    world.type(world.look().of("textbox")[0], begin)
    world.click(_suggested(world, begin, end[0] if end else ""))
    world.submit()


def _suggested(world: World, begin: str, end: str = "") -> Element:
    for _ in range(20):
        for option in world.look().elements:
            name = option.name.strip()
            inner = option.role not in ("textbox", "StaticText") or option.has("clickable")
            if inner and name.startswith(begin) and name.endswith(end):
                return option
        world.act("wait")
    raise GaveUp(f"nothing that begins with {begin!r} is suggested")


@policy("book-flight", "book-flight-nodelay")
def book_flight(world: World) -> None:
    """Search the flights of the day and book the cheapest or shortest."""
    best, origin, target, month, day, year = matched(
        r"Book the (\w+) one-way flight from: (.+) to: (.+) on (\d+)/(\d+)/(\d+)", world.task
    ).groups()
    for field, place in (("From:", origin), ("To:", target)):
        code = place.strip()
        world.type(world.look().named(field, "textbox"), code)
        world.click(_containing(world, code))
    world.click(next(e for e in world.look().of("textbox") if e["hint"] == "datepicker"))
    pick_day(world, int(year), int(month), int(day))
    world.submit("Search")
    world.click(_best_flight(world, best))


def _containing(world: World, text: str) -> Element:
    """The suggestion that has a text in it."""
    for _ in range(20):
        for option in world.look().elements:
            if option.role in ("option", "menuitem", "listitem", "link", "generic") and (
                text in option.name
            ):
                return option
        world.act("wait")
    raise GaveUp(f"nothing with {text!r} is suggested")


@policy("buy-ticket")
def buy_ticket(world: World) -> None:
    """Buy the ticket that is cheapest, dearest, longest or shortest."""
    world.click(_best_flight(world, world.task))


def _best_flight(world: World, wish: str) -> Element:
    """The button of the best offer; the page is read down to its end, in parts."""
    offers: dict[int, tuple[float, float, Element]] = {}
    for _ in range(30):
        screen = world.look()
        minutes = 0.0
        fresh = False
        for element in screen.elements:
            time = re.search(r"(\d+)h (\d+)m", element.name)
            if time:
                minutes = int(time[1]) * 60 + int(time[2])
            price = re.search(r"\$(\d+)", element.name)
            if price and element.role == "button" and element.id not in offers:
                offers[element.id] = (float(price[1]), minutes, element)
                fresh = True
        below = any(re.search(r"[1-9]\d* px below", e["scroll"]) for e in screen.elements)
        if not below or not fresh:
            break
        world.act("scroll_down")
    if not offers:
        raise GaveUp("no offer is seen")
    by_price = "cheap" in wish or "expensive" in wish or "price" in wish
    worst = "longest" in wish or "expensive" in wish
    ranked = sorted(offers.values(), key=lambda offer: offer[0] if by_price else offer[1])
    return ranked[-1 if worst else 0][2]


@policy("multi-layouts", "multi-orderings")
def search_movies(world: World) -> None:
    """Fill in the fields by their labels, wherever they are."""
    genre, director, year = matched(
        r"Search for (\w+) movies directed by (\w+) from year (\d+)", world.task
    ).groups()
    screen = world.look()
    words = {**dict.fromkeys(("year", "date"), year), "genre": genre, "director": director}
    values = [words[word] for e in screen.elements for word in words if word in _label(e).lower()]
    for value, element in zip(values, screen.of("textbox"), strict=False):
        world.type(element, value)
    last = [e for e in world.look().elements if e.role == "button" or e.has("clickable")][-1]
    world.click(last)


def _label(element: Element) -> str:
    """What says what a field is for: a text or heading of a table's row, or the field itself."""
    return element.name if element.role != "textbox" or element.name else element["hint"]


@policy("form-sequence-2")
def radio_and_number(world: World) -> None:
    """Check a radio button and fill in a field, both by their number."""
    parts = re.split(r" and ", world.task)
    for part in parts:
        screen = world.look()
        if "radio" in part:
            world.click(screen.of("radio")[ordinal(part) - 1])
        else:
            world.type(screen.of("textbox", "spinbutton")[ordinal(part) - 1], quoted(part)[0])
    world.submit()


@policy("form-sequence-3")
def dropdown_and_button(world: World) -> None:
    """Choose in a list that is not a real one, then press the button."""
    option = matched(r"Choose (.+) from the dropdown", world.task)[1]
    world.act("select", world.look().of("combobox")[0].id, option)
    button = world.look().named(quoted(world.task)[0], "button")
    if button["covered by"]:  # by the list of the drawn control, which stayed open
        world.act("press", "Escape")
    world.click(button)
