"""`http://...` and `https://...`: any OpenAI-compatible server."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme
from ck_pro.model.backends.urls import completions_url


def _check(url: str) -> None:
    completions_url(url)


def _open(url: str, access: Access) -> Backend:
    from ck_pro.model.backends.http_endpoint import HttpBackend

    return HttpBackend(url, os.environ.get(access.api_key_env, ""), access.headers)


def _address(url: str, environ: Mapping[str, str]) -> str:
    return url


SCHEME = Scheme(
    "http",
    "http(s)://HOST",
    "any OpenAI-compatible server: vLLM, llama.cpp, Ollama, a gateway",
    _open,
    _check,
    aliases=("https",),
    is_url=True,
    address=_address,
)
