"""Language models: `LLM` and what its calls are made of."""

from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.budget import Budget
from ck_pro.model.llm import LLM
from ck_pro.model.prices import Price, price_of
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
