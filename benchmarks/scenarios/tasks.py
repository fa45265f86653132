"""The scenario tasks: what to do, and how the result is judged.

An answer is compared by the scorer of the main command. A change is judged by the application's
own data, after the run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scenarios.apps import recipes, tickets

Check = Callable[[Path], bool]


@dataclass(frozen=True)
class Task:
    """One task.

    Args:
        app: the application it is about.
        question: what to do; `{app}` stands for the address of the application.
        answer: the expected answer; empty if only the change counts.
        check: whether the change is there, from the application's folder; None if nothing changes.
    """

    id: str
    app: str
    question: str
    answer: str = ""
    check: Check | None = None


def _rows(folder: Path, database: str, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(folder / database) as connection:
        return connection.execute(query).fetchall()


def _trac(query: str) -> Check:
    return lambda folder: _rows(folder, "env/db/trac.db", query) == [(1,)]


def _wagtail(query: str) -> Check:
    return lambda folder: _rows(folder, "db.sqlite3", query) == [(1,)]


def _wiki_text(folder: Path, page: str) -> str:
    path = folder / "wiki" / "data" / "pages" / (page.replace(":", "/") + ".txt")
    return path.read_text() if path.exists() else ""


def _critical_open() -> int:
    rows = tickets()
    return sum(
        r["component"] == "pump" and r["priority"] == "critical" and not r["closed"] for r in rows
    )


def _bread_sum() -> int:
    lines = [line.split("|") for line in recipes()["plan:budget"].splitlines() if line[:1] == "|"]
    return sum(int(cells[3]) for cells in lines if cells[2].strip() == "bread")


def _shopping(folder: Path) -> bool:
    lines = [line.strip() for line in _wiki_text(folder, "plan:shopping").splitlines()]
    return [line for line in lines if line.startswith("*")] == ["* flour", "* yeast", "* sage"]


def _menu(folder: Path) -> bool:
    text = _wiki_text(folder, "plan:menu")
    return text == recipes()["plan:menu"].replace("Tuesday: soup", "Tuesday: stew")


def _rate(folder: Path) -> bool:
    cells = json.loads((folder / "files" / "sales.ipynb").read_text())["cells"]
    sources = ["".join(c["source"]) for c in cells]
    return sources[0].strip() == "rate = 0.25" and len(sources) == 3


def _renamed(folder: Path) -> bool:
    names = {p.name for p in (folder / "files").glob("*.csv")}
    return names == {"final.csv"}


def _limit(folder: Path) -> bool:
    text = (folder / "files" / "config.py").read_text()
    return text.count("\n") == 63 and text.startswith("LIMIT = 55\n") and "DEPTH = 9" in text


_PRICES = [round(3.5 * n + 0.25, 2) for n in range(1, 25)]
_LOGIN = "Log in at {app}/admin/ as admin with the password pass-4-admin. "

TASKS = (
    Task(
        "trac-count",
        "trac",
        "In the ticket tracker at {app}, how many open tickets have the component pump and the "
        "priority critical? Answer with the number.",
        str(_critical_open()),
    ),
    Task(
        "trac-wiki",
        "trac",
        "In the wiki of {app}, the page Torque has a table of bolts. What torque in Nm belongs to "
        "an M16 bolt of grade 10.9 that is not lubricated? Answer with the number.",
        "310",
    ),
    Task(
        "trac-create",
        "trac",
        "Create a ticket in the tracker at {app}: summary 'Cracked lens', component sensor, "
        "priority critical, owner cleo. Answer with the number of the new ticket.",
        "61",
        _trac(
            "select count(*) from ticket where summary = 'Cracked lens' and component = 'sensor' "
            "and priority = 'critical' and owner = 'cleo' and status != 'closed'"
        ),
    ),
    Task(
        "trac-close",
        "trac",
        "In the tracker at {app}, find the ticket about a leaking seal, add the comment "
        "'Seal replaced' and close it as fixed, in one change. Answer with the ticket's number.",
        "37",
        _trac(
            "select count(*) from ticket t join ticket_change c on c.ticket = t.id "
            "where t.id = 37 and t.status = 'closed' and t.resolution = 'fixed' "
            "and c.field = 'comment' and c.newvalue = 'Seal replaced'"
        ),
    ),
    Task(
        "trac-comments",
        "trac",
        "In the tracker at {app}, tickets number 20 to 24: which of them has the most comments? "
        "Answer with the ticket's number.",
        "22",
    ),
    Task(
        "doku-search",
        "dokuwiki",
        "In the wiki at {app}/doku.php, one recipe uses cardamom. How many grams of salt does that "
        "recipe use? Answer with the number.",
        "16",
    ),
    Task(
        "doku-edit",
        "dokuwiki",
        "In the wiki at {app}/doku.php, change Tuesday's soup on the page plan:menu to stew and "
        "save with the edit summary 'menu change'. Leave everything else as it is.",
        check=_menu,
    ),
    Task(
        "doku-sum",
        "dokuwiki",
        "In the wiki at {app}/doku.php, the page plan:budget has a table. What is the sum of the "
        "amounts of kind bread? Answer with the number.",
        str(_bread_sum()),
    ),
    Task(
        "doku-create",
        "dokuwiki",
        "In the wiki at {app}/doku.php, create the page plan:shopping with the headline Shopping "
        "and an unordered list of three items: flour, yeast, sage.",
        check=_shopping,
    ),
    Task(
        "doku-most-salt",
        "dokuwiki",
        "In the wiki at {app}/doku.php, the namespace recipes has eight breads. Which one has the "
        "most salt, and how many grams? Answer in the form: NAME, GRAMS.",
        "Fennel bread, 28",
    ),
    Task(
        "wagtail-users",
        "wagtail",
        _LOGIN + "Under Settings, Users: how many users whose last name begins with B are "
        "inactive? Answer with the number.",
        str(
            sum(
                ("Baker", "Miller", "Bishop", "Stone", "Burns", "Field")[n * n % 6][0] == "B"
                and n % 5 == 1
                for n in range(30)
            )
        ),
    ),
    Task(
        "wagtail-redirect",
        "wagtail",
        _LOGIN + "Add a permanent redirect from /old-news to the page News.",
        check=_wagtail(
            "select count(*) from wagtailredirects_redirect r join wagtailcore_page p "
            "on p.id = r.redirect_page_id where r.old_path = '/old-news' and p.title = 'News' "
            "and r.is_permanent"
        ),
    ),
    Task(
        "wagtail-publish",
        "wagtail",
        _LOGIN + "Publish the page 'Draft of terms' with the new title 'Terms of use'.",
        check=_wagtail(
            "select count(*) from wagtailcore_page where title = 'Terms of use' and live"
        ),
    ),
    Task(
        "wagtail-unpublish",
        "wagtail",
        _LOGIN + "Unpublish the page 'Old offers'. Do not delete it.",
        check=_wagtail(
            "select count(*) from wagtailcore_page where title = 'Old offers' and not live"
        ),
    ),
    Task(
        "wagtail-site",
        "wagtail",
        _LOGIN + "Under Settings, Sites: set the port of the only site to 8085 and its name to "
        "'Works'.",
        check=_wagtail(
            "select count(*) from wagtailcore_site where port = 8085 and site_name = 'Works'"
        ),
    ),
    Task(
        "jupyter-run",
        "jupyter",
        "In JupyterLab at {app}/lab, run all cells of forecast.ipynb. Which total is printed? "
        "Answer with the number.",
        f"{sum(_PRICES) * 1.2:.2f}",
    ),
    Task(
        "jupyter-change",
        "jupyter",
        "In JupyterLab at {app}/lab, change the rate in sales.ipynb to 0.25, run all its cells and "
        "save it. Answer with the total that is printed.",
        f"{sum(_PRICES) * 1.25:.2f}",
        _rate,
    ),
    Task(
        "jupyter-rename",
        "jupyter",
        "In JupyterLab at {app}/lab, rename the file draft.csv to final.csv.",
        check=_renamed,
    ),
    Task(
        "jupyter-edit",
        "jupyter",
        "In JupyterLab at {app}/lab, set LIMIT to 55 and DEPTH to 9 in config.py and save it. "
        "Leave everything else as it is.",
        check=_limit,
    ),
    Task(
        "jupyter-count",
        "jupyter",
        "In JupyterLab at {app}/lab, how many headings of the third level does notes.md have? "
        "Answer with the number.",
        "5",
    ),
)
