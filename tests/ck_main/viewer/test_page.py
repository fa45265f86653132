"""The viewer's page in Chromium: the table, runs, steps, model calls, comparison, live runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from viewer_pages import Viewer, many_rows, serving
from viewer_runs import RunWriter

pytestmark = [pytest.mark.integration, pytest.mark.browser]


def test_the_table_filters_and_sorts_and_the_address_keeps_both(viewer: Viewer) -> None:
    page = viewer.show("/")
    rows = page.locator(".run-table tbody tr:not(.space)")
    expect(rows).to_have_count(7)
    page.get_by_role("button", name=re.compile(r"^wrong")).click()
    expect(rows).to_have_count(3)
    page.get_by_label("Output").select_option("b.jsonl")
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Sums")).to_contain_text("1 of 7")
    page.reload()
    expect(rows).to_have_count(1)
    assert "score=wrong" in viewer.hash() and "source=b.jsonl" in viewer.hash()
    page = viewer.show("/")
    page.get_by_role("columnheader", name="Steps").get_by_role("button").click()
    expect(rows.first).to_contain_text("long")
    expect(page.get_by_role("columnheader", name="Steps")).to_have_attribute(
        "aria-sort", "descending"
    )
    page.get_by_role("searchbox").fill("parallel")
    expect(rows).to_have_count(2)


def test_the_search_finds_texts_inside_runs_and_opens_their_step(viewer: Viewer) -> None:
    page = viewer.show("/?q=crossing zebra")
    hits = page.get_by_role("region", name="Matches inside runs")
    # the index may still be read: search again until it has this run
    for _ in range(100):
        if hits.get_by_role("link").count():
            break
        page.reload()
        page.locator("#main").wait_for()
        hits.wait_for()
    expect(page.locator(".run-table tbody tr:not(.space)").first).to_contain_text("one")
    hits.get_by_role("link", name=re.compile("thought")).first.click()
    expect(page.get_by_role("region", name="Thought")).to_contain_text("zebra crossing")


def test_a_long_table_draws_only_the_rows_in_view(chromium: Browser, tmp_path: Path) -> None:
    with serving(many_rows(tmp_path, 2000)) as app:
        viewer = Viewer(chromium, app)
        page = viewer.page
        table = page.get_by_role("table", name="Runs")
        expect(table).to_have_attribute("aria-rowcount", "2001")
        assert page.locator(".run-table tbody tr:not(.space)").count() < 60
        viewer.press("G")
        expect(page.get_by_role("link", name="task01999")).to_be_focused()
        viewer.press("Enter")
        page.get_by_role("tree").wait_for()
        page.go_back()  # the reader's place is kept
        expect(page.get_by_role("link", name="task01999")).to_be_visible()
        viewer.close()


def test_a_run_shows_its_result_and_where_tokens_went(viewer: Viewer) -> None:
    page = viewer.show(f"/run/{viewer.key('one')}")
    expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text("42")
    expect(page.get_by_role("region", name="Expected answer")).to_contain_text("42")
    agents = page.get_by_role("region", name="Agents (2)")
    expect(agents.get_by_role("link")).to_have_text(["ck_agent", "web_agent"])
    page = viewer.show(f"/run/{viewer.key('parallel')}")
    page.get_by_role("region", name="Steps with errors").get_by_role("link").click()
    expect(page.get_by_role("region", name="Observation")).to_contain_text("no price")


def test_a_step_shows_what_happened_in_order(viewer: Viewer) -> None:
    key = viewer.key("one")
    page = viewer.show(f"/run/{key}/main-one/0")
    plan = page.get_by_role("region", name="Plan")
    expect(plan).to_contain_text("First the page.")
    expect(plan.locator(".added")).to_have_count(2)
    expect(page.get_by_role("region", name="Code")).to_contain_text("web_agent('look')")
    expect(page.get_by_role("region", name="Observation")).to_contain_text("got")
    page.get_by_role("link", name=re.compile("Enter web_agent")).click()
    expect(page.get_by_role("region", name="Calls (1)", exact=True)).to_contain_text(
        "clicked link 'Help'"
    )
    expect(page.get_by_role("region", name="Page", exact=True)).to_contain_text(
        "http://site.test/0"
    )
    assert page.locator(".page-text mark").inner_text() == "[2] link 'Help'"


def test_the_target_of_each_action_is_drawn_on_its_picture(viewer: Viewer) -> None:
    page = viewer.show(f"/run/{viewer.key('picture')}/main-picture/0")
    image = page.get_by_role("img", name=re.compile("Screenshot before: click .2. button 'Buy'"))
    expect(image).to_be_visible()
    drawn = page.locator("rect.target").bounding_box()
    whole = image.bounding_box()
    assert drawn and whole
    scale = whole["width"] / 1280
    found = [(drawn["x"] - whole["x"]) / scale, (drawn["y"] - whole["y"]) / scale]
    assert found == pytest.approx([10, 20], abs=4)
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.get_by_role("group", name="Page text")).to_contain_text("RootWebArea")


def test_a_model_call_shows_its_exact_input_and_what_is_new(viewer: Viewer) -> None:
    key = viewer.key("long")
    page = viewer.show(f"/run/{key}/main-long/3")
    page.get_by_role("region", name="Model calls (1)").get_by_role("link").click()
    assert viewer.hash() == f"#/run/{key}/main-long/3/call/0"
    expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text(
        "Thought 3: look."
    )
    given = page.get_by_role("region", name="Input")
    # six messages are those of the previous call: folded, and shaded when opened
    expect(given.get_by_role("article")).to_have_count(2)
    given.get_by_role("button", name=re.compile("6 messages as in the previous call")).click()
    expect(given.locator(".message.same")).to_have_count(6)
    given.get_by_role("button", name="All messages").click()
    expect(given.get_by_role("article")).to_have_count(8)
    viewer.press("d")
    expect(given.locator(".diff-line.added")).to_have_count(7)
    expect(given.locator(".diff-line.removed")).to_have_count(0)
    given.get_by_role("link", name="previous").click()
    assert viewer.hash() == f"#/run/{key}/main-long/2/call/0"
    exact = viewer.json(f"/api/run/{key}/call/main-long/2/0")["messages"]
    given.get_by_role("button", name="All messages").click()
    expect(given.get_by_role("article")).to_have_count(len(exact))


def test_the_timeline_opens_steps_and_puts_parallel_agents_side_by_side(viewer: Viewer) -> None:
    page = viewer.show(f"/run/{viewer.key('parallel')}")
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_role("list", name="Time by kind")).to_contain_text("in 4 lanes")
    canvas = timeline.get_by_role("img")
    box = canvas.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 28)
    expect(timeline.locator(".tip")).to_contain_text("ck_agent")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 28)
    expect(page.get_by_role("navigation", name="Place in the run")).to_contain_text("ck_agent")
    timeline.get_by_role("button", name="Zoom in").click()
    expect(timeline.get_by_role("button", name="Zoom out")).to_be_enabled()
    viewer.press("t")
    expect(timeline).to_have_count(0)


def test_outputs_are_compared_by_task(viewer: Viewer) -> None:
    page = viewer.show("/")
    page.get_by_role("link", name="Compare outputs").click()
    rows = page.get_by_role("table", name="Tasks compared").locator("tbody tr:not(.space)")
    expect(rows).to_have_count(5)
    expect(rows.nth(0)).to_contain_text("one")
    expect(rows.nth(0)).to_contain_text("worse")
    expect(rows.nth(1)).to_contain_text("better")
    page.get_by_role("button", name=re.compile("^better")).click()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Swap").click()
    expect(rows.nth(0)).to_contain_text("one")  # the other way round, "one" is better
    page.reload()
    expect(rows.nth(0)).to_contain_text("one")


def test_new_steps_appear_and_the_reader_stays(chromium: Browser, tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "live" / "task", "task")
    run.step(0)
    with serving(tmp_path / "live") as app:
        viewer = Viewer(chromium, app)
        key = viewer.key("task")
        page = viewer.show(f"/run/{key}/main-task/0")
        rows = page.get_by_role("treeitem")
        expect(rows).to_have_count(2)
        run.step(1, thought="Newly thought.")
        expect(rows).to_have_count(3)
        assert viewer.hash().endswith("main-task/0")
        page.get_by_role("button", name="1 new step").click()
        expect(page.get_by_role("region", name="Thought")).to_contain_text("Newly thought.")
        viewer.press("f")
        run.step(2, thought="Followed.")
        expect(page.get_by_role("region", name="Thought")).to_contain_text("Followed.")
        run.finish(i=2)
        expect(page.locator(".run-head")).to_contain_text("done")
        viewer.close()


def test_long_texts_fold_and_copy_whole(viewer: Viewer) -> None:
    viewer.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = viewer.show(f"/run/{viewer.key('hostile')}/main-hostile/0")
    observation = page.get_by_role("region", name="Observation")
    expect(observation).to_be_visible()
    assert len(observation.inner_text()) < 20_000
    observation.get_by_role("button", name=re.compile("Show 200.0 k characters more")).click()
    expect(observation.get_by_role("button", name="Fold")).to_be_visible()
    assert 200_000 < len(observation.inner_text()) < 250_000
    observation.get_by_role("button", name="Copy observation").click()
    expect(observation.get_by_text("copied")).to_be_visible()
    copied = "async () => (await navigator.clipboard.readText()).length"
    assert page.evaluate(copied) == 10_000_000
    viewer.press("c")
    expect(page.get_by_text("Link copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url


def test_a_missing_run_and_a_missing_step_are_said_in_one_line(viewer: Viewer) -> None:
    expect(viewer.show("/run/000000000000").get_by_role("alert")).to_contain_text("there is no run")
    page = viewer.show(f"/run/{viewer.key('one')}/main-one/99")
    expect(page.get_by_role("alert")).to_contain_text("there is no step")
    page = viewer.show(f"/run/{viewer.key('one')}/%E0%A4%A/x")
    expect(page.locator("#main")).to_be_visible()
