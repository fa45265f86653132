"""`AgentSettings`: what can be configured of an agent, checked when it is made."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import Field

from ck_pro.approval import approver_of
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError
from ck_pro.language import AgentLanguage, CodeLanguage, language_named
from ck_pro.model import LLM
from ck_pro.session import PHASES
from ck_pro.session.goals import Goal
from ck_pro.template import TemplatedString, TemplateName, get_template, template_names
from ck_pro.tool import Tool, tool_from_function
from ck_pro.tools.workspace import workspace_tools

_Positive = Annotated[float, Field(gt=0)]


class ExecutorSettings(KwargsInitializable):
    """How an agent's code is run; see `ck_pro.executor.CodeExecutor`."""

    timeout: _Positive = 60.0
    """Seconds of the code's own time in one step; time inside tools and sub-agents is apart."""
    call_timeout: _Positive | None = None
    """Seconds that one call of a tool or sub-agent may take."""
    memory_mb: Annotated[int, Field(gt=0)] = 2048
    disk_mb: Annotated[int, Field(gt=0)] = 4096
    """Megabytes by which the code may let the working directory grow."""
    network: bool = False
    max_output: Annotated[int, Field(gt=0)] = 65_536
    """Bytes of output that are kept of one step."""
    stateful: bool = True
    require_isolation: str | None = None
    preload: list[str] = []
    """Modules (say "numpy") that are loaded once, for the code of all runs of this process."""
    readable: list[str] = []
    """Files and folders outside the working directory that the code can read."""


class Sampling(KwargsInitializable):
    """How often an agent that another one calls is run, and how one of the results is chosen."""

    tries: Annotated[int, Field(ge=1)] = 1
    """At most so many runs for each call."""
    choose: Literal["first", "vote", "judge"] = "first"
    """first: until a run ends with an answer. vote: all are made, and the answer is taken that
    most gave, of equally many the earlier. judge: a model chooses among different answers."""
    judge: LLM | None = None
    """That model; the calling agent's when None."""


