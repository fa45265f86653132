"""Third-party applications for the scenarios: installed once, seeded anew for each run.

Each application has its own virtual environment, so that its packages cannot conflict with this
project's. The seeded data is fixed, so the answers of the tasks are fixed as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CACHE = Path(os.environ.get("CK_SCENARIOS", "~/.cache/ck-pro-scenarios")).expanduser()
PARTS = ("pump", "valve", "sensor", "housing")
PRIORITIES = ("critical", "major", "minor")


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _run(*command: object, cwd: Path | None = None, **env: str) -> None:
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:4]))} failed: {done.stderr[-600:]}")


def _environment(name: str, *packages: str) -> Path:
    """Make the virtual environment of an application, once; return its `bin` folder."""
    folder = CACHE / name
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", folder)
        _run(folder / "bin" / "pip", "-q", "install", *packages)
        (folder / "ready").touch()
    return folder / "bin"


@dataclass
class App:
    """One application: how to seed a folder for it, and how to serve that folder.

    Args:
        seed: makes the application's data in an empty folder; returns the command that serves it,
            where `{port}` stands for the port.
        path: the page that answers once the application is ready.
    """

    name: str
    seed: Callable[[Path], list[str]]
    path: str = "/"
    env: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def serving(self, folder: Path) -> Iterator[str]:
        """Seed `folder`, serve it, and yield the address, without a slash at the end."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        port = free_port()
        command = [part.replace("{port}", str(port)) for part in self.seed(folder)]
        log = (folder / "server.log").open("wb")
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **self.env},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address + self.path, process, folder / "server.log")
            yield address
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            process.wait(30)
            log.close()


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=10):
            return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise SystemExit(f"{address} did not start: {log.read_text(errors='replace')[-600:]}")


# --- Trac: tickets and a wiki ---------------------------------------------------------------------

TORQUE = """= Torque =
||= Bolt =||= Grade =||= Torque (Nm) =||
|| M8 || 8.8 || 25 ||
|| M8 || 10.9 || 36 ||
|| M12 || 8.8 || 86 ||
|| M12 || 10.9 || 126 ||
|| M16 || 8.8 || 214 ||
|| M16 || 10.9 || 310^1^ ||

^1^ lubricated: 280
"""
_TRAC_SEED = """
import json, sys
from trac.env import Environment
from trac.ticket.model import Ticket, Component
from trac.wiki.model import WikiPage
folder, seed = sys.argv[1], json.load(open(sys.argv[2]))
env = Environment(folder)
for name in ("component1", "component2"):
    Component(env, name).delete()
for name in seed["components"]:
    made = Component(env); made.name = name; made.insert()
for row in seed["tickets"]:
    ticket = Ticket(env)
    for key, value in row.items():
        if key not in ("closed", "comments"): ticket[key] = value
    ticket["status"] = "new"
    ticket.insert()
    for n, text in enumerate(row["comments"]):
        ticket.save_changes("tester", text)
    if row["closed"]:
        ticket["status"], ticket["resolution"] = "closed", "fixed"
        ticket.save_changes("tester", "Done.")
for name, text in seed["pages"].items():
    page = WikiPage(env, name); page.text = text; page.save("tester", "first version")
"""


def tickets() -> list[dict[str, object]]:
    """The 60 tickets: part, priority, owner and state follow from the number."""
    rows: list[dict[str, object]] = []
    for n in range(1, 61):
        part = PARTS[n * 7 % 4]
        rows.append(
            {
                "summary": "Leaking seal at the inlet" if n == 37 else f"{part} check no. {n}",
                "component": part,
                "priority": PRIORITIES[n * n % 3],
                "owner": ("ada", "ben", "cleo")[n % 3],
                "reporter": "tester",
                "description": f"Found while testing unit {n * 13 % 97}.",
                "closed": n % 5 == 0,
                "comments": [f"Seen again, {k}" for k in range(4 if n == 22 else n % 3)],
            }
        )
    return rows


def _seed_trac(folder: Path) -> list[str]:
    bin_ = _environment("trac", "trac", "setuptools<81")
    env = folder / "env"
    _run(bin_ / "trac-admin", env, "initenv", "Works", "sqlite:db/trac.db")
    seed = {"components": PARTS, "tickets": tickets(), "pages": {"Torque": TORQUE}}
    (folder / "seed.json").write_text(json.dumps(seed))
    (folder / "seed.py").write_text(_TRAC_SEED)
    _run(bin_ / "python", folder / "seed.py", env, folder / "seed.json")
    _run(bin_ / "trac-admin", env, "permission", "add", "anonymous", "TRAC_ADMIN")
    return [
        str(bin_ / "tracd"),
        "-s",
        "--hostname",
        "127.0.0.1",
        "-p",
        "{port}",
        "--single-env",
        str(env),
    ]


# --- DokuWiki: a wiki in files --------------------------------------------------------------------


