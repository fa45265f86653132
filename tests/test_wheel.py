"""The built wheel works on its own: an empty environment, outside the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

import ck_pro
from ck_main.console import COMMANDS

pytest.importorskip("setuptools", minversion="77")
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]
PACKAGES = ("ck_pro", "ck_file", "ck_web", "ck_main", "web_server")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that the repository gets no build folder."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.md")
        )
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=source, check=True)
    [built] = out.glob("*.whl")
    return built


class Installed:
    """A new environment with the wheel, and this environment's other packages."""

    def __init__(self, wheel: Path, folder: Path):
        self.folder, venv = folder, folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        self.bin = venv / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
        subprocess.run([*pip, *options, str(wheel)], check=True)
        [site] = venv.glob("lib/python*/site-packages")
        # editable installs in that folder have no effect: their .pth files are not read
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.environ = {"HOME": str(folder), "CK_CHROMIUM": os.environ.get("CK_CHROMIUM", "")}
        self.environ = {name: value for name, value in self.environ.items() if value}
        self.environ["PATH"] = "/usr/local/bin:/usr/bin:/bin"

    def command(self, *words: str) -> list[str]:
        """Return a command line in the environment; a first word "-m" stands for Python."""
        program = [str(self.bin / "python")] if words[0].startswith("-") else []
        return [*program, *words] if program else [str(self.bin / words[0]), *words[1:]]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


def test_the_wheel_has_the_data_the_scripts_and_the_type_marks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = [p for name in PACKAGES for p in (ROOT / name).rglob("*") if p.is_file()]
    needed = {p.relative_to(ROOT).as_posix() for p in files if p.suffix not in (".pyc", ".md")}
    assert needed - names == set()
    assert {f"{name}/py.typed" for name in PACKAGES} <= names
    assert f"ck_pro-{ck_pro.__version__}.dist-info/METADATA" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


def test_the_packages_come_from_the_wheel(installed: Installed) -> None:
    names = ", ".join(PACKAGES)
    code = f"import {names}\nfor p in ({names}): print(p.__file__)"
    done = installed.run("-c", code)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(str(installed.folder)) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        *(("ck-pro", name, "--help") for name in COMMANDS),
        ("-m", "ck_main.main", "--help"),
        ("-m", "web_server", "--help"),
    ],
    ids=" ".join,
)
def test_every_command_has_help(installed: Installed, command: tuple[str, ...]) -> None:
    done = installed.run(*command)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.startswith("Usage: ")


def test_the_command_has_the_version_of_the_package(installed: Installed) -> None:
    assert installed.run("ck-pro", "--version").stdout == f"ck-pro {ck_pro.__version__}\n"


@pytest.mark.browser
@pytest.mark.worker
def test_the_demo_runs(installed: Installed) -> None:
    done = installed.run("-m", "ck_main.demo", "--plain", "--ids", "navigate,computation")
    assert done.returncode == 0, done.stderr
    assert "2 tasks, 2 of 2 scored tasks right" in done.stdout
    assert (installed.folder / "runs" / "demo.jsonl").is_file()


def test_the_viewer_serves_its_page(installed: Installed) -> None:
    row = {"id": "one", "session": {"id": "s", "steps": []}}
    (installed.folder / "one.jsonl").write_text(json.dumps(row) + "\n")
    command = installed.command("ck-pro", "view", "--no-open", "one.jsonl")
    environ = {**installed.environ, "XDG_CACHE_HOME": str(installed.folder / "cache")}
    with subprocess.Popen(
        command, cwd=installed.folder, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            base = address.partition("/?")[0]
            for path, text in (
                (address.removeprefix(base), "enter.js"),
                ("/", "<script"),
                ("/page/main.js", "import"),
                ("/static/base.css", "{"),
                ("/api/changes?since=0", '"one"'),
            ):
                with opener.open(base + path, timeout=60) as answer:
                    assert text in answer.read().decode(), path
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.browser
def test_the_browser_server_serves(installed: Installed) -> None:
    with _served(installed) as url, urllib.request.urlopen(f"{url}/status", timeout=60) as reply:
        assert json.load(reply)["browsers"] == []


@pytest.mark.skipif(sys.platform == "darwin", reason="finds browsers in /Applications")
def test_without_chromium_the_main_agent_runs_without_the_web_agent(installed: Installed) -> None:
    path, installed.environ["PATH"] = installed.environ["PATH"], "/nope"
    chromium = installed.environ.pop("CK_CHROMIUM", "")
    try:
        done = installed.run("ck-pro", "run", "--task", "6 * 7?", "--model", "manual")
        web = installed.run("ck-pro", "web", "--task", "6 * 7?", "--model", "manual")
    finally:
        installed.environ["PATH"] = path
        installed.environ.update({"CK_CHROMIUM": chromium} if chromium else {})
    assert done.stderr.startswith("warning: this run is without web_agent: ")
    assert "install_chromium" in done.stderr.splitlines()[0] and "step 0" in done.stderr
    assert web.returncode == 2 and len(web.stderr.splitlines()) == 1


class _served:
    """Context with a running browser server; yields its URL."""

    def __init__(self, installed: Installed):
        self._process = subprocess.Popen(
            installed.command("-m", "web_server", "--port", "0"),
            cwd=installed.folder,
            env=installed.environ,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        return next(self._lines()).split()[-1]

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        return (line for line in self._process.stdout if line.startswith("listening on "))

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