class AgentSettings(KwargsInitializable):
    """The settings of a `MultiStepAgent`, and the functions and templates that follow from them.

    The object holds configuration only, so that one agent can serve many runs at once from many
    threads; everything of a run lives in its `AgentSession` and `Run`.
    """

    former_names = {
        "max_time_limit": "max_seconds?",
        "exec_timeout_wo_call": "executor.timeout",
        "exec_timeout_with_call": "executor.call_timeout?",
    }

    name: str = "agent"
    description: str = ""
    """What it is for, as an agent that may call it reads it."""
    model: LLM = LLM()
    end_model: LLM | None = None
    """Writes the final result, when `templates` has "end"; `model` when None."""
    templates: dict[str, Any] = {"action": "agent_action"}
    """Phase ("plan", "action", "end") -> name of a registered template, or a template; None: no
    such phase. `templates["action"].format(...)` gives the prompt."""
    sub_agents: list[Any] = []
    """Agents that the code may call: names of attributes of this object, or agents."""
    tools: list[Any] = []
    """Tools that the code may call: `Tool` objects, plain functions, or names: of attributes, or of
    the tools of `ck_pro.tools.workspace` ("run_command", ...)."""
    active_functions: list[str] | None = None
    """Names of the sub-agents and tools that exist for the model; all when None."""
    end_always: bool = True
    """Run the end phase, if there is one, after `stop` too; else only for want of an answer."""
    goals: list[Goal] = []
    """What the agent is for, beside its tasks; told in its prompts by priority."""
    max_steps: Annotated[int, Field(ge=1)] = 10
    max_seconds: _Positive | None = None
    """Wall time of one run of this agent, in seconds, within the limits of the whole task."""
    recent_steps: Annotated[int, Field(ge=0)] | None = None
    """How many steps the prompt shows; None lets the window grow and move in rare jumps."""
    history_chars: Annotated[int, Field(ge=1000)] = 120_000
    """Characters of history at which the window moves when `recent_steps` is None."""
    observation_chars: Annotated[int, Field(ge=100)] = 20_000
    """Characters of one observation that prompts show; the middle is cut out of longer ones."""
    plan_every: Annotated[int, Field(ge=1)] = 1
    """Plan at each n-th step only."""
    plan_when_stuck: bool = True
    """Plan also when steps repeat themselves, whatever `plan_every` says."""
    stuck_limit: Annotated[int, Field(ge=2)] = 6
    """So many equal steps in a row end the run."""
    store_io: bool = True
    """Keep the model's input and output in rows and journal."""
    snapshot_mb: Annotated[int, Field(ge=0)] = 64
    """Megabytes of files of the working directory that a run's journal keeps, so that a fork can
    restore them; 0 keeps none."""
    executor: ExecutorSettings = ExecutorSettings()
    sub_agent_stops: Literal["end", "message"] = "end"
    """What happens when a sub-agent stops for a person (a question without an answer, an action
    that the approver stopped). "end": the whole run stops, and resumes inside that sub-agent.
    "message": the code that called the sub-agent reads it as the sub-agent's result."""
    language: Any = CodeLanguage()
    """How it speaks with its model: an `AgentLanguage`, or the name of one (`LANGUAGES`)."""
    approver: Any = None
    """A `ck_pro.approval.Approver` for everything that the code calls, here and in sub-agents that
    have none of their own; None approves all. A dict gives the rules of a `RuleApprover`: `stop`,
    `reject`, `acknowledge`, each a list of regular expressions."""
    person: Any = None
    """A `ck_pro.tools.human.Person` who answers questions, here and in sub-agents."""
    sampling: Sampling = Sampling()
    """How often it is run when another agent calls it, and which of the results that one gets."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not self.name.isidentifier():
            raise ConfigError(f"agent name {self.name!r} is not a Python name")
        if isinstance(self.language, str):
            self.language = language_named(self.language)
        if not isinstance(self.language, AgentLanguage):
            raise ConfigError(f"{type(self).__name__}.language: not an AgentLanguage")
        self.approver = approver_of(self.approver)
        if self.person is not None and not callable(getattr(self.person, "answer", None)):
            raise ConfigError(f"{type(self).__name__}.person: not an object with `answer`")
        self.templates = {phase: _usable(named) for phase, named in self.templates.items()}
        self._function_tools: dict[Any, Tool] = {}

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON-able values, with the name of the language."""
        name = self.language.name
        return {**super().to_dict(), **({"language": name} if name else {})}

    def check(self) -> None:
        """Find out whether functions and templates fit together, here and in all sub-agents.

        Not done when the object is made, since a subclass may add functions after
        `super().__init__`; a run begins with it.

        Raises:
            ConfigError: two functions of one name, an active function or a template that does not
                exist, or an agent that is below itself.
        """
        self._check_templates()
        self._check_circles()
        functions = self._all_functions()
        known = [f.name for f in functions]
        twice = {n for n in known if known.count(n) > 1}
        if twice:
            raise ConfigError(f"{self.name}: two functions are named {sorted(twice)[0]!r}")
        for name in self.active_functions or ():
            if name not in known:
                raise ConfigError(
                    f"{self.name}.active_functions: no function {name!r}; "
                    f"known are: {', '.join(known)}"
                )
        for function in functions:
            if isinstance(function, AgentSettings):
                function.check()

    def _check_templates(self) -> None:
        known = template_names()
        if not self.templates.get("action"):
            raise ConfigError(f"{self.name}.templates: the phase 'action' needs a template")
        for phase, named in self.templates.items():
            meant = difflib.get_close_matches(phase, PHASES, n=1, cutoff=0.7)
            if meant and phase not in PHASES:  # a subclass may have other phases of its own
                raise ConfigError(
                    f"{self.name}.templates: no phase '{phase}'; did you mean '{meant[0]}'?"
                )
            if isinstance(named, str) and named and named not in known:
                near = difflib.get_close_matches(named, known, n=1, cutoff=0.5)
                hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"
                raise ConfigError(f"{self.name}.templates.{phase}: no template '{named}'; {hint}")
            if not (named is None or isinstance(named, str | TemplatedString)):
                raise ConfigError(f"{self.name}.templates.{phase}: {named!r} is no template")

    def _check_circles(self, above: tuple[AgentSettings, ...] = ()) -> None:
        below = (*above, self)
        if any(one is self for one in above):
            path = " > ".join(one.name for one in below)
            raise ConfigError(f"{self.name}: an agent cannot be below itself ({path})")
        for function in self._all_functions():
            if isinstance(function, AgentSettings):
                function._check_circles(below)

    def functions(self) -> list[Any]:
        """The active sub-agents and tools, in order."""
        active = self.active_functions
        return [f for f in self._all_functions() if active is None or f.name in active]

    def register_template(self, phase: str, template: Any) -> None:
        """Use a template, given by name, text or function, for a phase of this agent."""
        text = isinstance(template, str) and ("{" in template or "\n" in template)
        if text or not isinstance(template, str):
            template = TemplatedString(template, name=f"{self.name}_{phase}")
        self.templates[phase] = _usable(template)

    def get_template(self, phase: str) -> TemplatedString:
        """The template of a phase."""
        name = self.templates.get(phase)
        if not name:
            raise ConfigError(f"{self.name}: no template for the phase '{phase}'")
        return get_template(name)

    def _all_functions(self) -> list[Any]:
        return [self._function(f) for f in (*self.sub_agents, *self.tools)]

    def _function(self, named: Any) -> Any:
        """A sub-agent or tool from what the settings say: itself, its attribute, a function."""
        if isinstance(named, str):
            named = getattr(self, named) if hasattr(self, named) else self._workspace_tool(named)
        if isinstance(named, Tool | AgentSettings):
            return named
        if not callable(named):
            tool_from_function(named)  # says what it should be
        if named not in self._function_tools:  # making a tool is not cheap
            self._function_tools[named] = tool_from_function(named)
        return self._function_tools[named]

    def _workspace_tool(self, name: str) -> Tool:
        if name not in self._function_tools:
            tools = {tool.name: tool for tool in workspace_tools()}
            if name not in tools:
                raise ConfigError(
                    f"{self.name}: no attribute or tool {name!r}; "
                    f"the tools of the workspace are: {', '.join(tools)}"
                )
            self._function_tools[name] = tools[name]
        return self._function_tools[name]


def _usable(template: Any) -> Any:
    """A phase's template with a `format`; None, and what is no template, as it is."""
    if isinstance(template, str):
        return TemplateName(template)
    return TemplatedString(template) if callable(template) else template
