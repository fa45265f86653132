"""Labels in the real page: label in Chromium, then export, then load with the trainer's code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loaders import export, loaded
from person_browser import LIMIT
from playwright.sync_api import Browser, Page, expect
from sample_runs import make_agent, run_tasks

from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.local_page.app import LocalApp
from ck_pro.trajectory.labels import Label, LabelFile

pytestmark = [pytest.mark.integration, pytest.mark.browser]
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return run_tasks(make_agent(images=False), tmp_path / "a.jsonl", ["capital", "sum"])


@pytest.fixture
def app(runs: Path) -> Iterator[LocalApp]:
    made = create_app(Library(sources_of([runs])))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def page(chromium: Browser, app: LocalApp) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(LIMIT)
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.goto(app.url)
    yield made
    context.close()
    assert problems == []


def outline(page: Page, task: str) -> Any:
    """The outline of a task's run, from the page's own requests."""
    page.get_by_role("link", name=task).first.wait_for()
    script = """async (task) => {
        const found = await (await fetch('/api/runs')).json();
        const row = found.rows.find((one) => one[found.columns.indexOf('id')] === task);
        return (await fetch('/api/run/' + row[0])).json();
    }"""
    return page.evaluate(script, task)


def show(page: Page, app: LocalApp, *place: Any) -> None:
    base = app.url.partition("/?")[0]
    page.goto(f"{base}/#/run/{'/'.join(map(str, place))}")


def labels(page: Page, what: str) -> Any:
    return page.get_by_role("group", name=f"Label of the {what}")


def test_labels_made_in_the_page_change_what_is_trained_on(
    page: Page, app: LocalApp, runs: Path, tmp_path: Path
) -> None:
    out = {name: tmp_path / f"{name}.jsonl" for name in ("before", "sft", "dpo", "kto")}
    before = loaded("sft", export("sft", out["before"], "-i", runs))
    run = outline(page, "sum")
    sid = run["sessions"][0]["sid"]
    # by keyboard alone: a bad reply, corrected, with a comment
    show(page, app, run["key"], sid, 1, "call", 0)
    expect(labels(page, "model call")).to_be_visible()
    page.keyboard.press("n")
    expect(labels(page, "model call").get_by_role("button", name="Bad")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("m")
    expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    page.keyboard.press("r")
    field = page.get_by_label("Corrected reply")
    expect(field).to_be_focused()
    expect(field).to_have_value("42")
    page.keyboard.press("Control+a")
    page.keyboard.type("The sum is 42.")
    expect(page.get_by_role("group", name="Changes")).to_contain_text("The sum is 42.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("corrected", exact=True)).to_be_visible()
    # by mouse: a whole run
    capital = outline_of_other(page, app, "capital")
    show(page, app, capital["key"])
    labels(page, "run").get_by_role("button", name="Exclude").click()
    expect(labels(page, "run").get_by_role("button", name="Exclude")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert page.title() != "owned"
    page.reload()
    expect(labels(page, "run").get_by_role("button", name="Exclude")).to_have_attribute(
        "aria-pressed", "true"
    )
    file = tmp_path / "a.labels.jsonl"
    found = {x.target["id"]: x for x in LabelFile(file).current().values()}
    assert found["capital"].verdict == "exclude" and found["sum"].verdict == "bad"
    assert found["sum"].comment == HOSTILE
    use = ("-i", runs, "--labels", file)
    after = loaded("sft", export("sft", out["sft"], *use))
    assert {r["metadata"]["task_id"] for r in before} == {"capital", "sum"}
    assert {r["metadata"]["task_id"] for r in after} == {"sum"}
    assert after[-1]["completion"][0]["content"] == "The sum is 42."
    [pair] = loaded("dpo", export("dpo", out["dpo"], *use))
    assert [pair[k][0]["content"] for k in ("chosen", "rejected")] == ["The sum is 42.", "42"]
    by_reply = {
        r["completion"][0]["content"]: r["label"]
        for r in loaded("kto", export("kto", out["kto"], *use))
    }
    assert by_reply["The sum is 42."] is True and by_reply["42"] is False
    prepared_by_trl(out["dpo"])


def prepared_by_trl(path: Path) -> None:
    """Prepare the pairs as TRL's trainers do: chat template, and unpaired for KTO."""
    tools = pytest.importorskip("trl.data_utils", reason="pip install --no-deps trl")
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    tokenizer.chat_template = f"{turns}{{% if add_generation_prompt %}}<assistant>{{% endif %}}"
    pairs = Dataset.from_list(loaded("dpo", path))
    made = tools.maybe_apply_chat_template(pairs[0], tokenizer)
    assert made["prompt"].endswith("<assistant>")
    assert (made["chosen"], made["rejected"]) == ("The sum is 42.", "42")
    apart = tools.maybe_unpair_preference_dataset(pairs.remove_columns(["metadata", "tools"]))
    found = {row["completion"][0]["content"]: row["label"] for row in apart}
    assert found == {"The sum is 42.": True, "42": False}


