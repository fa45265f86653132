"""Documents that are not usual pages: not shown, incomplete, or never received."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import ANSWERS, PAGES

pytestmark = pytest.mark.browser

ANSWERS["/paper.pdf"] = ("application/pdf", b"%PDF-1.1\n%%EOF", {})
ANSWERS["/garbled"] = ("text/html", b"<p>not packed", {"Content_Encoding": "gzip"})
PAGES["/ways"] = """<title>Ways</title><a href="/paper.pdf" target=_blank>Paper</a>
    <a href="https://10.0.0.1/" target=_blank>Inside</a><a href="/missing" target=_blank>Lost</a>
    <a href="/nothing">Nowhere</a>"""


def test_a_pdf_is_downloaded_once(client: Client) -> None:
    for _ in range(2):
        tree = client.open("/paper.pdf")
        assert "[0] alert 'this page is a PDF document: read the downloaded file'" in tree
    assert [each["name"] for each in client.view["downloads"]] == ["paper.pdf"]


def test_a_document_that_breaks_off_is_told(client: Client) -> None:
    tree = client.open("/garbled")
    assert "/garbled broke off before its end: net::ERR_CONTENT_DECODING_FAILED'" in tree
    assert "keeps changing" not in str(client.view["events"])


def test_an_answer_without_a_page_is_told(client: Client) -> None:
    client.open("/two")
    tree = client.act("goto", actionValue=client.site + "/nothing")
    assert "/nothing led to no page'" in tree and "Second page" in tree
    client.open("/ways")
    client.act("click", "link 'Nowhere'")
    assert client.message.endswith("/nothing led to no page (HTTP status 204)")


def test_what_cannot_be_read_is_told(client: Client) -> None:
    PAGES["/deep"] = """<title>Deep</title><button>Top</button><script>
        let inner = document.body;
        for (let n = 0; n < 1500; n++) inner = inner.appendChild(document.createElement('div'));
        inner.innerHTML = '<button>Bottom</button>'</script>"""
    tree = client.open("/deep")
    assert "alert 'a part of this page could not be read: it is missing here'" in tree
    assert "button 'Top'" in tree and "could not be read" not in client.open("/two")


def test_what_came_of_a_new_window_is_told(client: Client, tabs_client: Client) -> None:
    for each in (client, tabs_client):
        each.open("/ways")
        home = each.page
        for line, notice in (
            ("link 'Paper'", "[0] alert 'this page is a PDF document"),
            ("link 'Lost'", "[0] alert 'HTTP status 404 at"),
        ):
            assert notice in each.act("click", line)
            if each is client:
                each.act("goback")
            else:
                each.page = home
                each.act("wait", timeout=1)
        assert "downloaded paper.pdf" not in each.message
        refused = each.act("click", "link 'Inside'")  # its window is closed again
        assert "closed the page that opened" in refused
        assert "10.0.0.1 is not a public address" in refused
        assert each.view["title"] == "Ways" and len(each.view["downloads"]) == 1


def test_a_page_that_asks_before_it_is_left_gets_the_answer_that_was_ordered(
    client: Client,
) -> None:
    client.open("/leave")
    client.act("click", "button 'Arm'")
    client.act("answer_dialog", actionValue="dismiss")
    client.act("click", "link 'Leave'")
    assert "whether to leave it: no" in client.message and client.view["title"] == "Leave"
    assert "Second page" in client.act("click", "link 'Leave'")


def test_titles_and_addresses_of_any_length_fill_no_tree(client: Client) -> None:
    PAGES["/wordy"] = f"<title>{'word ' * 9000}</title>"
    client.open("/wordy")
    tree = client.go(client.site + "/wordy?" + "x" * 20_000)
    assert len(tree) < 1500 and len(client.message) < 500
