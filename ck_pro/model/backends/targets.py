"""The table of schemes: which back end a `call_target` names.

Each module in `ck_pro/model/backends/schemes` declares one `SCHEME`. The checks, the error for an
unknown scheme, the command line's help and the table in docs/models.md derive from these
declarations.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends import schemes
from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.service_errors import one_line


@dataclass(frozen=True)
class Access:
    """Settings of an `LLM` for access to its service.

    Args:
        api_key_env: environment variable with the API key of an http(s) target.
        headers: additional HTTP headers.
    """

    api_key_env: str = "CK_API_KEY"
    headers: Mapping[str, str] = field(default_factory=dict)


def _any_text(argument: str) -> None:
    if not argument:
        raise ConfigError("an argument is missing after the colon")


@dataclass(frozen=True)
class Scheme:
    """One row of the table: a kind of `call_target` and its back end.

    A function of a scheme gets the argument: the text after the colon, or the whole URL if
    `is_url`.

    Args:
        name: the text before the colon, "gpt".
        form: how to write the target, "gpt:NAME".
        meaning: what completes the prompts, for the docs.
        open: returns the back end; import its module here if that is slow.
        check: raises ConfigError for a malformed argument; reads no file and no network.
        aliases: other names.
        is_url: the argument includes the scheme.
        interactive: a person writes the replies.
        offline: replies need no service, so it cannot be down.
        inner: returns the target that this target wraps.
        address: returns the URL of the service, from the argument and the environment.
        provider: name in telemetry; default: `name`.
    """

    name: str
    form: str
    meaning: str
    open: Callable[[str, Access], Backend]
    check: Callable[[str], None] = _any_text
    aliases: tuple[str, ...] = ()
    is_url: bool = False
    interactive: bool = False
    offline: bool = False
    inner: Callable[[str], str] | None = None
    address: Callable[[str, Mapping[str, str]], str] | None = None
    provider: str = ""


class Target(NamedTuple):
    """A `call_target`, taken apart."""

    scheme: Scheme
    argument: str

    def __str__(self) -> str:
        if self.scheme.is_url or not self.argument:
            return self.argument or self.scheme.name
        return f"{self.scheme.name}:{self.argument}"

    def innermost(self) -> Target:
        """Return the target that generates the replies: without wrappers such as `record:`."""
        if self.scheme.inner is None:
            return self
        return parse_target(self.scheme.inner(self.argument)).innermost()


@functools.cache
def known_schemes() -> tuple[Scheme, ...]:
    """Return all schemes, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(schemes.__path__))
    modules = [importlib.import_module(f"{schemes.__name__}.{name}") for name in names]
    return tuple(module.SCHEME for module in modules)


def known_forms() -> list[str]:
    """Return how each kind of target is written, for help and errors."""
    return [scheme.form for scheme in known_schemes()]


def parse_target(target: str) -> Target:
    """Split a `call_target` into its scheme and argument.

    Raises:
        ConfigError: the scheme is unknown.
    """
    text = target.strip()
    name, _, argument = text.partition(":")
    found = {n: scheme for scheme in known_schemes() for n in (scheme.name, *scheme.aliases)}
    scheme = found.get(name) or found.get(name.lower())
    if scheme is not None:
        return Target(scheme, text if scheme.is_url else argument)
    near = difflib.get_close_matches(name.lower(), found, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise ConfigError(
        f"call_target '{without_secrets(text)}': unknown scheme; {hint}"
        f"known are: {', '.join(known_forms())}"
    )


def check_target(target: str) -> None:
    """Check the form of a `call_target`, without reading what it names.

    Raises:
        ConfigError: the scheme is unknown, or its argument is malformed.
    """
    scheme, argument = parse_target(target)
    try:
        scheme.check(argument)
    except ConfigError as e:
        raise ConfigError(
            f"call_target '{without_secrets(target)}': {e}; write it as {scheme.form}"
        ) from None


def without_secrets(target: str) -> str:
    """Return a target on one line, without the login and the query of a URL."""
    shown = re.sub(r"(?<=://)[^/@]*@", "", target.strip())
    if "://" in shown:
        shown = shown.partition("?")[0]
    return one_line(shown, 60)


def open_target(target: str, access: Access | None = None) -> Backend:
    """Return the back end of a `call_target`. Cheap: connections are shared by the process.

    Args:
        target: as `LLM.call_target`.
        access: settings for access to a service.

    Raises:
        ConfigError: the scheme is unknown.
        ModelError: the back end cannot be used.
    """
    scheme, argument = parse_target(target)
    return scheme.open(argument, access or Access())
