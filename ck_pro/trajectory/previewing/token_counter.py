"""Count tokens by an estimate, or with `tokenizers`, `transformers` or `tiktoken`."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.model import estimate_tokens
from ck_pro.trajectory.previewing.segments import Segment

ESTIMATE = "estimate"
_TIKTOKEN = "tiktoken:"


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of texts and of rows.

    Args:
        name: of the tokenizer, or "estimate".
        count: returns the tokens of a text, without special tokens.
        template: returns the tokens of messages and tools in the tokenizer's chat template; None
            without one.
    """

    name: str
    count: Callable[[str], int]
    template: Callable[[Sequence[Mapping[str, Any]], Any], int] | None = None

    def length(self, segments: Sequence[Segment], tools: Any = None) -> int:
        """Return the tokens of a sequence of turns, as a trainer counts its length.

        Args:
            segments: the turns.
            tools: function schemas of the prompt.

        Raises:
            InputError: the chat template refuses the turns.
        """
        if self.template is None:
            return sum(self.count(one.text) for one in segments)
        return self.template([{"role": s.role, "content": s.text} for s in segments], tools)


def token_counter(name: str = ESTIMATE) -> TokenCounter:
    """Load a tokenizer.

    Args:
        name: "estimate"; "tiktoken:ENCODING" or "tiktoken:MODEL"; a `tokenizer.json`; or a folder
            or a name that `transformers` (else `tokenizers`) loads.

    Raises:
        InputError: it cannot be loaded, or its package is not installed.
    """
    if name == ESTIMATE:
        return TokenCounter(name, estimate_tokens)
    if name.startswith(_TIKTOKEN):
        return _of_tiktoken(name)
    path = Path(name)
    try:
        if path.is_file():
            return _of_tokenizers(name, _package("tokenizers").Tokenizer.from_file(name))
        if _installed("transformers"):
            return _of_transformers(name)
        return _of_tokenizers(name, _package("tokenizers").Tokenizer.from_pretrained(name))
    except InputError:
        raise
    except Exception as e:  # noqa: BLE001 - these libraries raise errors of any type
        lines = str(e).strip().splitlines() or [type(e).__name__]
        raise InputError(f"cannot load the tokenizer {name}: {lines[0][:300]}") from None


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"--tokenizer needs {name}: pip install {name}") from None


def _of_tiktoken(name: str) -> TokenCounter:
    tiktoken = _package("tiktoken")
    wanted = name.removeprefix(_TIKTOKEN)
    try:
        if wanted in tiktoken.list_encoding_names():
            encoding = tiktoken.get_encoding(wanted)
        else:
            encoding = tiktoken.encoding_for_model(wanted)
    except (KeyError, ValueError, OSError) as e:
        known = ", ".join(tiktoken.list_encoding_names())
        text = str(e).strip().splitlines()[0][:200]
        raise InputError(f"cannot load {name}: {text} (encodings: {known})") from None
    return TokenCounter(name, lambda text: len(encoding.encode(text, disallowed_special=())))


def _of_tokenizers(name: str, tokenizer: Any) -> TokenCounter:
    return TokenCounter(
        name, lambda text: len(tokenizer.encode(_clean(text), add_special_tokens=False).ids)
    )


def _of_transformers(name: str) -> TokenCounter:
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    tokenizer = _package("transformers").AutoTokenizer.from_pretrained(name)

    def count(text: str) -> int:
        return len(tokenizer.encode(_clean(text), add_special_tokens=False))

    def template(messages: Sequence[Mapping[str, Any]], tools: Any) -> int:
        clean = [{**m, "content": _clean(m["content"])} for m in messages]
        try:
            text = tokenizer.apply_chat_template(clean, tools=tools or None, tokenize=False)
        except Exception as e:  # noqa: BLE001 - a template may raise any error
            reason = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
            raise InputError(f"the chat template refuses the row: {reason}") from None
        return len(tokenizer.encode(text, add_special_tokens=False))

    has_template = bool(getattr(tokenizer, "chat_template", None))
    return TokenCounter(name, count, template if has_template else None)


def tools_of(row: Mapping[str, Any]) -> Any:
    """Return the function schemas of a row; None if it has none."""
    tools = row.get("tools")
    return json.loads(tools) if isinstance(tools, str) and tools else None


def _clean(text: str) -> str:
    """Replace halves of surrogate pairs, which tokenizers refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
