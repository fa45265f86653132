"""Where a secret may be typed, and how replies mask it."""

from __future__ import annotations

import pytest

from web_server.contract import SiteSecret
from web_server.errors import Conflict
from web_server.session.secret_book import SecretBook, is_allowed


@pytest.mark.parametrize(
    ("url", "domain", "allowed"),
    [
        ("https://shop.example/login", "shop.example", True),
        ("https://login.shop.example/", "Shop.Example", True),
        ("https://shop.example.evil.test/", "shop.example", False),
        ("https://evilshop.example/", "shop.example", False),
        ("https://shop.example@evil.test/", "shop.example", False),
        ("http://shop.example/", "shop.example", False),
        ("http://shop.example/", "http://shop.example", True),
        ("https://shop.example/", "http://shop.example", False),
        ("https://shop.example:8443/", "shop.example:8443", True),
        ("https://shop.example/", "shop.example:8443", False),
        ("https://shop.example/", "shop.example:443", True),
        ("http://127.0.0.1:9000/", "127.0.0.1", True),
        ("http://1.127.0.0.1/", "127.0.0.1", False),
        ("http://localhost:80/", "localhost", True),
        ("about:srcdoc", "shop.example", False),
        ("data:text/html,x", "shop.example", False),
        ("https://shop.example:nine/", "shop.example", False),
        ("https://shop.example/", "", False),
        ("file:///shop.example", "shop.example", False),
    ],
)
def test_a_secret_belongs_to_its_hosts(url: str, domain: str, allowed: bool) -> None:
    assert is_allowed(url, domain) is allowed


def book(value: str) -> SecretBook:
    return SecretBook({"a": SiteSecret(value=value, domains=["shop.example"])})


def test_a_text_gets_its_secrets_on_their_domain_only() -> None:
    assert book("hunter2").filled("x{{ secret:a }}y", "https://shop.example/") == "xhunter2y"
    for text, url in (
        ("{{secret:a}}", "https://x.test/"),
        ("{{secret:b}}", "https://shop.example"),
    ):
        with pytest.raises(Conflict, match="nothing was typed"):
            book("hunter2").filled(text, url)
    assert not SecretBook().has_placeholder("{{secret:a}}")


@pytest.mark.parametrize(
    ("value", "shown", "masked"),
    [
        ("hunter2", "typed 'hunter2'", "typed '{{secret:a}}'"),
        ("a b&c", "/?q=a+b%26c", "/?q={{secret:a}}"),
        ("a b&c", "<p>a b&amp;c", "<p>{{secret:a}}"),
        ("4711", "[4711] button '4711' 14711", "[4711] button '{{secret:a}}' 14711"),
        ("x" * 40, "value: " + "x" * 16 + "\u2026", "value: {{secret:a}}\u2026"),
        ("back\\slash", "back\\slash", "{{secret:a}}"),
    ],
)
def test_replies_show_the_name_instead(value: str, shown: str, masked: str) -> None:
    secrets = book(value)
    assert secrets.masked({"yaml": shown, "n": 1, "more": [shown]}) == {
        "yaml": masked,
        "n": 1,
        "more": [masked],
    }
    assert secrets.masked((shown, None, b"x")) == (masked, None, b"x")
    assert secrets.masked({"boxed_screenshot": value}) == {"boxed_screenshot": value}
