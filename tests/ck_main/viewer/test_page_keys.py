"""The viewer by keyboard alone: no test here uses the mouse."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from pytest import mark
from viewer_pages import Viewer

pytestmark = [mark.integration, mark.browser]


def selected(page: Page) -> str:
    return page.locator("[role=treeitem][aria-selected=true]").inner_text()


def test_every_view_of_a_run_is_reached_by_keys(viewer: Viewer) -> None:
    viewer.show("/")
    page, key = viewer.page, viewer.key("one")
    viewer.press("j", "k")
    expect(page.get_by_role("link", name="one").first).to_be_focused()
    viewer.press("Enter")
    expect(page.get_by_role("tree")).to_be_focused()
    viewer.press("j", "j")  # the main agent, then its first step
    assert viewer.hash() == f"#/run/{key}/main-one/0"
    viewer.press("Enter")  # into the sub-agent
    assert viewer.hash() == f"#/run/{key}/web-one/0"
    expect(page.get_by_role("region", name="Calls (1)", exact=True)).to_be_visible()
    viewer.press("]")
    assert viewer.hash() == f"#/run/{key}/web-one/0/call/0"
    expect(page.get_by_role("region", name="Input (2 messages)")).to_be_visible()
    viewer.press("Escape", "u")  # to the step, then to the step that called the agent
    assert viewer.hash() == f"#/run/{key}/main-one/0"
    viewer.press("G")
    assert viewer.hash() == f"#/run/{key}/main-one/1"
    viewer.press("g")
    assert viewer.hash() == f"#/run/{key}/main-one"
    viewer.press("Escape", "Escape")
    assert viewer.hash() == "#/"
    page.go_back()
    expect(page.get_by_role("tree")).to_be_visible()


def test_the_tree_folds_and_keeps_the_selected_row_in_view(viewer: Viewer) -> None:
    key = viewer.key("parallel")
    page = viewer.show(f"/run/{key}/sub1-parallel/1")
    rows = page.get_by_role("treeitem")
    expect(rows).to_have_count(15)
    viewer.press("ArrowLeft")
    assert viewer.hash() == f"#/run/{key}/sub1-parallel"
    expect(rows).to_have_count(12)
    viewer.press("ArrowRight", "ArrowDown")
    expect(rows).to_have_count(15)
    assert "Part 1, look 0." in selected(page)
    viewer.press("g", "e")
    assert viewer.hash() == f"#/run/{key}/main-parallel/0"
    page = viewer.show(f"/run/{viewer.key('long')}/main-long/39")
    expect(page.locator("[role=treeitem][aria-selected=true]")).to_be_in_viewport()
    for _ in range(39):
        viewer.press("k")
    expect(page.locator("[role=treeitem][aria-selected=true]")).to_be_in_viewport()
    assert "Thought 0" in selected(page)


def test_search_help_and_colours_have_keys(viewer: Viewer) -> None:
    page = viewer.show("/")
    viewer.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("zebra j?")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    assert "zebra+j%3F" in page.url
    page.get_by_role("searchbox").fill("")
    viewer.press("Escape", "?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    viewer.press("Escape")
    expect(dialog).to_have_count(0)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    viewer.press("C", "C")  # the system's, light, dark
    assert page.evaluate(ground) != light
    page.reload()
    page.locator("#main").wait_for()
    assert page.evaluate(ground) != light


def test_tab_reaches_every_part_and_focus_is_visible(viewer: Viewer) -> None:
    page = viewer.show(f"/run/{viewer.key('one')}/web-one/0")
    expect(page.get_by_role("region", name="Calls (1)", exact=True)).to_be_visible()
    viewer.press("/")  # the keyboard was used last
    page.locator(".skip").focus()
    reached = []
    for _ in range(30):
        name, ring = page.evaluate(
            """() => {
                const at = document.activeElement;
                const styles = [at, at.querySelector('[aria-selected="true"]')].filter(Boolean)
                    .map((one) => getComputedStyle(one));
                const ring = styles.some((one) => one.outlineStyle !== 'none'
                    && parseFloat(one.outlineWidth) > 0);
                return [at.getAttribute('aria-label') || at.textContent.trim().slice(0, 30), ring];
            }"""
        )
        if page.evaluate("document.activeElement === document.body"):
            break  # past the last element
        assert ring, f"the focus on {name!r} is not visible"
        reached.append(name)
        viewer.press("Tab")
    for part in ("Skip to the content", "Runs", "Agents and steps", "Selected step", "Copy code"):
        assert part in reached, reached


def test_the_comparison_is_read_by_keys(viewer: Viewer) -> None:
    page = viewer.show("/compare?of=a.jsonl|b.jsonl")
    expect(page.locator("tr.selected")).to_contain_text("one")
    viewer.press("j")
    expect(page.locator("tr.selected")).to_contain_text("parallel")
    viewer.press("Enter")
    expect(page.get_by_role("tree")).to_be_visible()
