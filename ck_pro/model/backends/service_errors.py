"""Convert error responses of model services to errors: may a retry help, and when?"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ck_pro.exceptions import ContentFiltered, ModelError, ModelRefused
from ck_pro.model.retry import Transient

_NOT_IMPLEMENTED = (501, 505)
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_FILTERED = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "bio_policy",
        "misalignment_policy_violation",
        "data_inspection_failed",
    }
)
_STATUS_OF_CODE = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", *_NO_QUOTA), 429),
    **dict.fromkeys(("invalid_request_error", "BadRequestError", "context_length_exceeded"), 400),
    **dict.fromkeys(("invalid_prompt", "invalid_value", "unsupported_value"), 400),
    **dict.fromkeys(("unsupported_parameter", "data_residency_mismatch"), 400),
    **dict.fromkeys(("invalid_image", "invalid_image_format", "invalid_base64_image"), 400),
    **dict.fromkeys(("invalid_image_url", "invalid_image_mode", "image_parse_error"), 400),
    **dict.fromkeys(("image_too_large", "image_too_small", "image_file_too_large"), 400),
    **dict.fromkeys(("unsupported_image_media_type", "empty_image_file"), 400),
    **dict.fromkeys(("invalid_api_key", "authentication_error", "AuthenticationError"), 401),
    "billing_error": 402,
    **dict.fromkeys(("permission_error", "PermissionDeniedError"), 403),
    **dict.fromkeys(("model_not_found", "not_found_error", "NotFoundError"), 404),
    "request_too_large": 413,
}
"""Error codes and types in responses with status 200 -> the status that they stand for. Other codes
count as transient. Source: the error references of OpenAI and Anthropic, and vLLM's errors."""
_HINTS = {
    400: "the service rejected the request: check `call_kwargs`; if the prompt is too long, set "
    "`max_prompt_tokens`",
    401: "check the API key",
    402: "the account has no credit",
    403: "the key has no access to this model",
    404: "no such model or URL: check `call_target` and call_kwargs['model']",
    413: "the prompt is too long: set `max_prompt_tokens`",
    422: "the service rejected the request: check `call_kwargs`",
    429: "the account's quota is used up",
}


def service_error(
    target: str,
    status: int,
    body: Any,
    headers: Mapping[str, str] | None = None,
    heading: str = "",
) -> ModelError:
    """Return the error for an unsuccessful HTTP status.

    Args:
        target: name of the service, for the message.
        status: HTTP status.
        body: response body, as JSON data or text.
        headers: response headers; `Retry-After` is read.
        heading: replaces the status in the message.
    """
    code, text = _error_text(body)
    line = f"{target}: {heading or f'HTTP {status}'}" + (f": {text}" if text else "")
    if code in _FILTERED:
        return ContentFiltered(f"{target}: the content filter stopped the prompt: {text}")
    transient = status in (408, 409, 425, 429) or (status >= 500 and status not in _NOT_IMPLEMENTED)
    if transient and code not in _NO_QUOTA:
        return Transient(line, retry_after_seconds(headers or {}))
    if 300 <= status < 400 and (headers or {}).get("location"):
        # show the URL without a login and without a query, which may be signed
        where = re.sub(r"//[^/@]*@", "//", re.split("[?#]", (headers or {}).get("location", ""))[0])
        return ModelRefused(f"{target}: redirects to '{where}'; use that URL if you trust it")
    hint = _HINTS.get(status)
    return ModelRefused(f"{line} ({hint})" if hint else line)


def error_in_body(target: str, data: Mapping[str, Any], headers: Mapping[str, str]) -> ModelError:
    """Return the error for an error object in a response with status 200, as gateways send it."""
    error = data["error"]
    error = error if isinstance(error, Mapping) else {}
    names = [str(error.get(key)) for key in ("code", "type")]
    known = (int(n) if re.fullmatch("[45][0-9][0-9]", n) else _STATUS_OF_CODE.get(n) for n in names)
    status = next(filter(None, known), 500)  # an unknown error of an upstream may be transient
    return service_error(target, status, data, headers, heading="returned an error")


def is_prompt_filtered(body: str) -> bool:
    """Return whether an error body reports that the content filter stopped the prompt."""
    try:
        return _error_text(json.loads(body))[0] in _FILTERED
    except (ValueError, RecursionError):
        return False


def _error_text(body: Any) -> tuple[str, str]:
    """Return code and message of an error body: OpenAI's form, FastAPI's `detail`, or any text."""
    if isinstance(body, dict):
        error = body.get("error") or body.get("detail") or body.get("message") or body
        if isinstance(error, dict):
            inner = error.get("code") or error.get("type") or ""
            return str(inner), one_line(str(error.get("message") or error))
        return "", one_line(str(error))
    return "", one_line(str(body or ""))


def one_line(text: str, most: int = 300) -> str:
    """Return a foreign text as one printable line of at most `most` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."


def retry_after_seconds(
    headers: Mapping[str, str], now: Callable[[], float] = time.time
) -> float | None:
    """Return the seconds that a response asks to wait; None if it has no readable value.

    Reads `retry-after-ms` (OpenAI, Azure) and `Retry-After` as seconds or HTTP date (RFC 9110,
    10.2.3). A date in the past gives 0.
    """
    lower = {k.lower(): v for k, v in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(lower.get(name, ""))
        if seconds is not None:
            return max(0.0, seconds / scale)
    try:
        when: datetime = email.utils.parsedate_to_datetime(lower.get("retry-after", ""))
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return max(0.0, when.timestamp() - now())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e9 else None  # also rejects nan and inf
