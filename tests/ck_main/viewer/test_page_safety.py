"""The viewer's page: hostile texts stay inert, it is accessible, and it fits a phone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from axe import needs_axe, violations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, expect
from viewer_pages import HOSTILE, Viewer

from ck_pro.local_page.app import LocalApp

pytestmark = [pytest.mark.integration, pytest.mark.browser]
PLACES = {
    "table": ("/", ""),
    "nothing found": ("/?q=zzzz", ""),
    "keys": ("/", "?"),
    "run": ("/run/{parallel}", ""),
    "session": ("/run/{parallel}/sub0-parallel", ""),
    "step": ("/run/{one}/main-one/0", ""),
    "picture": ("/run/{picture}/main-picture/0", ""),
    "call": ("/run/{long}/main-long/3/call/0", ""),
    "diff": ("/run/{long}/main-long/3/call/0", "dd"),
    "hostile": ("/run/{hostile}/main-hostile/1", ""),
    "missing": ("/run/000000000000", ""),
    "compare": ("/compare?of=a.jsonl|b.jsonl", ""),
}
TEXTS = st.text(
    st.sampled_from("ab'\"#\\\n\t \r`f(){}0_.=@\u202e\u200b\x1b\x00\u2028é\U0001f600"), max_size=60
)


def open_place(viewer: Viewer, name: str) -> None:
    path, keys = PLACES[name]
    tasks = ("one", "parallel", "long", "picture", "hostile")
    viewer.show(path.format(**{task: viewer.key(task) for task in tasks}))
    expect(viewer.page.get_by_text("Loading", exact=True)).to_have_count(0)
    viewer.press(*keys)


@needs_axe
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")], ids=str
)
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_window(
    chromium: Browser, served: LocalApp, width: int, scheme: Any
) -> None:
    # only this test may evaluate scripts that the page's policy refuses
    size = {"width": width, "height": 844}
    viewer = Viewer(chromium, served, viewport=size, color_scheme=scheme, bypass_csp=True)
    found: list[str] = []
    for name in PLACES:
        open_place(viewer, name)
        found += [f"{name}: {one}" for one in violations(viewer.page)]
        if viewer.page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{name}: wider than {width} pixels")
    viewer.close()
    assert found == []


@pytest.mark.parametrize("name", ["table", "run", "step 0", "step 1", "call", "search", "compare"])
def test_hostile_texts_are_shown_and_do_nothing(viewer: Viewer, name: str) -> None:
    key = viewer.key("hostile")
    places = {
        "table": "/",
        "run": f"/run/{key}",
        "step 0": f"/run/{key}/main-hostile/0",
        "step 1": f"/run/{key}/main-hostile/1",
        "call": f"/run/{key}/main-hostile/1/call/0",
        "search": "/?q=owned",
        "compare": "/compare?of=a.jsonl|b.jsonl",
    }
    page = viewer.show(places[name])
    page.get_by_text("<script>window.owned=1").first.wait_for()
    expect(page.get_by_text("Loading", exact=True)).to_have_count(0)
    for button in page.get_by_role("button", name="Show").all():
        button.click()
    text = page.locator("body").inner_text()
    assert not set(text) & set("\u202e\u202c\u200b\x1b")
    assert page.locator("#main script, #main svg[onload], #main [onerror]").count() == 0
    assert page.locator("a[href^='javascript' i]").count() == 0
    # viewer.close() fails on any dialog, script error or request beyond the server


def test_control_characters_are_visible_marks(viewer: Viewer) -> None:
    page = viewer.show(f"/run/{viewer.key('hostile')}/main-hostile/1")
    marks = page.get_by_role("region", name="Thought").locator(".control")
    expect(marks).to_have_text(["RLO", "PDF", "ESC", "ESC", "ZWSP"])
    copied = page.evaluate(
        """async (text) => {
            const { visible } = await import('/static/inert.js');
            const join = (node) => typeof node === 'string' ? node : '';
            return [].concat(visible(text)).map(join).join('');
        }""",
        HOSTILE,
    )
    assert copied == "".join(c for c in HOSTILE if c not in "\u202e\u202c\u200b\x1b")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS, TEXTS)
def test_highlighting_and_diffs_lose_no_character(viewer: Viewer, first: str, second: str) -> None:
    tokens, before, after = viewer.page.evaluate(
        """async ([first, second]) => {
            const { tokens } = await import('/static/python.js');
            const { diffLines } = await import('/page/diff.js');
            const lines = diffLines(first, second);
            const side = (sign) => lines.filter(([kind]) => kind === '=' || kind === sign)
                .map(([, line]) => line).join('\\n');
            return [tokens(first).map(([, text]) => text).join(''), side('-'), side('+')];
        }""",
        [first, second],
    )
    assert (tokens, before, after) == (first, first, second)


def test_each_moment_of_the_timeline_counts_once(viewer: Viewer) -> None:
    spans = [
        {"sid": sid, "step": 0, "kind": kind, "name": "", "start": start, "seconds": length}
        for (sid, kind), start, length in zip(
            itertools.product(("a", "b"), ("model", "code", "page")),
            (0, 1, 2, 0, 2, 4),
            (2, 3, 1, 1, 4, 1),
            strict=True,
        )
    ]
    sessions = [
        {"sid": "a", "parent": None, "agent": "x", "depth": 0, "start": 0, "seconds": 10},
        {"sid": "b", "parent": "a", "agent": "y", "depth": 1, "start": 1, "seconds": 5},
    ]
    found = viewer.page.evaluate(
        """async ([sessions, spans]) => {
            const { timeByKind, lanesOf } = await import('/page/timeline_lanes.js');
            return [timeByKind(sessions, spans, 10), lanesOf(sessions, spans).lanes.length];
        }""",
        [sessions, spans],
    )
    # 0-2 model, 2-3 page, 3-4 code of b, 4-5 page, 5-6 code of b; then nothing is recorded
    assert found == [{"model": 2, "page": 2, "call": 0, "code": 2, "start": 0, "gap": 4}, 2]
