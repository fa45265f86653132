"""The demo's site, running, for the tests of this folder."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from paths import DEMO, ROOT

from ck_main.demo_site import DemoSite
from ck_main.demo_site import site as demo_site


class Visitor:
    """Asks the site over one connection; relative addresses, no redirects followed."""

    def __init__(self, site: DemoSite, session: requests.Session):
        self.site = site
        self.session = session

    def get(self, path: str, **options: object) -> requests.Response:
        return self._ask("GET", path, **options)

    def post(self, path: str, **options: object) -> requests.Response:
        return self._ask("POST", path, **options)

    def _ask(self, method: str, path: str, **options: object) -> requests.Response:
        options = {"timeout": 30, "allow_redirects": False, **options}
        return self.session.request(method, self.site.origin + path, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def site() -> Iterator[DemoSite]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_site, "WORKSHOP_DELAY", 0.01)
        with DemoSite() as running:
            yield running


@pytest.fixture(scope="session")
def visitor(site: DemoSite) -> Iterator[Visitor]:
    with requests.Session() as session:
        yield Visitor(site, session)


@pytest.fixture(scope="session")
def search_index(site: DemoSite) -> str:
    """The search index of the running site as the file should hold it."""
    builder = runpy.run_path(str(ROOT / "scripts" / "build_demo_search_index.py"))
    return str(builder["as_text"](builder["build"](site)))


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    return DEMO
