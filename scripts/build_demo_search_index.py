"""Build `search_index.json`: `python scripts/build_demo_search_index.py`.

The tool `simple_web_search` reads this index in the demo: a list of {title, url, text}, where
`{site}` in a URL stands for the site's origin. The script crawls the site over HTTP like a search
engine: it follows links without running scripts, and skips errors, files other than HTML, and URLs
with a query.
"""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import requests

from ck_main.demo import DEMO
from ck_main.demo_site import DemoSite

INDEX = DEMO / "search_index.json"
SILENT = frozenset({"script", "style", "option", "noscript"})


class PageReader(HTMLParser):
    """Extracts the title, the text of `<main>` and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.links: list[str] = []
        self._open: list[str] = []
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text of `<main>` on one line."""
        return " ".join(" ".join(self._pieces).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an open element, and a link."""
        if tag in SILENT | {"title", "main"}:
            self._open.append(tag)
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)

    def handle_endtag(self, tag: str) -> None:
        """Record the end of an element."""
        if tag in self._open:
            self._open.remove(tag)

    def handle_data(self, data: str) -> None:
        """Collect text of the title and of `<main>`."""
        if "title" in self._open:
            self.title += data
        elif "main" in self._open and not SILENT & set(self._open):
            self._pieces.append(data)


def build(site: DemoSite) -> list[dict[str, str]]:
    """Build the index of a running site, sorted by URL."""
    origin = site.origin
    waiting = [f"{origin}/", *(f"{origin}/products/{slug}" for slug in site.data.products)]
    seen: set[str] = set()
    index = []
    with requests.Session() as session:
        while waiting:
            url = waiting.pop()
            if url in seen:
                continue
            seen.add(url)
            reply = session.get(url, timeout=30, allow_redirects=False)
            if reply.status_code != 200 or "html" not in reply.headers["Content-Type"]:
                continue
            page = PageReader()
            page.feed(reply.text)
            page.close()
            place = url.replace(origin, "{site}")
            index.append({"title": page.title, "url": place, "text": page.text})
            links = (urljoin(url, link).partition("#")[0] for link in page.links)
            waiting += [x for x in links if x.startswith(origin) and not urlsplit(x).query]
    return sorted(index, key=lambda entry: entry["url"])


def as_text(index: list[dict[str, str]]) -> str:
    """Format the index as in the file: one page per line."""
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in index)
    return f"[\n{lines}\n]\n"


def main() -> int:
    """Write the file and print the number of pages."""
    with DemoSite() as site:
        index = build(site)
    INDEX.write_text(as_text(index), encoding="utf-8")
    sys.stdout.write(f"{INDEX.name}: {len(index)} pages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
