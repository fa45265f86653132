"""Policies for tasks with something to read: tables, texts, sums, menus, prices."""

from __future__ import annotations

import re

from benchmarks.miniwob.world import (
    Element,
    PolicyFailed,
    Screen,
    World,
    matched,
    ordinal,
    policy,
    quoted,
)


@policy("read-table", "read-table-2")
def read_table(world: World) -> None:
    """Fill in the values of the table for the labels."""
    screen = world.observe()
    values = dict(row.name.split(" | ", 1) for row in screen.of("row"))
    asked = re.search(r"the value of (.+?) into", world.task)
    label = asked[1] if asked else ""
    for element in screen.elements:
        if element.role == "textbox":
            world.type(element, values[element.name.rstrip(":") or label])
        elif element.role == "StaticText":
            label = element.name.rstrip(": ")
    world.submit()


@policy("find-word")
def find_word(world: World) -> None:
    """Type the nth word of the paragraph."""
    screen = world.observe()
    words = " ".join(screen.texts()).split()
    word = words[ordinal(world.task) - 1].strip(".,")
    world.type(screen.of("textbox")[0], word)
    world.submit()


@policy("simple-arithmetic")
def arithmetic(world: World) -> None:
    """Type the result."""
    screen = world.observe()
    a, sign, b = matched(r"(-?\d+) ([x+-]) (-?\d+)", " ".join(screen.texts())).groups()
    result = {"x": int(a) * int(b), "+": int(a) + int(b), "-": int(a) - int(b)}[sign]
    world.type(screen.of("textbox")[0], str(result))
    world.submit()


@policy("simple-algebra")
def algebra(world: World) -> None:
    """Find x by trying."""
    screen = world.observe()
    text = " ".join(screen.texts())
    left, sign, right, total = matched(r"(\w+) ([x+-]) (\w+) = (-?\d+)", text).groups()
    for x in range(-500, 501):
        a, b = (x if side == "x" else int(side) for side in (left, right))
        if {"x": a * b, "+": a + b, "-": a - b}[sign] == int(total):
            world.type(screen.of("textbox")[0], str(x))
            world.submit()
    raise PolicyFailed(f"{text!r} has no solution")


@policy("copy-paste", "copy-paste-2")
def copy_text(world: World) -> None:
    """Copy and paste by keys, because trailing spaces count and observations omit them."""
    fields = world.observe().of("textbox")
    areas = [e for e in fields if e["hint"] != "answer-input"]
    area = areas[ordinal(world.task) - 1 if len(areas) > 1 else 0]
    world.act("press", "Control+a", area.id)
    world.act("press", "Control+c")
    world.act("press", "Control+v", next(e.id for e in fields if e["hint"] == "answer-input"))
    world.submit()


@policy("scroll-text")
def last_word(world: World) -> None:
    """Type the last word of a long text; observations show only its beginning."""
    fields = world.observe().of("textbox")
    area = next(e for e in fields if e["hint"] == "text-area")
    page = world.act("read")
    begin = page.index(area["value"][:20])
    text = page[begin : page.index("\n\n", begin)]
    world.type(next(e for e in fields if e is not area), text.split()[-1].strip(".,"))
    world.submit()


@policy("scroll-text-2")
def scroll_text(world: World) -> None:
    """Scroll the text to its end, or to its beginning."""
    down = "to the bottom" in world.task
    for _ in range(30):
        area = world.observe().of("textbox")[0]
        above, below = matched(r"(\d+) px above, (\d+) px below", area["scroll"]).groups()
        if (below if down else above) == "0":
            world.submit()
        world.act("scroll_in", area.id, "down" if down else "up")
    raise PolicyFailed("the text does not scroll")


@policy("search-engine")
def search_engine(world: World) -> None:
    """Search, and click the nth result, on any page."""
    screen = world.observe()
    world.type(screen.of("textbox")[0], quoted(world.task)[0])
    world.submit("Search")
    position = ordinal(world.task)
    seen: list[str] = []
    page = 1
    while True:
        screen = world.observe()
        links = [e for e in screen.elements if e.role == "link" and not _paging(e)]
        links = links or [e for e in screen.clickables() if e.name and not _paging(e)]
        if position <= len(seen) + len(links):
            world.click(links[position - len(seen) - 1])
        seen += [e.name for e in links]
        page += 1
        world.click(screen.named(str(page), "link"))


def _paging(element: Element) -> bool:
    return re.fullmatch(r"\d+|[<>«»]", element.name.strip()) is not None or (
        element.role in ("textbox", "button", "list", "listitem")
    )


@policy("phone-book")
def phone_book(world: World) -> None:
    """Turn the pages until the name appears, then click the requested entry."""
    name = matched(r"Find (\w+) in", world.task)[1]
    what = matched(r"click on their (\w+)", world.task)[1].lower()
    for _ in range(60):
        screen = world.observe()
        if screen.maybe(name, "heading"):
            label = ""
            for element in screen.elements:
                if what in label.lower() and (element.role == "link" or element.has("clickable")):
                    world.click(element)
                label = element.name or label
        world.click(screen.named(">", "link"))
    raise PolicyFailed(f"{name!r} is not in the book")


