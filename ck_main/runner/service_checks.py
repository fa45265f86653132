"""Check settings and services before the first task, or after a failed one."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

from ck_pro.agent_settings import AgentSettings, ExecutorSettings
from ck_pro.config import KwargsInitializable, iter_nested
from ck_pro.exceptions import (
    ConfigError,
    ContentFiltered,
    ExecutorError,
    ModelError,
    ModelUnavailable,
    ToolError,
)
from ck_pro.executor import CodeExecutor
from ck_pro.model import LLM
from ck_pro.model.backends.targets import Access, open_target, parse_target
from ck_pro.model.budget import price_of
from ck_pro.tools import SimpleSearchTool
from ck_web.browser.client import BrowserClient, RequestRefused
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.server_process import check_chromium
from ck_web.browser.shared_servers import acquire_server, release_server

_CONNECT_SECONDS = 5.0
_PROBE_TRIES = 2
_PROBE_SECONDS = 60.0


def uses_manual_model(agent: KwargsInitializable, judge: LLM | None = None) -> bool:
    """Whether any of an agent's models, or the judge, is a person at the terminal."""
    models = [llm for _, llm in iter_nested(agent, LLM)] + ([judge] if judge is not None else [])
    targets = {llm.call_target for llm in models}
    return any(parse_target(target).innermost().scheme.interactive for target in targets)


_Parts = list[tuple[str, KwargsInitializable]]
"""The configurable objects that an agent uses, each with the path of its setting."""


def _used_parts(agent: KwargsInitializable, judge: LLM | None) -> _Parts:
    found = iter_nested(agent, KwargsInitializable, used=True)
    parts: _Parts = [(".".join(path), part) for path, part in found]
    return parts if judge is None else [*parts, ("the judge's model", judge)]


def check_services(
    agent: KwargsInitializable, *, money_limit: bool = False, judge: LLM | None = None
) -> None:
    """Check that the agent's settings are consistent and its services are reachable.

    Args:
        agent: the agent; nested agents and tools are checked too.
        money_limit: require a known price for every model.
        judge: an additional model to check.

    Raises:
        ModelError: the server of a model is unreachable.
        BrowserServerError: the browser server does not respond.
        ConfigError: a model lacks its key, recording or package; there is no Chromium; functions
            and templates do not match; a model has no known price; or a worker cannot start with
            the agent's settings.
    """
    if isinstance(agent, AgentSettings):
        agent.check()
    parts = _used_parts(agent, judge)
    _check_workers(parts)
    _check_searches(parts)
    seen: set[str] = set()
    unpriced: dict[str, str] = {}
    for where, llm in parts:
        if not isinstance(llm, LLM) or llm.backend is not None:
            continue
        if llm.call_target not in seen:
            seen.add(llm.call_target)
            _check_model(llm)
            url = service_url(llm.call_target)
            if url:
                _connect(url, llm.call_target)
        name = _without_price(llm) if money_limit else None
        if name is not None:
            unpriced[where] = name
    _refuse_unpriced(unpriced)
    _check_browsers(parts)


def _check_browsers(parts: _Parts) -> None:
    seen: set[str] = set()
    for _, config in parts:
        if not isinstance(config, WebEnvConfig):
            continue
        server = config.given_server()
        if (server or config.chromium) in seen:
            continue
        seen.add(server or config.chromium)
        if server:
            _check_browser_server(config, server)
        else:
            check_chromium(config.chromium)


def _check_model(llm: LLM) -> None:
    """Check what a model needs on this machine; a missing thing is a fault of the settings."""
    try:
        llm.check()
    except ModelError as e:
        raise ConfigError(str(e)) from None


def _check_searches(parts: _Parts) -> None:
    for path, tool in parts:
        if isinstance(tool, SimpleSearchTool):
            try:
                tool.check()
            except ToolError as e:
                raise ConfigError(f"{path}.backend: {e}") from None


