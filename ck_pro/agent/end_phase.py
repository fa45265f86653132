"""The end phase: ask for the final result, which the reply's code may compute."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.events.event_parts import FinalResults
from ck_pro.events.journal_events import ParsedReply
from ck_pro.exceptions import ContentFiltered, ModelRefused, ParseError, ToolError
from ck_pro.language import END_FORM, AgentLanguage, CodeLanguage, parse_literal
from ck_pro.model import Reply
from ck_pro.run.exposed_functions import finish_data
from ck_pro.run.results import final_result
from ck_pro.run.run import Run

_log = logging.getLogger(__name__)
_CHARS_PER_TOKEN = 3  # an estimate on the safe side
_HISTORY_SHARE = 0.6  # of the model's prompt; the rest is for instructions and the page
_ERROR_CHARS = 2000
_NO_RESULT = (
    "the code ran, but it did not call {}, and its last line is not a dict with 'output' and 'log'"
)


def end_values(run: Run) -> dict[str, Any]:
    """Return the template values that only the end phase has."""
    unanswered = run.session.finish is None
    names = run.run_code.describe_names() if unanswered else []
    return {"unanswered": unanswered, "variables": names}


def ask_for_result(
    run: Run,
    prepare: Callable[[], Mapping[str, Any]],
    ask: Callable[[Mapping[str, Any]], Reply],
    parse_output: Callable[[str], ParsedReply],
) -> tuple[FinalResults | None, ParsedReply]:
    """Run the end phase; without an answer so far, ask again once after an unusable reply.

    The prompt shows all steps if the model's prompt has room. If the model then refuses it, it
    shows the usual ones.

    Args:
        run: the run of the agent.
        prepare: returns the template values of the prompt.
        ask: calls the model with them.
        parse_output: the agent's `_parse_output`.

    Returns:
        The result, or None without a usable reply; and the parsed parts of the last reply.
    """
    model = run.agent.end_model or run.agent.model
    tokens = model.max_prompt_tokens
    limit = None if tokens is None else int(tokens * _CHARS_PER_TOKEN * _HISTORY_SHARE)
    shows_more = run.history.show_all(limit)
    try:
        return _ask_twice(run, prepare(), ask, parse_output)
    except ModelRefused as e:
        if not shows_more:
            raise
        _log.warning("%s: the end phase is asked with fewer steps: %s", run.agent.name, e)
    run.history.condense()
    return _ask_twice(run, prepare(), ask, parse_output)


def _ask_twice(
    run: Run,
    values: Mapping[str, Any],
    ask: Callable[[Mapping[str, Any]], Reply],
    parse_output: Callable[[str], ParsedReply],
) -> tuple[FinalResults | None, ParsedReply]:
    parsed: ParsedReply = {}
    for attempt in (1, 2) if run.session.finish is None else (1,):  # else there is an answer
        try:
            reply = ask(values)
            parsed = parse_output(reply)
            return _read_result(run, reply, parsed.get("code", "")), parsed
        except ContentFiltered as e:
            _log.warning("%s: the reply of the end phase is not used: %s", run.agent.name, e)
            return None, parsed
        except ParseError as e:
            _log.warning("%s: reply %d of the end phase: %s", run.agent.name, attempt, e)
            run.record_unreadable("end", e)
            history = [*values["history"], *_failed(reply, e)]
            values = {**values, "history": history, **end_values(run)}
    return None, parsed


def _failed(reply: Reply, error: ParseError) -> list[dict[str, Any]]:
    """Return an unusable reply and its error as chat messages."""
    said = f"{str(error)[:_ERROR_CHARS]}\nReply again, with a result."
    return [
        {"role": "assistant", "content": str(reply) or "(an empty reply)"},
        {"role": "user", "content": f"Your reply has no usable result: {said}"},
    ]


def _read_result(run: Run, reply: Reply, code: str) -> FinalResults:
    """Return the result that a reply contains or computes.

    Raises:
        ParseError: it does neither.
    """
    language: AgentLanguage = run.agent.language
    try:
        return final_result(language.read_form(reply, END_FORM))
    except ParseError:
        if not isinstance(language, CodeLanguage) or not code.strip():
            raise
    return _computed_result(run, code)


def _computed_result(run: Run, code: str) -> FinalResults:
    """Run code in the worker with the run's variables; of the functions, only `stop` is open.

    Nothing is recorded as a call, because the limits of the run allow no further step.

    Raises:
        ParseError: the code raised an error, or did not return a result.
    """
    stopped: list[Any] = []
    registry, known = run.functions.registry, run.functions.by_name
    functions = {name: _closed(name, function) for name, function in known.items()}
    for tool in registry:
        if tool.name in registry.terminal:
            functions[tool.name] = _recording(tool, tool.bind(run), stopped)
    ran = run.run_code.run_unrecorded(code, functions)
    if ran.ended_by is not None and stopped:
        return final_result(finish_data(stopped[-1]))
    if ran.error is not None:
        raise ParseError(f"the code raised {ran.error}")
    for text in (ran.value, ran.output):
        try:
            return final_result(parse_literal(text or ""))
        except ParseError:
            continue
    raise ParseError(_NO_RESULT.format(" or ".join(registry.terminal) or "a function"))


def _recording(tool: Any, function: Callable[..., Any], stopped: list[Any]) -> Callable[..., Any]:
    """Return a terminal function that also appends its result to `stopped`."""

    @functools.wraps(function)
    def stop(*args: Any, **kwargs: Any) -> Any:
        stopped.append(function(*args, **kwargs))
        return stopped[-1]

    vars(stop)["synonyms"] = getattr(tool, "synonyms", {})
    return stop


def _closed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that reports that it cannot be called any more."""

    @functools.wraps(function)
    def closed(*args: Any, **kwargs: Any) -> Any:
        raise ToolError(f"{name} is not available: the run has ended; use what is in variables")

    return closed
