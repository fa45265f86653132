"""Policies for tasks with values: sliders, spinners, colours, numbers."""

from __future__ import annotations

import re

from benchmarks.miniwob.colors import NAMED_COLORS
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


@policy("use-slider", "form-sequence")
def use_slider(world: World) -> None:
    """Move the slider by keys to the number."""
    number = int(matched(r"Select (-?\d+) with the slider", world.task)[1])
    move_slider(world, 0, number)
    if "checkbox" in world.task:
        world.click(world.observe().of("checkbox")[ordinal(world.task) - 1])
    world.submit()


@policy("use-slider-2")
def use_sliders(world: World) -> None:
    """Move three sliders."""
    numbers = matched(r"\[(.*)\]", world.task)[1].split(",")
    for i, number in enumerate(numbers):
        move_slider(world, i, int(number))
    world.submit()


def move_slider(world: World, index: int, number: int) -> None:
    """Move a slider to a number; the page shows it after the slider."""
    for _ in range(60):
        handles, shown = _sliders(world.observe())
        if shown[index] == number:
            return
        keys = "ArrowRight" if shown[index] < number else "ArrowLeft"
        world.act("press", keys, handles[index].id)
    raise PolicyFailed(f"the slider does not reach {number}")


def _sliders(screen: Screen) -> tuple[list[Element], list[int]]:
    """Return the handles, and the number after each."""
    handles: list[Element] = []
    shown: list[int] = []
    for element in screen.elements:
        if "slider-handle" in element["hint"] or element.role == "slider":
            handles.append(element)
        elif len(shown) < len(handles) and re.fullmatch(r"-?\d+", element.name):
            shown.append(int(element.name))
    if not handles or len(handles) != len(shown):
        raise PolicyFailed("the observation has no sliders with numbers")
    return handles, shown


@policy("use-spinner")
def use_spinner(world: World) -> None:
    """Click the buttons of the spinner; the first click shows which one is up."""
    number = int(matched(r"Select (-?\d+) with the spinner", world.task)[1])
    first, second = (b for b in world.observe().of("button") if not b.name)
    before = _spun(world)
    world.click(first)
    up, down = (first, second) if _spun(world) > before else (second, first)
    while _spun(world) != number:
        world.click(up if _spun(world) < number else down)
    world.submit()


def _spun(world: World) -> int:
    return int(world.observe().of("spinbutton")[0]["value"])


@policy("use-colorwheel")
def use_colorwheel(world: World) -> None:
    """Type the value of the colour into the field of the wheel."""
    name = matched(r"Select (\w+) with", world.task)[1]
    world.type(world.observe().of("textbox")[0], "{:02X}{:02X}{:02X}".format(*NAMED_COLORS[name]))
    world.click_named("Color:", "StaticText")  # a click outside closes the wheel
    world.submit()


@policy("sign-agreement")
def sign_agreement(world: World) -> None:
    """Scroll to the end, sign, and agree or cancel."""
    if "enter the name" not in world.task:
        world.click_named("Cancel", "button")
    name, button = quoted(world.task)
    for _ in range(30):
        screen = world.observe()
        if not screen.named("Name", "textbox").has("disabled"):
            break
        world.act("scroll_in", screen.of("textbox")[0].id, "down")
    world.type(world.observe().named("Name", "textbox"), name)
    world.click_named(button, "button")


@policy("generate-number")
def generate_number(world: World) -> None:
    """Generate numbers until one fits."""
    wish = world.task
    for _ in range(100):
        world.click_named("Generate", "button")
        text = next((t for t in world.observe().texts() if re.fullmatch(r"-?\d+", t)), None)
        if text and _fits(wish, int(text)):
            world.submit()
    raise PolicyFailed("no generated number fits")


def _fits(wish: str, number: int) -> bool:
    numbers = [int(n) for n in re.findall(r"-?\d+", wish)]
    if "even" in wish:
        return number % 2 == 0
    if "odd" in wish:
        return number % 2 == 1
    if "greater" in wish:
        return number > numbers[0]
    if "less" in wish:
        return number < numbers[0]
    if "between" in wish:
        return numbers[0] <= number <= numbers[1]
    raise PolicyFailed(f"{wish!r} has an unknown form")


@policy("guess-number")
def guess_number(world: World) -> None:
    """Guess by bisection."""
    low, high = (int(n) for n in matched(r"between (\d+)-(\d+)", world.task).groups())
    while low <= high:
        middle = (low + high) // 2
        world.type(world.observe().of("spinbutton", "textbox")[0], str(middle))
        world.submit()
        hint = " ".join(world.observe().texts()).lower()
        if "higher" in hint or "greater" in hint:
            low = middle + 1
        elif "lower" in hint or "less" in hint:
            high = middle - 1
    raise PolicyFailed("all guesses were wrong")