def outline_of_other(page: Page, app: LocalApp, task: str) -> Any:
    page.goto(f"{app.url.partition('/?')[0]}/#/")
    return outline(page, task)


def test_labels_are_in_the_table_and_can_be_taken_back(
    page: Page, app: LocalApp, tmp_path: Path
) -> None:
    run = outline(page, "sum")
    show(page, app, run["key"], run["sessions"][0]["sid"], 0)
    good = labels(page, "step").get_by_role("button", name="Good")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("tree").get_by_label("label: good")).to_be_visible()
    page.goto(f"{app.url.partition('/?')[0]}/#/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="sum"))
    expect(row.get_by_text("good", exact=True)).to_be_visible()
    show(page, app, run["key"], run["sessions"][0]["sid"], 0)
    expect(good).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("y")
    expect(good).to_have_attribute("aria-pressed", "false")
    assert LabelFile(tmp_path / "a.labels.jsonl").current() == {}


def test_an_error_of_saving_is_shown_and_the_text_stays(
    page: Page, app: LocalApp, tmp_path: Path
) -> None:
    run = outline(page, "sum")
    sid = run["sessions"][0]["sid"]
    show(page, app, run["key"], sid, 0, "call", 0)
    page.get_by_role("button", name="Correct reply").click()
    calls = page.get_by_label("Tool calls", exact=True)
    assert json.loads(calls.input_value()) == [{"name": "add", "arguments": {"a": 20, "b": 22}}]
    calls.fill('[{"name": "ad", "arguments": {"a": 20, "b": 22}}]')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Not saved: the corrected reply calls ad: the prompt offers no such function; "
        "did you mean 'add'?"
    )
    calls.fill("[{")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").last).to_contain_text("The tool calls are not JSON")
    calls.fill('[{"name": "add", "arguments": {"a": 1, "b": 41}}]')
    (tmp_path / "a.labels.jsonl").mkdir()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Not saved: cannot")).to_be_visible()
    expect(calls).to_have_value('[{"name": "add", "arguments": {"a": 1, "b": 41}}]')
    (tmp_path / "a.labels.jsonl").rmdir()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("corrected", exact=True)).to_be_visible()
    [label] = LabelFile(tmp_path / "a.labels.jsonl").current().values()
    assert label.reply is not None
    assert label.reply.tool_calls[0]["function"]["arguments"] == {"a": 1, "b": 41}


def test_the_page_of_training_data_obeys_labels(page: Page, app: LocalApp, tmp_path: Path) -> None:
    run = outline(page, "sum")
    show(page, app, run["key"])
    labels(page, "run").get_by_role("button", name="Bad").click()
    expect(labels(page, "run").get_by_role("button", name="Bad")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("link", name="Training data").click()
    rows = page.get_by_role("region", name="step")
    expect(page.get_by_label("Sums")).to_contain_text("Rows")
    expect(rows.filter(has_text="capital").first).to_be_visible()
    expect(rows.filter(has_text=". sum,")).to_have_count(0)
    expect(page.get_by_text("bad by label")).to_be_visible()
    page.get_by_label("Labels").select_option("ignored")
    expect(rows.filter(has_text=". sum,")).to_have_count(2)
    page.get_by_label("Labels").select_option("obeyed")
    page.get_by_label("Format").select_option("kto")
    rejected = rows.filter(has_text=". sum,").first.get_by_text("rejected")
    expect(rejected).to_be_visible()
    rows.filter(has_text=". sum,").first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="sum")).to_be_visible()


