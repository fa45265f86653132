"""The URL policy: rules, their precedence, and addresses without a rule."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web_server.network.policy import Policy, Rule, RuleError, is_public, normalise_url

NOT_PUBLIC = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    parsed = ipaddress.ip_address(address)
    assert not is_public(parsed)
    assert "not a public address" in Policy().refuse_address("name.example", 80, parsed)
    host = f"[{address}]" if parsed.version == 6 else address
    assert Policy().refuse_url(f"http://{host}/")


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert Policy().refuse_address("name.example", 443, ipaddress.ip_address(address)) == ""


@pytest.mark.parametrize(
    ("allow", "block", "host", "port", "open_"),
    [
        ([], ["example.com"], "example.com", 443, False),
        ([], ["example.com"], "www.Example.COM.", 443, False),
        ([], ["example.com"], "notexample.com", 443, True),
        ([], ["example.com:8080"], "example.com", 443, True),
        (["ok.example.com"], ["example.com"], "ok.example.com", 443, True),
        (["example.com"], ["ads.example.com"], "x.ads.example.com", 443, False),
        (["example.com"], ["example.com"], "example.com", 443, False),
        (["example.com"], ["*"], "example.com", 443, True),
        (["example.com"], ["*"], "example.org", 443, False),
        (["example.com:80"], ["example.com"], "example.com", 80, True),
        (["*"], [], "10.0.0.1", 80, False),
        (["10.0.0.0/8"], [], "10.0.0.1", 80, True),
        (["10.0.0.0/8"], ["10.0.0.1"], "10.0.0.1", 80, False),
        (["127.0.0.1:8000"], [], "127.0.0.1", 8000, True),
        (["127.0.0.1:8000"], [], "127.0.0.1", 8001, False),
        (["[::1]:80"], [], "::1", 80, True),
        (["bücher.example"], ["*"], "xn--bcher-kva.example", 443, True),
    ],
)
def test_the_most_specific_rule_decides(
    allow: list[str], block: list[str], host: str, port: int, open_: bool
) -> None:
    assert (Policy.of(allow, block).refuse_host(host, port) == "") is open_


def test_rules_with_a_host_or_range_allow_private_addresses() -> None:
    private = ipaddress.ip_address("10.0.0.5")
    assert Policy.of(["intranet.example"]).refuse_address("intranet.example", 80, private) == ""
    assert Policy.of(["10.0.0.5:80"]).refuse_address("any.example", 80, private) == ""
    assert Policy.of(["10.0.0.5:80"]).refuse_address("any.example", 81, private)
    assert Policy.of([], ["10.0.0.0/8"]).refuse_address("any.example", 80, private)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "chrome://settings",
        "view-source:http://example.com",
        "ftp://example.com",
        "http://",
        "http://[::bad",
        "http://a:99999/",
        "",
    ],
)
def test_other_schemes_and_broken_urls_are_refused(url: str) -> None:
    assert Policy().refuse_url(url)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com/a", "https://example.com/a"),
        (" http://example.com ", "http://example.com"),
        ("localhost:3000/x", "http://localhost:3000/x"),
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("//example.com", "https://example.com"),
        ("about:blank", "about:blank"),
        ("file:///x", "file:///x"),
    ],
)
def test_urls_without_a_scheme_are_completed(text: str, url: str) -> None:
    assert normalise_url(text) == url


@pytest.mark.parametrize("text", ["", "http://example.com", "a b", "example.com:0", "a..b", "x:y"])
def test_malformed_rules_are_refused(text: str) -> None:
    with pytest.raises(RuleError):
        Rule.parse(text)


@given(st.text(max_size=40), st.text(max_size=60))
def test_only_rule_errors_are_raised(rule: str, url: str) -> None:
    try:
        policy = Policy.of([rule], [rule])
    except RuleError:
        policy = Policy()
    assert isinstance(policy.refuse_url(normalise_url(url)), str)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_one_is_checked(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.ip_address(f"::ffff:{address}")
    assert is_public(mapped) == is_public(address)


def test_a_policy_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.txt"
    file.write_text("# our sites\nblock *\n\nAllow example.com  # and below\n")
    policy = Policy.read(file, allow=["example.org"])
    assert policy.refuse_host("www.example.com", 443) == ""
    assert policy.refuse_host("example.org", 443) == ""
    assert policy.refuse_host("example.net", 443)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"allow example.com\nopen x", "policy.txt:2: write `allow RULE`"),
        (b"allow a..b", "policy.txt:1: 'a..b' is not a rule"),
        (b"allow", "policy.txt:1: write"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (None, ": No such file"),
    ],
)
def test_an_error_in_a_policy_file_names_the_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "policy.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RuleError) as error:
        Policy.read(file)
    assert said in str(error.value) and "\n" not in str(error.value)


OPEN = Policy.of(allow=["127.0.0.1:8000", "ok.internal"], block=["bad.example"])


@pytest.mark.parametrize(
    ("allow", "block", "host", "port", "reason"),
    [
        ([], ["example.com"], "www.example.com", 443, "blocked by the rules of this browser"),
        ([], ["example.com"], "example.org", 443, ""),
        ([], ["*"], "example.org", 443, "blocked by the rules of this browser"),
        (["example.com"], ["*"], "example.com", 443, ""),
        (["example.com"], [], "bad.example", 443, "blocked by the server's policy"),
        ([], ["ok.internal"], "ok.internal", 80, "blocked by the rules of this browser"),
        (["127.0.0.1:8000"], ["*"], "127.0.0.1", 8000, ""),
        (["*"], [], "10.0.0.1", 80, "10.0.0.1 is not a public address"),
        ([], ["127.0.0.0/8"], "127.0.0.1", 8000, "blocked by the rules of this browser"),
    ],
)
def test_the_rules_of_a_lease_can_only_restrict(
    allow: list[str], block: list[str], host: str, port: int, reason: str
) -> None:
    said = OPEN.narrowed(allow, block).refuse_host(host, port)
    assert said.startswith(reason) and bool(said) == bool(reason)


@pytest.mark.parametrize(
    "allow",
    ["127.0.0.1:8001", "127.0.0.1", "localhost:9", "10.0.0.0/8", "bad.example", "::1"],
)
def test_a_lease_cannot_allow_what_the_server_refuses(allow: str) -> None:
    with pytest.raises(RuleError, match="only the server's operator can allow it"):
        OPEN.narrowed([allow], [])


@given(
    st.lists(st.sampled_from(["*", "example.com", "127.0.0.1:8000", "8.8.8.8", "ok.internal"])),
    st.lists(st.sampled_from(["*", "example.com", "10.0.0.0/8", "ok.internal", "8.8.8.8:53"])),
    st.sampled_from(["example.com", "a.example.com", "127.0.0.1", "8.8.8.8", "bad.example", "::1"]),
    st.sampled_from([53, 80, 8000]),
)
def test_no_rules_of_a_lease_allow_more_than_the_server(
    allow: list[str], block: list[str], host: str, port: int
) -> None:
    narrow = OPEN.narrowed(allow, block)
    if OPEN.refuse_host(host, port):
        assert narrow.refuse_host(host, port)
    address = ipaddress.ip_address("127.0.0.1")
    if OPEN.refuse_address(host, port, address):
        assert narrow.refuse_address(host, port, address)
