"""The demo's tasks: their form, and every right answer worked out anew from the site."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from ck_main.scoring.em import em
from ck_main.tasks.dataset import Task, read_tasks

pytestmark = pytest.mark.integration

KINDS = [
    "navigate", "search", "form", "download", "compare", "wrong-click", "late-frame", "dialog",
    "compute", "impossible",
]  # fmt: skip


@pytest.fixture(scope="module")
def tasks(demo_folder):
    lines = (demo_folder / "tasks.jsonl").read_text("utf-8").splitlines()
    return {task["kind"]: task for task in map(json.loads, lines)}


def test_there_is_one_task_of_each_kind(tasks, demo_folder):
    assert list(tasks) == KINDS
    read = list(read_tasks(demo_folder / "tasks.jsonl"))
    assert all(isinstance(task, Task) for task in read)
    assert [task.answer for task in read] == [task["answer"] for task in tasks.values()]
    assert len({task.id for task in read}) == len(KINDS)


def test_a_task_says_where_to_look_and_what_form_the_answer_has(tasks):
    for kind, task in tasks.items():
        assert set(task) == {"id", "kind", "Level", "question", "answer"}
        assert task["Level"] in (1, 2, 3)
        assert "Answer" in task["question"]
        assert ("{site}" in task["question"]) == (kind != "compute")
        assert not re.search(r"\{site\}\S*[.,:;]\s", task["question"]), "a stop glued to an address"
        assert em(task["answer"], task["answer"])


def test_the_addresses_in_the_questions_exist(tasks, visitor):
    for task in tasks.values():
        for path in re.findall(r"\{site\}(\S*)", task["question"]):
            assert visitor.get(path).status_code == 200


def rows(html: str) -> list[list[str]]:
    """The cells of every table row."""
    found = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]


def facts(html: str) -> dict[str, str]:
    """The rows of two cells as a mapping."""
    return {row[0]: row[1] for row in rows(html) if len(row) == 2}


def test_navigate(tasks, visitor):
    team = [row for row in rows(visitor.get("/about").text) if len(row) == 4]
    heads = [row[2] for row in team if row[1].lower() == "head of the calibration laboratory"]
    assert heads == [tasks["navigate"]["answer"]]


def test_search_needs_the_filter_and_the_second_page(tasks, visitor):
    ask = {"category": "Rain gauges", "stock": "1"}
    first = visitor.get("/api/products", params=ask).json()
    second = visitor.get("/api/products", params={**ask, "page": "2"}).json()
    assert first["pages"] == 2
    gauges = [*first["items"], *second["items"]]
    best = max(gauges, key=lambda product: product["reviews"])
    assert best["name"] == tasks["search"]["answer"]
    assert sum(g["reviews"] == best["reviews"] for g in gauges) == 1
    assert best in second["items"]
    every = visitor.get("/api/products", params={"q": "gauges", "sort": "price"}).json()
    assert max(every["items"], key=lambda product: product["reviews"]) != best


def test_form(tasks, visitor):
    question = tasks["form"]["question"]
    for fact in ("2 of the instrument Ling Digital", "Nora Ellwood", "home delivery", "40131"):
        assert fact in question
    order = {
        "product": "ling-digital",
        "quantity": "2",
        "name": "Nora Ellwood",
        "email": "nora.ellwood@example.org",
        "delivery": "home",
        "postcode": "40131",
        "note": "",
        "terms": "yes",
    }
    assert order["email"] in question
    page = visitor.post("/order", data=order, allow_redirects=True)
    assert re.findall(r"FH-\d{6}", page.text) == [tasks["form"]["answer"]]


def test_download(tasks, visitor):
    text = visitor.get("/downloads/rainfall-2024.csv").content.decode("utf-8")
    months: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        months.setdefault(row["station"], []).append(row["rainfall_mm"])
    totals = [sum(map(float, values)) for values in months.values() if all(values)]
    assert 0 < len(totals) < len(months)
    mean = sum(totals) / len(totals)
    assert f"{mean:.1f}" == tasks["download"]["answer"]
    assert abs(mean * 10 % 1 - 0.5) > 0.01, "the rounding must not be a matter of taste"


def test_compare(tasks, visitor):
    weights = {}
    for slug in ("gannet-300", "merlin-ultrasonic"):
        html = visitor.get(f"/products/{slug}").text
        name = re.findall("<h1>(.*?)</h1>", html)[0]
        assert name in tasks["compare"]["question"]
        weights[name] = int(facts(html)["Weight"].removesuffix(" g"))
    light, heavy = sorted(weights, key=weights.__getitem__)
    gold = f"{light}, {weights[heavy] - weights[light]}"
    assert gold == tasks["compare"]["answer"]


def test_wrong_click(tasks, visitor):
    links = dict(
        re.findall(r'<a href="(/stations/[^"]*)">(.*?)</a>', visitor.get("/stations").text)
    )
    by_name = {name: href for href, name in links.items()}
    assert "Ashby Mill" in by_name
    observer = facts(visitor.get(by_name["Ashby Moor"]).text)["Observer"]
    assert observer == tasks["wrong-click"]["answer"]
    assert facts(visitor.get(by_name["Ashby Mill"]).text)["Observer"] != observer


def test_late_list_and_frame(tasks, visitor):
    board = visitor.get("/api/workshop").json()["tickets"]
    [ticket] = [t["ticket"] for t in board if t["customer"] == "Harbour Office, Nell"]
    assert 'src="/frames/certificate"' in visitor.get("/service/calibration").text
    frame = visitor.get("/frames/certificate", params={"ticket": ticket}).text
    assert facts(frame)["Certificate number"] == tasks["late-frame"]["answer"]


def test_dialog(tasks, visitor):
    reply = visitor.post("/api/trade-code", data={"confirmed": "yes"})
    assert reply.json()["code"] == tasks["dialog"]["answer"]


def test_computation(tasks):
    count = sum(n % sum(map(int, str(n))) == 0 for n in range(1, 100_001))
    assert str(count) == tasks["compute"]["answer"]


def test_a_task_that_cannot_be_done(tasks, visitor, search_index):
    task = tasks["impossible"]
    assert task["question"].endswith(f"answer exactly: {task['answer']}")
    assert visitor.get("/archive/2019").status_code == 500
    mentions = [entry["url"] for entry in json.loads(search_index) if "2019" in entry["text"]]
    assert mentions == ["{site}/archive"]


def test_the_search_index_is_current(search_index, demo_folder):
    written = (demo_folder / "search_index.json").read_text("utf-8")
    assert written == search_index, "run python scripts/build_demo_search_index.py"
    entries = json.loads(written)
    assert len(entries) > 60
    assert all(set(entry) == {"title", "url", "text"} and entry["text"] for entry in entries)


def test_the_walkthrough_covers_every_task(tasks, demo_folder):
    text = (demo_folder / "walkthrough.md").read_text("utf-8")
    for task in tasks.values():
        assert f"`{task['id']}`" in text and task["answer"] in text
