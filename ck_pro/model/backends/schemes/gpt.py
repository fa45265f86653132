"""`gpt:NAME`: OpenAI or Azure OpenAI, with the openai package."""

from __future__ import annotations

from collections.abc import Mapping

from ck_pro.model.backends.backend import Backend
from ck_pro.model.backends.targets import Access, Scheme


def _open(name: str, access: Access) -> Backend:
    from ck_pro.model.backends.openai_service import OpenAIBackend

    return OpenAIBackend(name, access.headers)


def _address(name: str, environ: Mapping[str, str]) -> str:
    return environ.get("OPENAI_BASE_URL", "")


SCHEME = Scheme(
    "gpt",
    "gpt:NAME",
    'OpenAI, or Azure OpenAI (`pip install "ck-pro[openai]"`)',
    _open,
    address=_address,
    provider="openai",
)
