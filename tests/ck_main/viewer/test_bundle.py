"""The page as one HTML file: every module is in it, and no data can leave its element."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re

import pytest

from ck_main.viewer.bundle import PAGE, page_html


class Elements(html.parser.HTMLParser):
    """The elements of a document with their texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)


def test_the_file_has_all_modules_and_no_import_or_export() -> None:
    found = Elements(page_html("{}")).found
    [script] = [text for tag, attrs, text in found if tag == "script" and not attrs]
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    modules = list(PAGE.glob("*.js"))
    # each module of the page, and those of /static/ that they import
    assert len(re.findall(r"^const m\d+ = \(\(\) => \{$", script, re.MULTILINE)) > len(modules) - 2


def test_the_policy_allows_exactly_the_inline_script_and_style() -> None:
    found = Elements(page_html("{}")).found
    [policy] = [attrs["content"] for tag, attrs, _ in found if "http-equiv" in attrs]
    for wanted in ("script", "style"):
        [text] = [text for tag, attrs, text in found if tag == wanted and not attrs]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{wanted}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")


@pytest.mark.parametrize(
    "hostile",
    ["</script><script>alert(1)</script>", "<!--<script>", "</SCRIPT >", "\u2028", "</title>"],
)
def test_hostile_data_stays_in_its_element(hostile: str) -> None:
    data = {"responses": {"/api/run/a": {"task": hostile}}}
    text = page_html(json.dumps(data, ensure_ascii=False), title=hostile)
    found = Elements(text).found
    assert [attrs.get("id") for tag, attrs, _ in found if tag == "script"] == ["ck-data", None]
    [embedded] = [text for _, attrs, text in found if attrs.get("id") == "ck-data"]
    assert json.loads(embedded) == data


def test_the_file_refers_to_nothing_outside() -> None:
    for tag, attrs, _ in Elements(page_html("{}")).found:
        for name in ("src", "href"):
            assert (attrs.get(name) or "data:").startswith("data:"), (tag, attrs)
