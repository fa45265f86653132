"""The policy: which URLs, hosts and addresses the browsers may reach.

A policy has two lists of rules, to allow and to block. A rule is one of

    example.com         the host and its subdomains, any port
    example.com:8080    the same, only this port
    192.0.2.7, [::1]:80 an address, with or without a port
    10.0.0.0/8          a range of addresses
    *                   everything

The most specific matching rule decides. Of equally specific rules the blocking one decides. If no
rule matches, public addresses are allowed. All others (loopback, private, link-local, multicast,
reserved) are refused: those need a rule with their host or address, and `*` is not enough. So
`--block '*' --allow example.com` makes an allow-list.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*):(?!\d+(?:[/?#]|$))")
_LOOPBACK = ipaddress.ip_address("127.0.0.1")
NOT_PUBLIC = "not a public address, and the browser's settings do not allow it"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refusal(str):
    """Why a host may not be reached, as one line.

    Attributes:
        private: whether the reason is that the address is not public and no rule allows it.
    """

    private = False

    @classmethod
    def of_private(cls, text: str) -> Refusal:
        """Create the refusal of an address that is not public."""
        refusal = cls(text)
        refusal.private = True
        return refusal


class RuleError(ValueError):
    """A rule is malformed. The message is one line for the user."""


@dataclass(frozen=True)
class Rule:
    """An entry of the allow or block list.

    Attributes:
        host: lower-case host name without a trailing dot; empty for addresses and `*`.
        network: the range of addresses; None for hosts and `*`.
        port: the port; None for all ports.
        text: the rule as written.
    """

    host: str
    network: Network | None
    port: int | None
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse a rule.

        Raises:
            RuleError: it has none of the forms in the docstring of this module.
        """
        rest = text.strip().lower()
        port: int | None = None
        if "://" in rest:
            raise RuleError(f"{text!r}: a rule is a host, not a URL: leave out the scheme")
        if match := re.fullmatch(r"(\[[^\]]+\]|[^:]*):(\d+)", rest):
            rest, port = match[1], int(match[2])
            if not 0 < port < 65536:
                raise RuleError(f"{text!r}: {port} is not a port number")
        rest = rest.removeprefix("[").removesuffix("]")
        if rest == "*":
            return cls("", None, port, text)
        try:
            return cls("", ipaddress.ip_network(rest, strict=False), port, text)
        except ValueError:
            pass
        host = rest.removeprefix("*.").strip(".")
        if not host or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", host):
            raise RuleError(
                f"{text!r} is not a rule: write HOST, HOST:PORT, ADDRESS, ADDRESS/BITS or *"
            )
        return cls(_ascii_host(host), None, port, text)

    def specificity(self, host: str, port: int, addresses: Sequence[Address]) -> int:
        """Return how specifically the rule matches: -1 not at all, 0 as `*`, more as a name."""
        if self.port is not None and self.port != port:
            return -1
        extra = 0 if self.port is None else 1
        if self.network is not None:
            inside = addresses and all(
                address.version == self.network.version and address in self.network
                for address in addresses
            )
            return 2 + 10 * self.network.prefixlen + extra if inside else -1
        if not self.host:
            return extra if self.port is None else 1
        if host == self.host or host.endswith("." + self.host):
            return 2 + 10 * (self.host.count(".") + 1) + extra
        return -1


