"""The error tree of ck-pro: what each error means and who raises it.

```
CKError                       base of everything that we raise on purpose
  ConfigError                 a configuration cannot be used (also a ValueError)
  TemplateError               a prompt template is malformed, or lacks a value
  InputError                  a file or value from the user is not usable
    TaskFileError             a task file, or one of its lines
  ParseError                  a model's reply has not the agreed form; the model gets to see it
  ToolError                   a tool could not do what it was asked; the model gets to see it
  ModelError                  a model call failed for good
    ModelUnavailable          all retries used up, or nothing listens at the address
    ModelRefused              the service said no: key, quota, unknown model, bad request
    ContentFiltered           the content filter stopped the call; the model gets to see it
    ManualAbort               the person who plays the model gave up (also a RunEnding)
    ReplayError               a recording does not fit the run (also a RunEnding)
  EnvironmentFailure          the world an agent acts in broke (not: an action failed)
    BrowserServerError        the browser server is unreachable, full, or broken
      LeaseExpired            the lease of a browser ended during a run
  ExecutorError               the executor itself could not work (never: what the code did)
    IsolationError            the isolation that was required cannot be had here
  RunEnding                   ends the run wherever it is raised, also inside a function that the
                              model's code called (the code cannot catch it)
    LimitReached              a budget of the run is used up; carries the `StopReason`'s value
    Cancelled                 the run was told to stop (Ctrl-C, shutdown); it can be resumed
    AwaitingHuman             stops the whole tree of agents until a person has decided or answered
      GuardStopped            an approver stopped an action for a person to decide
      HumanNeeded             a person must help (captcha, login) and nobody answered
      AnswerNeeded            the planner needs an answer to understand the task
    PageRefused               the first page of a run may not be opened; a setting allows it
    JournalError              the journal cannot be written or read
```

Every error has a one-line message that says what was wrong, where, and what to do. Entry points
print that line and exit; a traceback that reaches a person is a bug.
"""

from __future__ import annotations


class CKError(Exception):
    """Base of all errors raised on purpose by ck-pro. `str(error)` is one line for a person."""


class ConfigError(CKError, ValueError):
    """A configuration value, name or file cannot be used. Raised while objects are built."""


class TemplateError(CKError):
    """A prompt template is malformed, or a name that it uses was not given."""


class InputError(CKError, ValueError):
    """A file or a value that the user gave is not usable."""


class OutputError(InputError):
    """What the user wants cannot be written there. The message says where and what to do."""


class TaskFileError(InputError):
    """A task file, or one line of it, is not usable. The message has file, line and field."""


class ParseError(CKError):
    """A model's reply has not the agreed form. Shown to the model as an observation."""


class ToolError(CKError):
    """A tool could not do what it was asked to. Shown to the model as an observation."""


class ModelError(CKError):
    """A model call failed for good; the run ends with status `problem`."""


class ModelUnavailable(ModelError):
    """The model could not be reached, or all retries were used up."""


class ModelTimeout(ModelUnavailable):
    """The model gave no whole reply within `request_timeout`, though its service was reached."""


class ModelRefused(ModelError):
    """The service refused: wrong key, no quota, unknown model, malformed request. Not retried."""


class ContentFiltered(ModelError):
    """The service's content filter stopped the call. The loop turns it into an observation."""


class EnvironmentFailure(CKError):
    """The world that an agent acts in broke. An action that merely failed is an observation."""


class BrowserServerError(EnvironmentFailure):
    """The browser server cannot be reached, has no free browser, or failed by its own fault."""


class LeaseExpired(BrowserServerError):
    """The lease of a browser ended during a run; a resumed run gets a new browser."""


class ExecutorError(CKError):
    """The executor itself could not work. What the model's code did never raises this."""


class IsolationError(ExecutorError):
    """The isolation that was required cannot be had on this machine."""


class RunEnding(CKError):
    """Ends the run from wherever it is raised; no code of the model's can catch it."""


class JournalError(RunEnding):
    """The journal cannot be written or read."""


class AwaitingHuman(RunEnding):
    """Stops the run, and the runs that called it, until a person has decided or answered.

    Args:
        message: one line: what the person is to decide or to answer.
        question: the question, word for word; "" if only a decision is needed.

    Attributes:
        session: id of the session that stopped; "" until its run has ended.
        path: names of that session's agent and of its callers, as `main/helper`; "" for a run
            that no other agent called. `str(error)` begins with it.
    """

    def __init__(self, message: str, question: str = ""):
        super().__init__(message)
        self.question = question
        self.session = self.path = ""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.path}: {message}" if self.path else message


class GuardStopped(AwaitingHuman):
    """An approver said stop; the run ends with status `sensitive-action`."""


class HumanNeeded(AwaitingHuman):
    """A person must help and nobody answered; the run ends with `human-intervention`."""


class AnswerNeeded(AwaitingHuman):
    """The task cannot be understood without an answer; the run ends with `ambiguity`."""


class ManualAbort(ModelError, RunEnding):
    """The person who plays the model (`call_target: manual`) aborted or reached end of input."""


class ReplayError(ModelError, RunEnding):
    """A recording does not fit the run: a missing reply, a changed prompt, a lost element."""


class LimitReached(RunEnding):
    """A limit of the run is used up.

    Args:
        reason: the value of the `StopReason`: "steps", "time", "tokens" or "money".
        message: one line: which limit, its value, what was used.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


class PageRefused(RunEnding):
    """The first page of a run may not be opened; the message says which setting allows it."""


class Cancelled(RunEnding):
    """The run was told to stop by Ctrl-C or shutdown. What was done is kept; it can be resumed."""


def ends_run(error: BaseException) -> bool:
    """Whether an error that a tool raised ends the run of the agent that called the tool.

    The model reads every other error as an observation: as a text in function calling, as an
    exception that its code can catch in code actions.
    """
    return isinstance(error, RunEnding | EnvironmentFailure | KeyboardInterrupt)


def error_text(error: BaseException) -> str:
    """An error as `Type: message`, also where its own `__str__` fails."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - code from elsewhere may raise anything
        return name
