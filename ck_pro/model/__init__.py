"""Language models: `LLM`, its back ends, budgets, prices and recordings.

Import order: types, budget, prices, reasoning, shorten, retry, backends, recordings, llm.
May import: the rooms above `model` in `ck_pro`.
Others use the names below, and the back ends' and recordings' own modules.
"""

from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.budget import Budget, Price, price_of
from ck_pro.model.llm import LLM
from ck_pro.model.retry import Transient
from ck_pro.model.shorten import estimate_tokens
from ck_pro.model.types import CallContext, Message, RawReply, Reply, Usage

__all__ = [
    "LLM",
    "Backend",
    "Budget",
    "CallContext",
    "ChatRequest",
    "Message",
    "Price",
    "RawReply",
    "Reply",
    "Transient",
    "Usage",
    "estimate_tokens",
    "price_of",
]
