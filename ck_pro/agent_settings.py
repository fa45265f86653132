"""`AgentSettings`: the configuration of an agent, with its functions and templates."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import keyword
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ck_pro.approval import approver_of, setting_of
from ck_pro.config import KwargsInitializable
from ck_pro.environment import Environment
from ck_pro.exceptions import ConfigError
from ck_pro.executor.isolation import required_layers
from ck_pro.executor.visible_paths import check_readable
from ck_pro.language import PLAN_FORM, AgentLanguage, CodeLanguage, Form, language_named
from ck_pro.model import LLM
from ck_pro.session import PHASES
from ck_pro.session.goals import Goal
from ck_pro.session.journal_search import search_journals
from ck_pro.template import TemplatedString, TemplateName, get_template, template_names
from ck_pro.tool import Tool, ToolRegistry, tool_from_function
from ck_pro.tools.files import file_tools
from ck_pro.tools.session_tools import session_tools
from ck_pro.tools.workspace import workspace_tools

_Positive = Annotated[float, Field(gt=0)]
_Goal = Annotated[
    Goal, BeforeValidator(lambda value: Goal(value) if isinstance(value, str) else value)
]
_Functions = Annotated[
    list[Any],
    BeforeValidator(lambda value: [value] if isinstance(value, ToolRegistry) else value),
]

Planning = Annotated[
    Literal["fused", "separate", "off"],
    BeforeValidator(lambda value: "off" if value is False else value),  # YAML reads `off` as false
]


class ExecutorSettings(KwargsInitializable):
    """Limits of the worker that runs an agent's code; see `ck_pro.executor.CodeExecutor`."""

    timeout: _Positive = 60.0
    """Seconds per step for the code itself; time in tools and sub-agents does not count."""
    call_timeout: _Positive | None = None
    """Seconds for one call of a tool or sub-agent."""
    memory_mb: Annotated[int, Field(gt=0)] = 2048
    """Memory limit of the worker, in megabytes."""
    disk_mb: Annotated[int, Field(gt=0)] = 4096
    """Megabytes by which the working directory may grow."""
    network: bool = False
    """Whether the code has network access."""
    max_output: Annotated[int, Field(gt=0)] = 65_536
    """Bytes of output to keep per step."""
    stateful: bool = True
    """Whether variables persist between steps."""
    require_isolation: str | None = None
    """Isolation layers that must work, or the run fails; see docs/security.md."""
    preload: list[str] = []
    """Modules to import once for all runs of this process, such as "numpy"."""
    readable: list[str] = []
    """Files and folders outside the working directory that the code can read."""

    def check(self) -> None:
        """Check the names and paths without a worker; raise ConfigError if one is unknown."""
        check_readable(self.readable)
        if self.require_isolation is not None:
            required_layers(self.require_isolation, network=self.network)


class Sampling(KwargsInitializable):
    """How many times to run a sub-agent per call, and how to choose one of the results."""

    tries: Annotated[int, Field(ge=1)] = 1
    """Maximum number of runs per call."""
    choose: Literal["first", "vote", "judge"] = "first"
    """"first": stop at the first answer. "vote": make all tries and take the most frequent answer,
    on a tie the earliest. "judge": make all tries; a model chooses among different answers."""
    judge: LLM | None = None
    """The model that chooses; the calling agent's model when None."""


_KNOWN_PACKAGES = (
    *("numpy", "pandas", "scipy", "sympy", "sklearn", "matplotlib", "networkx", "PIL", "lxml"),
    *("bs4", "openpyxl", "docx", "pptx", "pypdfium2", "yaml", "dateutil"),
)
"""Packages that are worth a word in prompts, by the names of their modules."""


