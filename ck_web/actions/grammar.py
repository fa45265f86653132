"""Action strings: the small language between the web agent's functions and `WebEnv`.

`PREDEFINED_WEB_ACTIONS` writes them, `parse_action` reads them; both are pure. The first block is
the grammar that web agents of this family have used before, with quoted paths added:

```
click [3] name            type [3] text             type [3] text[NOENTER]
scroll down | scroll up   wait [seconds]            goback | restart
goto URL                  save remote local         screenshot 1 [path]
stop ["answer", "summary"]                          nop

read | read 2             find text                 select [3] option | select [3] ["a", "b"]
check [3] | uncheck [3]   clear [3]                 hover [3]
press Control+a           press [3] Tab Enter       type_text words | type_text words[ENTER]
drag [3] to [5]           drag [3] to 10,20         drag [3] by 40,0
upload [3] report.csv "b c.csv"                     select_text some words | select_text [3] words
scroll_in [3] down        scroll_to [3]             scroll_to some text
click_at 10 20 right double Control                 move 10 20
drag_path 10,20 30,40     wheel 300 | wheel 300 0 at 10,20
click_at [3] 10 20        move [3] 10 20            drag_path [3] 10,20 30,40
goforward                 new_tab URL               switch_tab 1
close_tab | close_tab 1   wait_for 10s some text    wait_for 2s
answer_dialog dismiss     answer_dialog accept some text
```

Reading is tolerant: brackets may be missing, case does not matter, texts may hold newlines. What
follows `click [3]` is a hint for people. A text to type is taken exactly: one space after the
target, then every character. A text that itself ends in `[NOENTER]` is written with `[ENTER]`
after it. Paths with spaces are written in double quotes, as JSON strings; so are texts to find or
to wait for that begin with a quote or a bracket, or with white space at an end.
"""

from __future__ import annotations

from collections.abc import Callable

from ck_web.actions import write as writers
from ck_web.actions.parse import parse_action

__all__ = ["FURTHER_WEB_ACTIONS", "PREDEFINED_WEB_ACTIONS", "parse_action"]

_SEED: tuple[Callable[..., str], ...] = (
    writers.click,
    writers.type_into,
    writers.scroll_up,
    writers.scroll_down,
    writers.wait,
    writers.goback,
    writers.restart,
    writers.goto,
    writers.save,
    writers.screenshot,
    writers.stop,
    writers.nop,
)
_FURTHER: tuple[Callable[..., str], ...] = (
    writers.read,
    writers.find,
    writers.select,
    writers.check,
    writers.uncheck,
    writers.clear,
    writers.press,
    writers.type_text,
    writers.hover,
    writers.drag,
    writers.upload,
    writers.scroll_in,
    writers.scroll_to,
    writers.select_text,
    writers.click_at,
    writers.move,
    writers.drag_path,
    writers.wheel,
    writers.goforward,
    writers.new_tab,
    writers.switch_tab,
    writers.close_tab,
    writers.wait_for,
    writers.answer_dialog,
)


def _named(functions: tuple[Callable[..., str], ...]) -> dict[str, Callable[..., str]]:
    # a module cannot well have a function of its own called `type`
    return {"type" if f is writers.type_into else f.__name__: f for f in functions}


FURTHER_WEB_ACTIONS: dict[str, Callable[..., str]] = _named(_FURTHER)
"""Those of `PREDEFINED_WEB_ACTIONS` that prompts show by one line each."""

PREDEFINED_WEB_ACTIONS: dict[str, Callable[..., str]] = {**_named(_SEED), **FURTHER_WEB_ACTIONS}
"""Name of each web function -> what writes its action string from the function's arguments."""
