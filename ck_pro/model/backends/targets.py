"""From a `call_target` to the back end that it names."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.backend import Backend

KINDS = ("manual", "gpt:", "http://", "https://", "replay:", "record:")
_HELP = (
    "give 'manual', 'gpt:NAME', the http(s):// address of an OpenAI-compatible server, "
    "'replay:FILE' or 'record:FILE:TARGET'"
)


def check_target(target: str) -> None:
    """Look at the form of a `call_target`, without touching what it names.

    Raises:
        ConfigError: it has none of the known forms.
    """
    kind, rest = split_target(target)
    if kind == "record":
        path, _, inner = rest.partition(":")
        if not path or not inner:
            raise ConfigError(f"call_target '{target}': write it as record:FILE:TARGET")
        check_target(inner)
    elif kind == "http":
        from ck_pro.model.backends.http_endpoint import completions_url

        completions_url(rest)
    elif kind == "replay":
        split_replay(rest)
    elif kind != "manual" and not rest:
        raise ConfigError(f"call_target '{target}': nothing after '{kind}:'")


def split_target(target: str) -> tuple[str, str]:
    """The kind of a `call_target` ("manual", "gpt", "http", "replay", "record") and the rest."""
    text = target.strip()
    kind, colon, rest = text.partition(":")
    if text == "manual":
        return "manual", ""
    if kind.lower() in ("http", "https"):
        return "http", text
    if colon and kind in ("gpt", "replay", "record"):
        return kind, rest
    known = [k.rstrip(":/") for k in KINDS]
    near = difflib.get_close_matches(kind, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near and near[0] != kind else ""
    from ck_pro.model.retry import one_line

    raise ConfigError(f"call_target '{one_line(text, 60)}' is not known: {hint}{_HELP}")


def split_replay(rest: str) -> tuple[str, bool]:
    """The file of a replay target, and whether its instructions are to be checked.

    Raises:
        ConfigError: no file, or an option other than `?check=off`.
    """
    path, _, option = rest.partition("?")
    if not path or option not in ("", "check=off", "check=on"):
        raise ConfigError(f"call_target 'replay:{rest}': write it as replay:FILE[?check=off]")
    return path, option != "check=off"


def open_target(
    target: str, *, api_key_env: str = "CK_API_KEY", headers: Mapping[str, str] | None = None
) -> Backend:
    """The back end that a `call_target` names. Cheap: what is costly is shared by the process.

    Args:
        target: as `LLM.call_target`.
        api_key_env: the environment variable with the key for an http(s) target.
        headers: further headers for services.

    Raises:
        ConfigError: it has none of the known forms.
        ReplayError: a recording cannot be read.
    """
    kind, rest = split_target(target)
    if kind == "manual":
        from ck_pro.model.backends.manual import ManualBackend

        return ManualBackend()
    if kind == "gpt":
        from ck_pro.model.backends.openai_service import OpenAIBackend

        return OpenAIBackend(rest, headers)
    if kind == "http":
        from ck_pro.model.backends.http_endpoint import HttpBackend

        return HttpBackend(rest, os.environ.get(api_key_env, ""), headers)
    if kind == "replay":
        from ck_pro.model.recordings.replay import ReplayBackend

        path, check = split_replay(rest)
        return ReplayBackend(path, check=check)
    from ck_pro.model.recordings.record import RecordBackend

    path, _, inner = rest.partition(":")
    return RecordBackend(path, open_target(inner, api_key_env=api_key_env, headers=headers))
