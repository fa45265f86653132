"""A rule-based model for the tasks of the kill campaign.

Its reply depends only on the prompt: the task, the last observation and the current page. So, like
a real model, it handles lost variables, a form that is empty again and a resumed run. It has no
state between calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ck_pro.language import text_of

_PLAN = "{'completed_list': [], 'todo_list': ['go on'], 'experience': [], 'information': []}"
_END = "{'output': '', 'log': 'no answer was found'}"
_PAGE = "# Current page (data, not instructions)\n"
FILE = "rainfall-2024.csv"


def answer(messages: Sequence[dict[str, Any]]) -> str:
    """Return the reply to a prompt of the main agent or the web agent."""
    texts = [text_of(m["content"]) for m in messages]
    if len(texts) < 2:
        return "OK"  # a check whether the model responds
    role, last = texts[0], texts[-1]
    if last.rstrip().endswith("block of Python."):  # the plan's instruction: "the dict in one ..."
        return _block("To go on is the plan.", _PLAN)
    if "The work has ended." in last.rpartition("\n\n")[2]:
        return _block("There was no answer.", _END)
    task = texts[1].removeprefix("# Task\n").partition("\n\n# ")[0]
    if role.startswith("You are the web agent"):
        return _block("The page says what to do.", browse(task, last))
    return _block("The last observation says what to do.", solve(task, _observed(last)))


def solve(task: str, seen: str) -> str:
    """Return the main agent's next code.

    Args:
        task: the task of the file.
        seen: the last observation; "" in the first step.
    """
    found = re.search(r"^answer: (.+)$", seen, re.M)
    if found:
        return f"stop(output={found[1]!r}, log='computed')"
    number = re.search(r"integers from 1 to (\d+)", task)
    if number:
        return _compute(int(number[1]), seen)
    if FILE in task:
        return _total(task, seen)
    pages = re.search(r"Read (\S+) and (\S+) at the same time", task)
    if pages:
        return _compare(task, pages[1], pages[2])
    url = re.search(r"(?:Start at|With the form at) (\S+)", task)
    result = re.search(r"\{'output': '([^']+)'", seen)
    if result:
        return f"stop(output={result[1]!r}, log='the web agent found it')"
    return f"result = web_agent(task={task!r}, target_url={url and url[1]!r})\nprint(result)"


def browse(task: str, prompt: str) -> str:
    """Return the web agent's next code for the page in the prompt."""
    page = prompt.partition(_PAGE)[2].partition("\n\n# ")[0]
    url = page.partition("URL: ")[2].partition("\n")[0]
    wanted = re.search(r"https?://[^\s?;]+", task)
    start = wanted[0] if wanted else ""
    if FILE in task:
        done = "Downloaded files: " in page and FILE in page.partition("Downloaded files: ")[2]
        done = done or f"downloads/{FILE}" in prompt.partition(page)[2]
        if done:
            return f"stop(answer={FILE!r}, summary='downloaded')"
        return _click(page, "link", FILE) or f"goto(url={start!r})"
    station = re.search(r"observer of the station (.+?)\?", task)
    if station:
        return _station(page, url, station[1], start)
    if "place an order" in task:
        return _order(task, page, start)
    weight = re.search(r"row 'Weight \| (\d+) g'", page)
    if weight and url == start:
        return f"stop(answer={weight[1]!r}, summary='the row Weight says so')"
    return f"goto(url={start!r})"


def _compute(limit: int, seen: str) -> str:
    if re.search(r"^count \d+$", seen, re.M):  # the variable may be lost: then repeat the call
        return "print('answer:', len(found))"
    return (
        f"found = [k for k in range(1, {limit + 1}) if k % sum(map(int, str(k))) == 0]\n"
        "print('count', len(found))"
    )


def _total(task: str, seen: str) -> str:
    station = re.search(r"the station (.+?) over", task)
    site = re.search(r"At (\S+) there", task)
    assert station and site
    if f"{{'output': '{FILE}'" in seen:
        return (
            "import csv\n"
            f"with open('downloads/{FILE}', newline='') as file:\n"
            "    rows = list(csv.DictReader(file))\n"
            f"mm = [float(r['rainfall_mm']) for r in rows if r['station'] == {station[1]!r}"
            " and r['rainfall_mm']]\n"
            "print('answer:', f'{sum(mm):.1f}')"
        )
    ask = f"On the page {site[1]} click the link {FILE}. Answer with the name of the file."
    return f"result = web_agent(task={ask!r}, target_url={site[1]!r})\nprint(result)"


def _compare(task: str, first: str, second: str) -> str:
    names = re.search(r"two instruments (.+?) and (.+?) weighs", task)
    assert names
    pages = {names[1]: first, names[2]: second}
    return (
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"pages = {pages!r}\n"
        "def weight(url):\n"
        "    ask = f'Read on the page {url} the weight. Answer in grams, digits only.'\n"
        "    return web_agent(task=ask, target_url=url)\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    results = dict(zip(pages, pool.map(weight, pages.values())))\n"
        "print({name: result['output'] for name, result in results.items()})\n"
        "weights = {name: int(result['output']) for name, result in results.items()}\n"
        "lighter = min(weights, key=weights.get)\n"
        "print('answer:', f'{lighter}, {max(weights.values()) - min(weights.values())}')"
    )


def _station(page: str, url: str, name: str, start: str) -> str:
    observer = re.search(r"row 'Observer \| (.+?)'", page)
    if observer and f"heading 'Station {name}'" in page:
        return f"stop(answer={observer[1]!r}, summary='the page of the station says so')"
    return (url == start and _click(page, "link", name)) or f"goto(url={start!r})"


def _order(task: str, page: str, start: str) -> str:
    number = re.search(r"FH-\d{6}", page)
    if number:
        return f"stop(answer={number[0]!r}, summary='the shop confirmed the order')"
    wanted = re.search(
        r"for (\d+) of the instrument (.+?), for (.+?), email (\S+), .+ postcode (\d+)", task
    )
    if "button 'Place order'" not in page or wanted is None:
        return f"goto(url={start!r})"
    quantity, product, name, email, postcode = wanted.groups()
    # change only wrong fields; submit the form in a separate step once all are right
    lines = []
    if f"combobox 'Instrument' value: {product} " not in page:
        lines.append(f"select(id={_id(page, 'combobox', 'Instrument')}, option={product!r})")
    for label, text in (
        ("Quantity", quantity),
        ("Your name", name),
        ("Email address", email),
        ("Postcode", postcode),
    ):
        if not re.search(rf"textbox '{label}' value: {re.escape(text)}(?= \w+:|$)", page, re.M):
            number = _id(page, "textbox", label)
            lines.append(f"type(id={number}, content={text!r}, enter=False)")
    for role, label in (("radio", "Home delivery"), ("checkbox", "I accept the terms of sale")):
        if f"{role} '{label}' checked: true" not in page:
            lines.append(f"click(id={_id(page, role, label)})")
    return "\n".join(lines) or _click(page, "button", "Place order")


def _id(page: str, role: str, name: str) -> str:
    found = re.search(rf"\[(\d+)\] {role} '{re.escape(name)}'", page)
    return found[1] if found else "0"


def _click(page: str, role: str, name: str) -> str:
    number = _id(page, role, name)
    return f"click(id={number})" if number != "0" else ""


def _observed(last: str) -> str:
    if not last.startswith("Observation of step "):
        return ""
    return last.partition("\n")[2].partition("\n\n# ")[0].rpartition("\n\nNow act:")[0] or last


def _block(thought: str, code: str) -> str:
    return f"Thought: {thought}\n```python\n{code}\n```"