def test_lines_that_are_not_labels_are_shown(page: Page, app: LocalApp, tmp_path: Path) -> None:
    file = tmp_path / "a.labels.jsonl"
    run = outline(page, "sum")
    show(page, app, run["key"])
    expect(page.get_by_text(f"Saved in {file}")).to_be_visible()
    file.write_text('{"label": "great", "target": {}}\n{"label": "good", "id": "sum"}\n')
    page.reload()
    expect(labels(page, "run").get_by_role("button", name="Good")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_text("Some lines of the label file are not labels").click()
    expect(page.get_by_text(f"{file}, line 1: a label is good, bad")).to_be_visible()


def test_a_correction_starts_from_the_whole_of_a_long_reply(
    chromium: Any, runs: Path, tmp_path: Path
) -> None:
    """The server sends long texts in pieces."""
    row = next(r for r in map(json.loads, runs.read_text().splitlines()) if r["id"] == "sum")
    long = f"{'long ' * 60_000}END"
    row["session"]["steps"][1]["action"]["llm_output"] = long
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(row) + "\n")
    app = create_app(Library(sources_of([path])))
    app.start()
    made = chromium.new_page()
    try:
        made.goto(app.url)
        run = outline(made, "sum")
        show(made, app, run["key"], run["sessions"][0]["sid"], 1, "call", 0)
        made.get_by_role("button", name="Correct reply").click()
        field = made.get_by_label("Corrected reply")
        field.wait_for()
        assert field.input_value() == long
    finally:
        made.close()
        app.stop()


def test_runs_are_labelled_from_the_table_and_labels_of_others_appear(
    page: Page, app: LocalApp, runs: Path, tmp_path: Path
) -> None:
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="capital"))
    other = page.get_by_role("row").filter(has=page.get_by_role("link", name="sum"))
    expect(row).to_have_class("selected")
    page.keyboard.press("n")
    expect(row.locator(".labels .mark.bad")).to_be_visible()
    page.keyboard.press("n")  # the same key again takes it back
    expect(row.locator(".labels .mark.bad")).to_have_count(0)
    page.keyboard.press("y")
    expect(row.locator(".labels .mark.good")).to_be_visible()
    # another program adds a label: the open page shows it
    file = LabelFile(tmp_path / "a.labels.jsonl")
    file.append(Label.of({"target": {"id": "sum"}, "label": "exclude"}))
    expect(other.locator(".labels .mark.exclude")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="capital")).to_be_visible()
    page.keyboard.press("J")
    expect(page.get_by_role("heading", name="sum")).to_be_visible()
    expect(labels(page, "run").get_by_role("button", name="Exclude")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("K")
    expect(page.get_by_role("heading", name="capital")).to_be_visible()
    assert [one.verdict for one in file.current().values()] == ["good", "exclude"]
    show_training(page, app)
    expect(page.get_by_text("Tokens are estimated at 3.5 bytes each.")).to_be_visible()
    expect(page.get_by_text("about").first).to_be_visible()


def show_training(page: Page, app: LocalApp) -> None:
    page.goto(f"{app.url.partition('/?')[0]}/#/training")


def test_rows_without_journals_show_no_times_and_long_levels_fit(
    chromium: Any, runs: Path, tmp_path: Path
) -> None:
    first, second = map(json.loads, runs.read_text().splitlines())
    first["_orig"] = {"Level": "very long " * 100}
    second["_orig"] = {"Level": 1}
    rows = tmp_path / "only" / "b.jsonl"
    rows.parent.mkdir()
    rows.write_text("".join(json.dumps(row) + "\n" for row in (first, second)))
    app = create_app(Library(sources_of([rows])))
    app.start()
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    try:
        page = context.new_page()
        page.goto(app.url)
        chosen = page.get_by_label("Level")
        expect(chosen).to_be_visible()
        assert chosen.evaluate("(one) => one.getBoundingClientRect().width") < 500
        bars = page.locator("td .bar").evaluate_all(
            "(all) => all.map((one) => [one.offsetWidth / (one.parentElement.clientWidth - 16),"
            " Number(one.parentElement.innerText.replace(',', ''))])"
        )
        most = max(tokens for _, tokens in bars)
        assert all(abs(share - tokens / most) < 0.02 for share, tokens in bars), bars
        page.get_by_role("link", name=first["id"]).click()
        expect(page.get_by_text("No times: there is no journal.")).to_be_visible()
    finally:
        context.close()
        app.stop()
