"""What can be found out before the first task: settings, models, the browser server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests

from ck_pro.agent_settings import AgentSettings
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ModelUnavailable
from ck_pro.model import LLM
from ck_pro.model.targets import split_target
from ck_web.client import BrowserClient, RequestRefused
from ck_web.config import WebEnvConfig

_CONNECT_SECONDS = 5.0
_T = TypeVar("_T", bound=KwargsInitializable)


def parts_of(
    part: KwargsInitializable, kind: type[_T], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], _T]]:
    """(names that lead to it, object) of every setting of a class, however deep."""
    for name in part.setting_names():
        value = getattr(part, name)
        if isinstance(value, kind):
            yield (*path, name), value
        if isinstance(value, KwargsInitializable):
            yield from parts_of(value, kind, (*path, name))


def model_settings(agent: KwargsInitializable, target: str) -> dict[str, Any]:
    """Settings that make `target` the model of an agent and of everything below it."""
    settings: dict[str, Any] = {}
    for path, _ in parts_of(agent, LLM):
        at = settings
        for name in path:
            at = at.setdefault(name, {})
        at["call_target"] = target
    return settings


def asks_a_person(agent: KwargsInitializable) -> bool:
    """Whether any of an agent's models is a person at the terminal."""
    return any(_ends_manual(llm.call_target) for _, llm in parts_of(agent, LLM))


def check_services(agent: KwargsInitializable) -> None:
    """Find out whether everything that the agent's settings name can be used and reached.

    Raises:
        ModelError: a model: its key, recording or package is missing, or nothing listens.
        BrowserServerError: the given browser server does not answer.
        ConfigError: the browser server's address is not one.
    """
    if isinstance(agent, AgentSettings):
        agent.check()
    seen: set[str] = set()
    for _, llm in parts_of(agent, LLM):
        if llm.call_target in seen or llm.backend is not None:
            continue
        seen.add(llm.call_target)
        llm.check()
        url = service_url(llm.call_target)
        if url:
            _connect(url, llm.call_target)
    for _, config in parts_of(agent, WebEnvConfig):
        server = config.given_server()
        if server and server not in seen:
            seen.add(server)
            _check_browser_server(config, server)


def service_url(target: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The address that a `call_target` will connect to, where it is known and not proxied."""
    environ = os.environ if environ is None else environ
    kind, rest = split_target(target)
    if kind == "record":
        return service_url(rest.partition(":")[2], environ)
    url = rest if kind == "http" else environ.get("OPENAI_BASE_URL", "") if kind == "gpt" else ""
    if not url or requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url)):
        return None
    return url


def _connect(url: str, target: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as e:
        said = "no answer" if isinstance(e, TimeoutError) else e.strerror or str(e)
        raise ModelUnavailable(
            f"the model at {parts.scheme}://{parts.hostname}:{port} cannot be reached: {said}; "
            f"start its server, or correct call_target ({target.partition(':')[0]}:...)"
        ) from None


def _check_browser_server(config: WebEnvConfig, server: str) -> None:
    token = config.token.get_secret_value() or os.environ.get("CK_WEB_TOKEN", "")
    client = BrowserClient(server, token=token, timeout=_CONNECT_SECONDS)
    try:
        client.status()
    except RequestRefused as e:
        if e.status != 404:  # servers of the older wire have no such route, but they answer
            raise
    finally:
        client.close()


def _ends_manual(target: str) -> bool:
    kind, rest = split_target(target)
    return kind == "manual" or (kind == "record" and _ends_manual(rest.partition(":")[2]))
