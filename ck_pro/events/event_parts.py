"""Values in the data of several kinds of journal events."""

# no `from __future__ import annotations`: TypedDict must see NotRequired when the class is made

from typing import Any

from typing_extensions import NotRequired, TypedDict


class FinalResults(TypedDict):
    """The answer of a session, and how it was found."""

    output: str
    log: str


class AskedQuestion(TypedDict):
    """A question to the user, and the id of the session that asked.

    Keys:
        action: the action that an approver stopped, for the user's approval; it has no question.
    """

    session: str
    question: str
    action: NotRequired[dict[str, Any]]


class GivenApproval(TypedDict):
    """The user's approval of one recorded action of a session."""

    session: str
    action: dict[str, Any]


class GivenAnswer(AskedQuestion):
    """A question with the user's answer."""

    answer: str


class UsageCounts(TypedDict, total=False):
    """Tokens of one model call."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    total_tokens: int
    estimated: bool


class ProgressState(TypedDict, total=False):
    """The plan of an agent. A planner may add keys.

    Keys:
        completed_list, todo_list: completed and open sub-tasks.
        experience, information: lessons and findings.
        question: question to the user.
    """

    completed_list: list[str]
    todo_list: list[str]
    experience: list[str]
    information: list[str]
    question: str


class BudgetUsage(TypedDict):
    """What a run has used, and its limits; None means no limit. `money` is in USD."""

    steps: int
    seconds: float
    llm_call: int
    tokens: int
    money: float
    unpriced_calls: int
    usage: dict[str, int]
    max_steps: int | None
    max_seconds: float | None
    max_tokens: int | None
    max_money: float | None


class FileFacts(TypedDict, total=False):
    """A file or link in the working directory.

    Keys:
        size: bytes.
        mtime: nanoseconds.
        blob: name of the stored content, if it was stored.
        executable: whether the owner may run the file.
        link: target of a link, which has no other keys.
    """

    size: int
    mtime: int
    blob: str
    executable: bool
    link: str
