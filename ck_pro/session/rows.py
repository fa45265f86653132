"""The schema of sessions and steps in output rows, and their counts of model calls.

`ck_main.output.row_schema` has whole rows. Rows of other programs, and of other versions, may lack
keys or have more.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from typing_extensions import NotRequired, TypedDict

from ck_pro.events.event_parts import FinalResults, ProgressState
from ck_pro.events.journal_events import ActedData, ParsedReply, ScreenData

Phase = Literal["plan", "action", "end"]
PHASES: tuple[Phase, ...] = get_args(Phase)
MAIN = "__main__"
"""Key of an agent's own calls."""
ALL = "__ALL__"
"""Key of the sum over an agent and all below it."""
COUNTERS = ("llm_call", "completion_tokens", "prompt_tokens", "total_tokens")


class CallCounts(TypedDict):
    """Model calls and tokens."""

    llm_call: int
    completion_tokens: int
    prompt_tokens: int
    total_tokens: int


def no_calls() -> CallCounts:
    """Return counts of zero."""
    return CallCounts(llm_call=0, completion_tokens=0, prompt_tokens=0, total_tokens=0)


class CallPart(TypedDict, total=False):
    """One model call, as part of a step.

    Keys:
        llm_input: chat messages.
        llm_output: text of the reply.
        llm_info: model, parameters, usage and further facts.
    """

    llm_input: Sequence[dict[str, Any]]
    llm_output: str
    llm_info: dict[str, Any]


class ToolModelCall(CallPart, total=False):
    """A model call by a tool; `phase` is "tool:NAME". Or an unusable reply of the end phase."""

    phase: str
    unreadable: str


class PhasePart(ParsedReply, CallPart, total=False):
    """What every phase of a step may have; `unreadable` is the error of its reply."""

    unreadable: str


class Plan(PhasePart, total=False):
    """The plan phase of a step; `state` is the progress state."""

    state: ProgressState


class Action(PhasePart, total=False):
    """The action phase of a step.

    Keys:
        observation: see `ck_pro.session.observed`.
        error: type of the error, if the action failed.
        screens: the screens after computer actions.
        model_calls: calls by tools.
        sub_sessions: sessions of sub-agents, in rows only.
        acted: typed actions with their observations; see `ck_pro.session.acted`.
    """

    observation: Any
    error: str
    screens: list[ScreenData]
    acted: list[ActedData]
    model_calls: list[ToolModelCall]
    sub_sessions: list["SessionRow"]
    web_state_before: dict[str, Any]
    file_state_before: dict[str, Any]


class End(PhasePart, total=False):
    """The end phase, in the last step; `model_calls` has its call with an unusable reply."""

    final_results: FinalResults
    model_calls: list[ToolModelCall]


class Step(TypedDict):
    """One step of a session."""

    step_idx: int
    plan: NotRequired[Plan]
    action: Action
    end: NotRequired[End]


class UserTurn(TypedDict):
    """A message of the user after the task; `step` is the index of the first step after it."""

    step: int
    text: str


class SessionRow(TypedDict):
    """The session of a row.

    `info` has `call_stat`, times, status, `turns` and `memory` if there are any, and facts given by
    the caller.
    """

    id: str
    info: dict[str, Any]
    task: str
    steps: Sequence[Step]


def build_call_stat(
    calls: Mapping[str, CallCounts], children: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the call statistics of a session.

    Args:
        calls: counts of the session's own calls: under `MAIN`, or under the name of a tool.
        children: name and statistics of each sub-agent's session.
    """
    stat: dict[str, Any] = {MAIN: dict(calls.get(MAIN, no_calls()))}
    for name, counts in calls.items():
        if name != MAIN:
            stat[name] = {MAIN: dict(counts), ALL: dict(counts)}
    for name, child in children:
        stat[name] = _add(stat[name], child) if name in stat else child
    parts = [stat[MAIN], *(value[ALL] for key, value in stat.items() if key != MAIN)]
    stat[ALL] = {counter: sum(part[counter] for part in parts) for counter in COUNTERS}
    return stat


def _add(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Add the call statistics of two sessions of one agent."""
    added: dict[str, Any] = {}
    for key in dict.fromkeys((*a, *b)):
        x, y = a.get(key), b.get(key)
        if x is None or y is None:
            added[key] = x if y is None else y
        elif key in COUNTERS:
            added[key] = x + y
        else:
            added[key] = _add(x, y)
    return added