@policy("social-media")
def social_media(world: World) -> None:
    """Click a button of a user's post, or an item in its menu `more`."""
    user, action = matched(r"For the user (\S+), click on the \"(.+)\" button", world.task).groups()
    for post in _posts(world, user):
        icons = {_icon(e): e for e in post}
        if action.lower() in icons:
            world.click(icons[action.lower()])
        world.click(icons["more"])
        for _ in range(5):  # the menu may be longer than the page
            for item in world.observe().elements:
                if item.name.lower().startswith(action.lower()):
                    world.click(item)
            world.act("scroll_down")
    raise PolicyFailed(f"the page has no post by {user}")


@policy("social-media-all", "social-media-some")
def social_media_several(world: World) -> None:
    """Click a button of all or some posts of a user."""
    asked = matched(r"Click the \"(.+)\" button on (\w+) posts? by (\S+)", world.task)
    posts = _posts(world, asked[3])
    for post in posts if asked[2] == "all" else posts[: int(asked[2])]:
        world.click(next(e for e in post if _icon(e) == asked[1].lower()))
    while not world.observe().maybe("Submit", "button"):
        world.act("scroll_down")
    world.submit()


def _icon(element: Element) -> str:
    """Return the first word of the hint, which identifies a button without a name."""
    return element["hint"].partition(" ")[0]


def _posts(world: World, user: str) -> list[list[Element]]:
    """Scroll through the page and return the lines of each post of a user."""
    posts: dict[int, list[Element]] = {}
    for _ in range(40):
        screen = world.observe()
        of_user = rf"{re.escape(user)}(?!\w)"
        for post in (p for p in _posts_in(screen) if re.search(of_user, p[0].name)):
            if not _is_whole(post) and post[0].id not in posts:  # its end is below the view
                world.act("scroll_to", post[0].id)
                post = next(p for p in _posts_in(world.observe()) if p[0].id == post[0].id)
            if _is_whole(post):
                posts[post[0].id] = post
        if not _below(screen):
            return list(posts.values())
        world.act("scroll_down")
    raise PolicyFailed("the page does not end")


def _posts_in(screen: Screen) -> list[list[Element]]:
    posts: list[list[Element]] = []
    for element in screen.elements:
        if element.role == "StaticText" and "@" in element.name:
            posts.append([])
        if posts:
            posts[-1].append(element)
    return posts


def _is_whole(post: list[Element]) -> bool:
    return any(_icon(e) == "like" for e in post)


def _below(screen: Screen) -> bool:
    """Whether the page or a box has more content below."""
    return any(re.search(r"[1-9]\d* px below", e["scroll"]) for e in screen.elements)


@policy("order-food")
def order_food(world: World) -> None:
    """Click + beside the dishes, by name or kind."""
    by_name = re.search(r"one of each item: (.+)", world.task)
    expected = by_name[1].split(", ") if by_name else []
    count = re.search(r"Order (\d+) items that are (.+)", world.task)
    left = int(count[1]) if count else 0
    done: set[str] = set()
    for _ in range(40):
        screen = world.observe()
        for dish, kinds, plus in _dishes(screen):
            if dish in done:
                continue
            if dish in expected or (count and left and count[2].strip().lower() in kinds):
                world.click(plus)
                done.add(dish)
                left -= 1
        if (by_name and done >= {*expected}) or (count and left <= 0):
            break
        if not _below(screen):
            raise PolicyFailed("not all dishes are on the menu")
        world.act("scroll_down")
    for _ in range(40):
        button = next((b for b in world.observe().of("button")), None)
        if button:
            world.click(button)
        world.act("scroll_down")


def _dishes(screen: Screen) -> list[tuple[str, list[str], Element]]:
    """Return name, kinds and + of each dish in view."""
    dishes = []
    name, kinds = "", [""]
    for element in screen.elements:
        if (
            element.role == "StaticText"
            and element.name not in "+-"
            and not (element.name.isdigit())
        ):
            name, kinds = element.name, []
        elif element.role == "image":
            kinds.append(element.name.lower())
        elif element.name == "+" and name:
            dishes.append((name, kinds, element))
            name = ""
    return dishes


@policy("stock-market")
def stock_market(world: World) -> None:
    """Observe the price and buy when it is low enough."""
    limit = float(matched(r"less than \$([\d.]+\d)", world.task)[1])
    for _ in range(400):
        screen = world.observe()
        price = re.search(r"\$([\d.]+)", " ".join(screen.texts()))
        # the price may change between observation and click
        if price and float(price[1]) < limit:
            world.click(screen.named("Buy", "button"))
    raise PolicyFailed("the price was never low enough")


@policy("terminal")
def terminal(world: World) -> None:
    """List the files and delete the one with the extension."""
    field = next(e for e in world.observe().of("textbox") if e["hint"] == "terminal-target")
    world.type(field, "ls", enter=True)
    text = " ".join(e.name for e in world.observe().elements)
    listed = matched(r"user\$ ?ls (.*?) ?user\$", text)[1].split()
    ending = re.search(r"the extension (\.\S+)", world.task)
    for name in listed:
        if name.endswith(ending[1]) if ending else "." not in name:
            field = next(e for e in world.observe().of("textbox") if e["hint"] == "terminal-target")
            world.type(field, f"rm {name}", enter=True)
    raise PolicyFailed(f"no such file among {listed}")