def recipes() -> dict[str, str]:
    """The wiki's pages by id."""
    herbs = ("thyme", "sage", "mint", "dill", "cumin", "clove", "anise", "fennel")
    pages = {
        f"recipes:{herb}_bread": f"====== {herb.title()} bread ======\n\n  * 500 g flour\n"
        f"  * {7 + 3 * n} g salt\n  * {4 + n} g {'cardamom' if herb == 'dill' else herb}\n"
        for n, herb in enumerate(herbs)
    }
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    meals = ("pie", "soup", "rice", "soup", "fish")
    menu = "\n".join(f"  * {d}: {m}" for d, m in zip(days, meals, strict=True))
    kinds = ("bread", "milk", "fruit", "tea")
    rows = [f"| {n + 1:02} | {kinds[n * 3 % 4]} | {(n * 37) % 50 + 3} |" for n in range(44)]
    pages["plan:menu"] = f"====== Menu ======\n\n{menu}\n"
    pages["plan:budget"] = (
        "====== Budget ======\n\n^ no ^ kind ^ amount ^\n" + "\n".join(rows) + "\n"
    )
    pages["start"] = "====== Kitchen ======\n\n[[plan:menu]] [[plan:budget]]\n"
    return pages


def _seed_dokuwiki(folder: Path) -> list[str]:
    package = Path("/usr/share/dokuwiki")
    if not package.exists():
        raise SystemExit("DokuWiki: run apt-get install --no-install-recommends dokuwiki php-xml")
    wiki = folder / "wiki"
    shutil.copytree(package, wiki)
    shutil.copytree("/etc/dokuwiki", wiki / "conf", dirs_exist_ok=True)
    for part in ("pages", "attic", "meta", "media", "cache", "index", "locks", "tmp", "log"):
        (wiki / "data" / part).mkdir(parents=True)
    for part in ("media_attic", "media_meta"):
        (wiki / "data" / part).mkdir()
    (wiki / "inc" / "preload.php").unlink()  # Debian's: points at /etc and /var
    (wiki / "conf" / "local.php").write_text(
        "<?php\n$conf['title'] = 'Kitchen';\n$conf['useacl'] = 0;\n$conf['savedir'] = './data';\n"
        "$conf['updatecheck'] = 0;\n"
    )
    for name, text in recipes().items():
        path = wiki / "data" / "pages" / (name.replace(":", "/") + ".txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    _run("php", wiki / "bin" / "indexer.php", "-q", cwd=wiki)
    return ["php", "-S", "127.0.0.1:{port}", "-t", str(wiki)]


# --- Wagtail: a site with an admin ----------------------------------------------------------------

_WAGTAIL_SEED = """
from django.contrib.auth import get_user_model
from wagtail.models import Page
User = get_user_model()
User.objects.create_superuser("admin", "admin@example.org", "pass-4-admin")
first = ("Anna", "Bela", "Carl", "Dora", "Emil", "Fritz", "Greta")
last = ("Baker", "Miller", "Bishop", "Stone", "Burns", "Field")
for n in range(30):
    User.objects.create_user(f"user{n:02}", f"user{n:02}@example.org", "x-4-user",
        first_name=first[n % 7], last_name=last[n * n % 6], is_active=n % 5 != 1)
home = Page.objects.get(depth=2)
for title in ("News", "Opening hours", "Old offers", "Draft of terms"):
    home.add_child(instance=Page(title=title, live=not title.startswith("Draft")))
"""


def _seed_wagtail(folder: Path) -> list[str]:
    bin_ = _environment("wagtail", "wagtail")
    _run(bin_ / "wagtail", "start", "works", folder)
    settings = folder / "works" / "settings" / "dev.py"
    settings.write_text(settings.read_text() + "\nWAGTAIL_ENABLE_UPDATE_CHECK = False\n")
    manage = folder / "manage.py"
    _run(bin_ / "python", manage, "migrate", cwd=folder)
    (folder / "seed.py").write_text(_WAGTAIL_SEED)
    _run(
        bin_ / "python",
        manage,
        "shell",
        "-c",
        "exec(open('seed.py').read())",
        cwd=folder,
    )
    return [str(bin_ / "python"), str(manage), "runserver", "--noreload", "127.0.0.1:{port}"]


# --- JupyterLab: notebooks and files --------------------------------------------------------------


def _cell(source: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"c{abs(hash(source)) % 10**6}",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def _seed_jupyter(folder: Path) -> list[str]:
    bin_ = _environment("jupyterlab", "jupyterlab")
    files = folder / "files"
    files.mkdir()
    cells = [
        "rate = 0.2",
        "prices = [round(3.5 * n + 0.25, 2) for n in range(1, 25)]",
        "total = sum(prices) * (1 + rate)\nprint(f'total: {total:.2f}')",
    ]
    notebook = {
        "cells": [_cell(c) for c in cells],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    for name in ("sales.ipynb", "forecast.ipynb"):
        (files / name).write_text(json.dumps(notebook))
    (files / "draft.csv").write_text(
        "city,units\n" + "".join(f"town{n:03},{n * n % 89}\n" for n in range(120))
    )
    (files / "notes.md").write_text(
        "".join(
            f"## Week {n}\n\nText {n}.\n\n{'### Detail' if n % 3 == 0 else ''}\n\n"
            for n in range(1, 18)
        )
    )
    (files / "config.py").write_text(
        "LIMIT = 40\nNAME = 'north'\n" + "# filler\n" * 60 + "DEPTH = 7\n"
    )
    return [
        str(bin_ / "jupyter-lab"),
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        "--port={port}",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={files}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]


APPS = {
    app.name: app
    for app in (
        App("trac", _seed_trac, "/report"),
        App("dokuwiki", _seed_dokuwiki, "/doku.php?id=start"),
        App("wagtail", _seed_wagtail, "/admin/login/"),
        App("jupyter", _seed_jupyter, "/lab"),
    )
}