@dataclass(frozen=True)
class Policy:
    """The rules in force. Immutable, safe to share.

    Args:
        allow: rules that allow hosts or addresses.
        block: rules that block them.
        lease: the rules of one client, which can only restrict.
    """

    allow: tuple[Rule, ...] = ()
    block: tuple[Rule, ...] = ()
    lease: Policy | None = None

    @classmethod
    def of(cls, allow: Iterable[str] = (), block: Iterable[str] = ()) -> Policy:
        """Create a policy from rules as strings.

        Raises:
            RuleError: a rule is malformed.
        """
        return cls(tuple(map(Rule.parse, allow)), tuple(map(Rule.parse, block)))

    @classmethod
    def read(cls, path: Path, allow: Iterable[str] = (), block: Iterable[str] = ()) -> Policy:
        """Create a policy from a file and more rules as strings.

        A line of the file is `allow RULE`, `block RULE`, a comment after `#`, or empty.

        Raises:
            RuleError: the file cannot be read, or a line or a rule is malformed.
        """
        lists: dict[str, list[str]] = {"allow": list(allow), "block": list(block)}
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise RuleError(f"cannot read the policy {path}: {reason}") from None
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            if len(words) != 2 or words[0].lower() not in lists:
                raise RuleError(
                    f"{path}:{number}: write `allow RULE` or `block RULE`, not {line.strip()!r}"
                )
            try:
                Rule.parse(words[1])
            except RuleError as error:
                raise RuleError(f"{path}:{number}: {error}") from None
            lists[words[0].lower()].append(words[1])
        return cls.of(lists["allow"], lists["block"])

    def narrowed(self, allow: Iterable[str], block: Iterable[str]) -> Policy:
        """Return this policy restricted by the rules of one client.

        Raises:
            RuleError: a rule is malformed, or allows what this policy refuses.
        """
        lease = Policy.of(allow, block)
        for rule in lease.allow:
            if reason := self._refuse_rule(rule):
                raise RuleError(
                    f"allow {rule.text!r}: {reason}; only the server's operator can allow it: "
                    f"start the server with --allow {rule.text}"
                )
        return replace(self, lease=lease) if lease.allow or lease.block else self

    def _refuse_rule(self, rule: Rule) -> str:
        """Return why all hosts of a rule are refused; empty if some may be reached."""
        port = rule.port or 0
        if rule.network is not None:
            ends = (rule.network[0], rule.network[-1])
            return next(
                filter(None, (self._refuse(str(a), port, [a], range_=True) for a in ends)), ""
            )
        if rule.host == "localhost" or rule.host.endswith(".localhost"):
            return self._refuse(rule.host, port, [_LOOPBACK], range_=True)
        return self._refuse(rule.host, port, [], range_=False) if rule.host else ""

    def refuse_host(self, host: str, port: int) -> str:
        """Return why the policy refuses a host by its name; empty if it does not."""
        host = _ascii_host(host)
        literal = parse_address(host)
        return self._refuse(host, port, [literal] if literal else [], range_=bool(literal))

    def refuse_address(self, host: str, port: int, address: Address) -> str:
        """Return why the policy refuses `address`, to which `host` resolves; empty if allowed."""
        return self._refuse(_ascii_host(host), port, [unwrap(address)], range_=True)

    def _refuse(self, host: str, port: int, addresses: Sequence[Address], *, range_: bool) -> str:
        allowed, blocked = self._strengths(host, port, addresses)
        if blocked >= 0 and blocked >= allowed:
            return Refusal("blocked by the server's policy")
        if range_ and allowed < 2:
            for address in addresses:
                if not is_public(address):
                    return Refusal.of_private(f"{address} is {NOT_PUBLIC}")
        if self.lease is not None:
            allowed, blocked = self.lease._strengths(host, port, addresses)
            if blocked >= 0 and blocked >= allowed:
                return Refusal("blocked by the rules of this browser")
        return ""

    def _strengths(self, host: str, port: int, addresses: Sequence[Address]) -> tuple[int, int]:
        """Return how specifically the rules allow and block a host."""
        allowed = max((r.specificity(host, port, addresses) for r in self.allow), default=-1)
        blocked = max((r.specificity(host, port, addresses) for r in self.block), default=-1)
        return allowed, blocked

    def refuse_url(self, url: str) -> str:
        """Return why the policy refuses a URL by its text; empty if it does not.

        The proxy checks the address of the host for each connection.
        """
        if url == "about:blank":
            return ""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            return f"not a URL: {error}"
        if parts.scheme not in ("http", "https"):
            return f"only http and https are allowed, not {parts.scheme or 'no scheme'}"
        if not parts.hostname:
            return "the URL has no host"
        return self.refuse_host(parts.hostname, port or (443 if parts.scheme == "https" else 80))


def normalise_url(text: str) -> str:
    """Complete a URL without a scheme: `example.com/a` -> `https://example.com/a`.

    Loopback names and addresses get `http`.
    """
    url = text.strip()
    if not url or _SCHEME.match(url):
        return url
    if url.startswith("//"):
        return "https:" + url
    host = re.split(r"[/?#]", url, maxsplit=1)[0]
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    local = name == "localhost" or parse_address(name.strip("[]")) is not None
    return f"{'http' if local else 'https'}://{url}"


def place_of(url: str) -> str:
    """Return the `host:port` of a URL, as rules write it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(host: str) -> Address | None:
    """Parse an IP address and unwrap it; None for a name."""
    try:
        return unwrap(ipaddress.ip_address(host.strip("[]").split("%")[0]))
    except ValueError:
        return None


def unwrap(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 one (mapped, 6to4, NAT64), else the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet: unicast and not reserved."""
    address = unwrap(address)
    return address.is_global and not address.is_multicast and not address.is_reserved


def _ascii_host(host: str) -> str:
    """Normalise a host: lower case, no trailing dot, international names in ASCII."""
    host = host.strip("[]").rstrip(".").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