def _check_workers(parts: _Parts) -> None:
    """Start a worker for each setting that this system may not support."""
    for path, settings in parts:
        if not isinstance(settings, ExecutorSettings) or not (
            settings.require_isolation or settings.preload or settings.readable
        ):
            continue
        values = {name: getattr(settings, name) for name in settings.setting_names()}
        try:
            with CodeExecutor(**values) as executor:
                executor.run("")
        except (ConfigError, ExecutorError) as e:
            raise ConfigError(f"{path}: {e}") from None


def probe_services(
    agent: KwargsInitializable, *, money_limit: bool = False, judge: LLM | None = None
) -> None:
    """Check after a failure that every service still works.

    Beyond `check_services`, request one short reply from every model (except a human or a
    recording), and start the local browser server if it is not running.

    Raises:
        CKError: see `check_services`; or a model refuses, or the server cannot start.
    """
    check_services(agent, money_limit=money_limit, judge=judge)
    asked: set[tuple[str, str]] = set()
    parts = _used_parts(agent, judge)
    for _, llm in parts:
        if isinstance(llm, LLM) and llm.backend is None:
            key = (llm.call_target, repr(llm.call_kwargs))
            if key not in asked:
                asked.add(key)
                _ask(llm)
    for _, config in parts:
        if isinstance(config, WebEnvConfig) and not config.given_server():
            server = acquire_server(config.server_options())
            release_server(server, config.keep_server_seconds)


def service_url(target: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the URL that a `call_target` connects to; None if unknown or proxied."""
    environ = os.environ if environ is None else environ
    scheme, argument = parse_target(target).innermost()
    url = scheme.address(argument, environ) if scheme.address is not None else ""
    if not url or requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url)):
        return None
    return url


def _ask(llm: LLM) -> None:
    target = parse_target(llm.call_target).innermost()
    if target.scheme.offline:
        return
    # keep the model's timeout, because a slow service is not an outage
    bounds = {
        "max_retry_times": min(llm.max_retry_times, _PROBE_TRIES),
        "max_retry_seconds": min(llm.max_retry_seconds, _PROBE_SECONDS),
    }
    probe = llm.updated({"call_target": str(target), **bounds})
    try:
        probe([{"role": "user", "content": "Reply with the word OK."}])
    except ContentFiltered:
        pass  # the service responded
    except ModelUnavailable as e:
        raise type(e)(f"after a failed call, a one-line test prompt failed too: {e}") from None


def _without_price(llm: LLM) -> str | None:
    """Return the name of a paid model without a known price, else None."""
    if llm.price:
        return None
    target = parse_target(llm.call_target).innermost()
    backend = open_target(str(target), Access(llm.api_key_env, llm.headers))
    name = backend.model_name(llm.call_kwargs)
    return None if backend.free or price_of(name) is not None else name


def _refuse_unpriced(unpriced: Mapping[str, str]) -> None:
    """Raise ConfigError if any model (by setting path) has no known price."""
    if unpriced:
        names = ", ".join(repr(n) for n in dict.fromkeys(unpriced.values()))
        settings = " and ".join(f"{where}.price=..." for where in unpriced)
        raise ConfigError(
            f"a money limit is set, but the price of {names} is unknown: set {settings}, each "
            "\"{'prompt': ..., 'completion': ...}\", in USD per million tokens"
        )


def _connect(url: str, target: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as e:
        reason = "no response" if isinstance(e, TimeoutError) else e.strerror or str(e)
        raise ModelUnavailable(
            f"the model at {parts.scheme}://{parts.hostname}:{port} cannot be reached: {reason}; "
            f"start its server, or correct call_target ({target.partition(':')[0]}:...)"
        ) from None


def _check_browser_server(config: WebEnvConfig, server: str) -> None:
    token = config.token.get_secret_value() or os.environ.get("CK_WEB_TOKEN", "")
    client = BrowserClient(server, token=token, timeout=_CONNECT_SECONDS)
    try:
        client.status()
    except RequestRefused as e:
        if e.status != 404:  # servers with the older protocol lack this route but respond
            raise
    finally:
        client.close()
