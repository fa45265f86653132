"""Every page of the demo's site answers, its links lead somewhere, its parts have names."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest

pytestmark = pytest.mark.integration

VOID = {"meta", "link", "img", "input", "br"}


class Page(HTMLParser):
    """A page as the tests look at it; complains about tags that do not match."""

    def __init__(self, html: str):
        super().__init__()
        self.html = html
        self.links: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self.assets: list[str] = []
        self.headings = 0
        self.title = ""
        self._stack: list[str] = []
        self._href: str | None = None
        self._words = ""
        self.feed(html)
        self.close()
        assert not self._stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self._stack.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self._href, self._words = str(given["href"]), ""
        if tag == "label" and given.get("for"):
            self.labelled.add(str(given["for"]))
        if tag in ("input", "select", "textarea"):
            self.fields.append({**given, "wrapped": "yes" if "label" in self._stack else None})
        if tag in ("script", "img", "iframe") or (tag == "link"):
            self.assets.append(str(given.get("src") or given.get("href")))
        if tag == "img":
            assert "alt" in given
        if tag == "iframe":
            assert given["title"]
        self.headings += tag == "h1"

    def handle_endtag(self, tag: str) -> None:
        assert self._stack.pop() == tag
        if tag == "a" and self._href is not None:
            self.links.append((self._href, " ".join(self._words.split())))
            self._href = None

    def handle_data(self, data: str) -> None:
        self._words += data
        if self._stack and self._stack[-1] == "title":
            self.title += data


@pytest.fixture(scope="module")
def pages(visitor):
    """Every HTML page that links lead to, by path and query, with its status."""
    origin = visitor.site.origin
    waiting = ["/", *(f"/products/{slug}" for slug in visitor.site.data.products)]
    found: dict[str, tuple[int, Page | None]] = {}
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        reply = visitor.get(path)
        is_page = "html" in reply.headers["Content-Type"]
        page = Page(reply.text) if is_page else None
        found[path] = (reply.status_code, page)
        for href, _ in page.links if page else []:
            url = urlsplit(urljoin(origin + path, href))
            assert f"{url.scheme}://{url.netloc}" == origin, f"{path} leads away: {href}"
            waiting.append(url.path + (f"?{url.query}" if url.query else ""))
    return found


def test_there_are_pages_of_many_kinds(pages):
    assert len(pages) > 60
    firsts = {path.split("/")[1].split("?")[0] for path in pages}
    assert firsts >= {
        "", "catalogue", "products", "compare", "stations", "order", "service", "guides",
        "delivery", "downloads", "trade", "archive", "faq", "about", "contact",
    }  # fmt: skip


def test_every_link_leads_to_a_page_or_file_and_only_the_archive_fails(pages):
    failing = {path: status for path, (status, _) in pages.items() if status != 200}
    assert failing == {f"/archive/{year}": 500 for year in range(2019, 2024)}


def test_anchors_exist(pages, visitor):
    for path, (_, page) in pages.items():
        for href, _ in page.links if page else []:
            target, _, anchor = href.partition("#")
            if anchor:
                other = pages[target or path][1]
                assert other is not None and anchor in other.ids


def test_every_page_has_a_unique_title_and_one_heading(pages):
    titles = Counter()
    for path, (status, page) in pages.items():
        if page is None:
            continue
        assert page.headings == 1, path
        assert page.title
        if status == 200 and "?" not in path:
            titles[page.title] += 1
    assert set(titles.values()) == {1}


def test_names_on_a_page_are_unambiguous(pages):
    for path, (_, page) in pages.items():
        if page is None:
            continue
        assert len(page.ids) == len(set(page.ids)), path
        places: dict[str, set[str]] = {}
        for href, words in page.links:
            assert words, f"{path}: a link without a name"
            places.setdefault(words, set()).add(href)
        assert all(len(hrefs) == 1 for hrefs in places.values()), path


def test_every_field_has_a_label(pages, visitor):
    every = [page for _, page in pages.values() if page is not None]
    every.append(Page(visitor.get("/frames/certificate").text))
    for page in every:
        for given in page.fields:
            assert given["wrapped"] or given.get("id") in page.labelled, given


def test_assets_are_local_and_present(pages, visitor):
    assets = {asset for _, page in pages.values() if page for asset in page.assets}
    assert len(assets) > 8
    for asset in sorted(assets):
        assert asset.startswith("/") and not asset.startswith("//")
        reply = visitor.get(asset)
        assert reply.status_code == 200 and reply.content
        if asset.endswith((".css", ".js")):
            assert not re.search(r"https?:", reply.text)
    kind = visitor.get("/assets/catalogue.js").headers["Content-Type"]
    assert kind in ("text/javascript", "application/javascript")


def test_no_slot_is_left_and_nothing_names_a_clock(pages, visitor):
    for path, (_, page) in pages.items():
        assert page is None or ("{{" not in page.html and "}}" not in page.html), path
    for asset in (visitor.site.root / "assets").glob("*.js"):
        assert not re.search(r"\bDate\b|Math\.random", asset.read_text("utf-8"))


def test_the_same_request_has_the_same_answer(visitor):
    for path in ("/", "/stations", "/order", "/api/products?q=tipping", "/downloads/stations.csv"):
        assert visitor.get(path).content == visitor.get(path).content


@pytest.mark.parametrize(
    "path",
    [
        "/nothing-here", "/about/", "/products/none", "/products/", "/stations/none",
        "/downloads/site.json", "/assets/none.css", "/assets/../site.json", "/../site.json",
        "/%2e%2e/site.json", "/templates/product", "/frames/none", "/site.json", "/layout.html",
        "/pages/about", "/About", "/order/confirmed", "/order/confirmed?product=ling-digital",
    ],
)  # fmt: skip
def test_an_unknown_address_gets_the_not_found_page(site, path):
    answer = site.answer("GET", path.partition("?")[0], {})
    assert answer.status == 404
    assert b"Page not found" in answer.body


def test_an_old_address_redirects(visitor):
    reply = visitor.get("/old-shop")
    assert (reply.status_code, reply.headers["Location"]) == (301, "/catalogue")


def test_nothing_can_be_sent_to_a_plain_page(visitor):
    reply = visitor.post("/about", data={"a": "b"})
    assert reply.status_code == 405 and "GET" in reply.headers["Allow"]
    assert visitor.post("/nothing-here", data={"a": "b"}).status_code == 404