class AgentSettings(KwargsInitializable):
    """The settings of a `MultiStepAgent`, and the functions and templates that they name."""

    former_names = {
        "max_time_limit": "max_seconds?",
        "exec_timeout_wo_call": "executor.timeout",
        "exec_timeout_with_call": "executor.call_timeout?",
    }

    name: str = "agent"
    description: str = ""
    """What the agent is for; shown to the agents that may call it."""
    model: LLM = LLM()
    plan_model: LLM | None = None
    """The model for calls that ask for a plan; `model` when None."""
    end_model: LLM | None = None
    """The model for the end phase; `model` when None."""
    model_multimodal: LLM | None = None
    """The model for prompts with a picture, and for questions of `look`, also in sub-agents;
    `model` when None."""
    templates: dict[str, Any] = {"action": "agent_action"}
    """Phase ("plan", "action", "end") -> template, or name of a registered one; None turns the
    phase off. `templates["action"].format(...)` returns the prompt."""
    sub_agents: list[Any] = []
    """Agents that the code may call: agents, or names of attributes of this object."""
    tools: _Functions = []
    """Tools that the code may call: `Tool` objects, plain functions, a `ToolRegistry`, names of
    attributes of this object, or names of the tools of `ck_pro.tools.workspace`
    ("run_command", ...)."""
    file_functions: _Functions = []
    """More tools and sub-agents for the code. Prompts name them only where the task has files."""
    active_functions: list[str] | None = None
    """Names of the sub-agents and tools that the model can use; all when None."""
    end_always: bool = True
    """Run the end phase also after `stop`; otherwise only if an answer is missing."""
    goals: list[_Goal] = []
    """Goals besides the task, each a `Goal`, its fields or a text; prompts list them by
    priority."""
    imports: list[str] | None = None
    """Packages that prompts name as importable; None: those of a short list that are installed."""
    memory_journals: list[str] = []
    """Folders with journals of earlier runs that `search_memory` reads: folders of tasks, or
    folders above them. The newest 100 journals count."""
    max_steps: Annotated[int, Field(ge=1)] = 10
    max_seconds: _Positive | None = None
    """Seconds of wall time for one run of this agent."""
    recent_steps: Annotated[int, Field(ge=0)] | None = None
    """Number of steps in the prompt; None lets the window grow and move in rare jumps."""
    history_chars: Annotated[int, Field(ge=1000)] = 120_000
    """Characters of history at which the window moves if `recent_steps` is None."""
    observation_chars: Annotated[int, Field(ge=100)] = 20_000
    """Characters of one observation in prompts; longer ones lose their middle."""
    planning: Planning = "fused"
    """How an agent with a template for "plan" plans. "fused": one model call per step, whose reply
    may carry an updated plan; a separate call asks for a plan only when steps repeat or when old
    steps leave the prompt. "separate": such a call comes before each action. "off": never."""
    plan_every: Annotated[int, Field(ge=1)] = 1
    """With `planning="separate"`, plan at every n-th step."""
    plan_when_stuck: bool = True
    """Ask for a plan when steps repeat, unless `planning` is "off"."""
    stuck_limit: Annotated[int, Field(ge=2)] = 6
    """Number of equal steps in a row that ends the run."""
    store_io: bool = True
    """Store the model's input and output in rows and journal."""
    snapshot_mb: Annotated[int, Field(ge=0)] = 64
    """Megabytes of working files that the journal stores, so that a fork can restore them; 0
    stores none."""
    executor: ExecutorSettings = ExecutorSettings()
    sub_agent_stops: Literal["end", "message"] = "end"
    """What to do if a sub-agent stops for the user (a question without an answer, an action that
    the approver stopped). "end": the whole run stops, and resumes inside that sub-agent.
    "message": the calling code gets the reason as the sub-agent's result."""
    language: Any = CodeLanguage()
    """The form of the model's replies: an `AgentLanguage`, or its name in `LANGUAGES`."""
    environment: Any = None
    """An `Environment` through which the tool calls of this agent pass: an object that all its runs
    share and none closes, or a function that returns a new one for each run. Prompts show the text
    of its `observe()`."""
    approver: Any = None
    """A `ck_pro.approval.Approver` for all calls of the code, also in sub-agents without an
    approver; None approves all. A dict is converted to a `RuleApprover`: its keys are `stop`,
    `reject` and `acknowledge`, each a list of regular expressions."""
    person: Any = None
    """A `ck_pro.tools.human.Person` that answers questions, also in sub-agents."""
    sampling: Sampling = Sampling()
    """How many times to run this agent when another agent calls it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise ConfigError(f"agent name {self.name!r} is not a Python name")
        if isinstance(self.language, str):
            self.language = language_named(self.language)
        if not isinstance(self.language, AgentLanguage):
            raise ConfigError(f"{type(self).__name__}.language: not an AgentLanguage")
        given = self.environment
        if not (given is None or isinstance(given, Environment) or callable(given)):
            raise ConfigError(
                f"{type(self).__name__}.environment: {given!r} is neither an Environment nor a "
                "function that returns one"
            )
        self.approver = approver_of(self.approver)
        if self.person is not None and not callable(getattr(self.person, "answer", None)):
            raise ConfigError(f"{type(self).__name__}.person: not an object with `answer`")
        self.templates = {phase: _as_template(named) for phase, named in self.templates.items()}
        self._function_tools: dict[Any, Tool] = {}

    @property
    def active_planning(self) -> str:
        """`planning`; "off" for an agent without a template for the phase "plan"."""
        return self.planning if self.templates.get("plan") else "off"

    @property
    def forms(self) -> list[Form]:
        """The forms that the model may fill in beside calling functions: the plan, if it plans.

        All prompts of a run except the last one offer them, because services put them first.
        """
        return [PLAN_FORM] if self.active_planning != "off" else []

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON-able values, with the names of language and approver."""
        named = {"language": self.language.name, "approver": setting_of(self.approver)}
        return {**super().to_dict(), **{name: value for name, value in named.items() if value}}

    def check(self) -> None:
        """Check functions, templates and paths, here and in all sub-agents.

        Each run calls it first. The constructor does not, because a subclass may add functions
        after `super().__init__`.

        Raises:
            ConfigError: two functions have one name; an active function, a template or a readable
                path does not exist; or an agent is its own sub-agent.
        """
        self._check_templates()
        self._check_cycles()
        try:
            self.executor.check()
        except ConfigError as e:
            raise ConfigError(f"{self.name}.executor: {e}") from None
        functions = self._all_functions()
        try:
            ToolRegistry(functions)
        except ConfigError as e:
            raise ConfigError(f"{self.name}: {e}") from None
        known = [function.name for function in functions]
        for name in self.active_functions or ():
            if name not in known:
                hint = _hint(name, known)
                raise ConfigError(f"{self.name}.active_functions: no function {name!r}; {hint}")
        for function in functions:
            if isinstance(function, AgentSettings):
                function.check()

    def _check_templates(self) -> None:
        known = template_names()
        if not self.templates.get("action"):
            raise ConfigError(f"{self.name}.templates: the phase 'action' needs a template")
        for phase, named in self.templates.items():
            meant = difflib.get_close_matches(phase, PHASES, n=1, cutoff=0.7)
            if meant and phase not in PHASES:  # a subclass may have other phases
                raise ConfigError(
                    f"{self.name}.templates: no phase '{phase}'; did you mean '{meant[0]}'?"
                )
            if isinstance(named, str) and named and named not in known:
                raise ConfigError(
                    f"{self.name}.templates.{phase}: no template '{named}'; {_hint(named, known)}"
                )
            if not (named is None or isinstance(named, str | TemplatedString)):
                raise ConfigError(f"{self.name}.templates.{phase}: {named!r} is not a template")

    def _check_cycles(self, above: tuple[AgentSettings, ...] = ()) -> None:
        below = (*above, self)
        if any(one is self for one in above):
            path = " > ".join(one.name for one in below)
            raise ConfigError(f"{self.name}: an agent cannot be its own sub-agent ({path})")
        for function in self._all_functions():
            if isinstance(function, AgentSettings):
                function._check_cycles(below)

    def functions(self) -> ToolRegistry:
        """Return the active sub-agents and tools, in order."""
        active, functions = self.active_functions, self._all_functions()
        return ToolRegistry([f for f in functions if active is None or f.name in active])

    def used_settings(self) -> dict[str, Any]:
        """Return the settings by name, without the functions that the agent does not offer."""
        used = {id(function) for function in self.functions()}
        return {
            name: value
            for name, value in super().used_settings().items()
            if not isinstance(value, Tool | AgentSettings) or id(value) in used
        }

    def search_memory(self, query: str) -> list[str]:
        """Return texts of earlier sessions that match a query, best match first.

        The default searches `memory_journals`. Override it for another long-term memory.
        """
        return search_journals(self.memory_journals, query) if self.memory_journals else []

    def register_template(self, phase: str, template: Any) -> None:
        """Set the template of a phase: a name, a text or a function."""
        text = isinstance(template, str) and ("{" in template or "\n" in template)
        if text or not isinstance(template, str):
            template = TemplatedString(template, name=f"{self.name}_{phase}")
        self.templates[phase] = _as_template(template)

    def importable(self) -> list[str]:
        """Return the packages that prompts name as importable."""
        return _installed() if self.imports is None else self.imports

    def get_template(self, phase: str) -> TemplatedString:
        """Return the template of a phase."""
        name = self.templates.get(phase)
        if not name:
            raise ConfigError(f"{self.name}: no template for the phase '{phase}'")
        return get_template(name)

    def _all_functions(self) -> list[Any]:
        listed, unlisted = self._split_functions()
        return [*listed, *unlisted]

    def unlisted(self) -> set[str]:
        """Return the names of functions that prompts name only where files are."""
        return {function.name for function in self._split_functions()[1]}

    def _split_functions(self) -> tuple[list[Any], list[Any]]:
        """Return the listed functions, and those that only `file_functions` names."""
        listed = [self._function(f) for f in iter_functions([*self.sub_agents, *self.tools])]
        names = {function.name for function in listed}
        more = [self._function(f) for f in iter_functions(self.file_functions)]
        return listed, [function for function in more if function.name not in names]

    def _function(self, named: Any) -> Any:
        """Return the sub-agent or tool for an entry of `sub_agents` or `tools`."""
        if isinstance(named, str):
            own = hasattr(self, named) and not hasattr(AgentSettings, named)  # `search_memory`
            named = getattr(self, named) if own else self._workspace_tool(named)
        if isinstance(named, Tool | AgentSettings):
            return named
        if not callable(named):
            tool_from_function(named)  # raises ConfigError
        if named not in self._function_tools:
            self._function_tools[named] = tool_from_function(named)
        return self._function_tools[named]

    def _workspace_tool(self, name: str) -> Tool:
        tools = _shipped_tools()
        if name not in tools:
            values = ((n, getattr(self, n, None)) for n in self.setting_names())
            own = [n for n, value in values if isinstance(value, Tool | AgentSettings)]
            hint = _hint(name, [*own, *tools])
            raise ConfigError(f"{self.name}: no attribute or tool {name!r}; {hint}")
        return tools[name]


def iter_functions(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield the entries of `tools` or `sub_agents`, with those of registries in their place."""
    for entry in entries:
        if isinstance(entry, ToolRegistry):
            yield from entry
        else:
            yield entry


def _hint(name: str, known: Collection[str]) -> str:
    """Return the end of an error about an unknown name: the nearest known one, or all."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"


@functools.cache
def _shipped_tools() -> dict[str, Tool]:
    """Return the tools that agents can name, by name; they have no state, so agents share them."""
    return {tool.name: tool for tool in (*workspace_tools(), *file_tools(), *session_tools())}


@functools.cache
def _installed() -> list[str]:
    return [name for name in _KNOWN_PACKAGES if importlib.util.find_spec(name) is not None]


def _as_template(template: Any) -> Any:
    """Return a phase's template as an object with `format`; other values unchanged."""
    if isinstance(template, str):
        return TemplateName(template)
    return TemplatedString(template) if callable(template) else template
