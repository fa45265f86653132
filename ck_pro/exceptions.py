"""The error tree of ck-pro: the meaning of each error, and what raises it.

```
CKError                       base of all errors that ck-pro raises on purpose
  ConfigError                 a configuration is unusable (also a ValueError)
  TemplateError               a prompt template is malformed, or lacks a value
  InputError                  a file or value from the user is unusable (also a ValueError)
    OutputError               an output file cannot be written
    TaskFileError             a task file, or one of its lines, is unusable
  ParseError                  a model's reply lacks the expected form; the model sees the message
  ToolError                   a tool failed; the model sees the message
  ModelError                  a model call failed after all retries
    ModelUnavailable          all retries failed, or the address refuses connections
      ModelTimeout            the service sent no complete reply within `request_timeout`
    ModelRefused              the service refused: key, quota, unknown model, bad request
    ContentFiltered           the content filter stopped the call; the model sees the message
    ManualAbort               the user who plays the model aborted (also a RunEnding)
    ReplayError               a recording does not match the run (also a RunEnding)
  EnvironmentFailure          an environment failed (a failed action is an observation instead)
    BrowserServerError        the browser server is unreachable, full, or failed
      LeaseExpired            the lease of a browser expired during a run
  ExecutorError               the executor failed (errors of the executed code are results)
    IsolationError            the required isolation is unavailable on this machine
  RunEnding                   ends the run; code that the model wrote cannot catch it
    LimitReached              a limit of the run is reached; carries the `StopReason`'s value
    Cancelled                 the run was cancelled (Ctrl-C, shutdown) and can be resumed
    AwaitingHuman             stops the whole tree of agents until the user decides or answers
      GuardStopped            an approver stopped an action for the user's decision
        SafetyCheckRefused    a safety check was not acknowledged (also a ValueError)
      HumanNeeded             the user must help (login, captcha), but gave no answer
      AnswerNeeded            the planner needs an answer to understand the task
    PageRefused               the settings forbid the first page of a run
    JournalError              the journal cannot be written or read
```

The message of each error is one line: what is wrong, where, and what to do. Entry points print that
line and exit; a traceback for the user is a bug.
"""

from __future__ import annotations

from typing import Any


class CKError(Exception):
    """Base of all errors that ck-pro raises on purpose. `str(error)` is one line for the user."""


class ConfigError(CKError, ValueError):
    """A configuration value, name or file is unusable. Raised while objects are built."""


class TemplateError(CKError):
    """A prompt template is malformed, or lacks a value for one of its names."""


class InputError(CKError, ValueError):
    """A file or value from the user is unusable."""


class OutputError(InputError):
    """An output file cannot be written. The message says where and what to do."""


class TaskFileError(InputError):
    """A task file, or one line of it, is unusable. The message has file, line and field."""


class ParseError(CKError):
    """A model's reply lacks the expected form. The model sees the message as an observation."""


class CopiedExample(ParseError):
    """A model's reply copies the made-up example of its prompt, instead of a step of the task."""


class ToolError(CKError):
    """A tool failed. The model sees the message as an observation."""


class ModelError(CKError):
    """A model call failed after all retries; the run ends with status `problem`."""


class ModelUnavailable(ModelError):
    """The model is unreachable, or all retries failed."""


class ModelTimeout(ModelUnavailable):
    """The model's service sent no complete reply within `request_timeout`."""


class ModelRefused(ModelError):
    """The service refused the call: wrong key, no quota, unknown model, malformed request."""


class ContentFiltered(ModelError):
    """The service's content filter stopped the call. The model sees it as an observation."""


class EnvironmentFailure(CKError):
    """An environment failed. (If only an action fails, that is an observation.)"""


class BrowserServerError(EnvironmentFailure):
    """The browser server is unreachable, has no free browser, or failed."""


class LeaseExpired(BrowserServerError):
    """The lease of a browser expired during a run; a resumed run gets a new browser."""


class ExecutorError(CKError):
    """The executor failed. Errors of the executed code are results instead."""


class IsolationError(ExecutorError):
    """The required isolation is unavailable on this machine."""


class RunEnding(CKError):
    """Ends the run from any place; code that the model wrote cannot catch it."""


class JournalError(RunEnding):
    """The journal cannot be written or read."""


class AwaitingHuman(RunEnding):
    """Stops the run, and the runs that called it, until the user decides or answers.

    Args:
        message: one line: the decision or answer that the user must give.
        question: the exact question; "" if only a decision is needed.

    Attributes:
        session: id of the session that stopped; "" until its run has ended.
        path: names of that session's agent and of its callers, as `main/helper`; "" for a run
            without a caller. `str(error)` begins with it.
    """

    def __init__(self, message: str, question: str = ""):
        super().__init__(message)
        self.question = question
        self.session = self.path = ""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.path}: {message}" if self.path else message


class GuardStopped(AwaitingHuman):
    """An approver stopped an action; the run ends with status `sensitive-action`.

    Args:
        message: one line: the action, and why it stopped.
        action: the action as JSON data, as the approver saw it; the user can approve it.
    """

    def __init__(self, message: str, action: dict[str, Any] | None = None):
        super().__init__(message)
        self.action = action or {}


class SafetyCheckRefused(GuardStopped, ValueError):
    """A safety check of a computer action was not acknowledged, for `ComputerAgent.run_full_turn`.

    (OpenAI's sample agent raises a ValueError.)
    """


class HumanNeeded(AwaitingHuman):
    """The user must help and gave no answer; the run ends with `human-intervention`."""


class AnswerNeeded(AwaitingHuman):
    """The task is unclear without an answer; the run ends with `ambiguity`."""


class ManualAbort(ModelError, RunEnding):
    """The user who plays the model (`call_target: manual`) aborted, or the input ended."""


class ReplayError(ModelError, RunEnding):
    """A recording does not match the run: a missing reply, a changed prompt, a lost element."""


class LimitReached(RunEnding):
    """A limit of the run is reached.

    Args:
        reason: the value of the `StopReason`: "steps", "time", "tokens" or "money".
        message: one line: which limit, its value, what was used.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


class PageRefused(RunEnding):
    """The settings forbid the first page of a run; the message names the setting."""


class Cancelled(RunEnding):
    """Ctrl-C or shutdown cancelled the run. Finished steps are kept; the run can be resumed."""


def ends_run(error: BaseException) -> bool:
    """Whether an error of a tool ends the run of the agent that called the tool.

    The model sees every other error: in code actions as an exception that the code can catch, in
    function calling as text.
    """
    return isinstance(error, RunEnding | EnvironmentFailure | KeyboardInterrupt)


def error_text(error: BaseException) -> str:
    """Return an error as `Type: message`; only the type if the error's `__str__` fails."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - third-party code may raise anything
        return name
