"""`WebAgent`: a `MultiStepAgent` whose world is a browser."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import ck_web.prompts  # noqa: F401  (registers the templates)
from ck_pro.agent import AgentResult, MultiStepAgent
from ck_pro.events import Action, ErrorObservation
from ck_pro.exceptions import EnvironmentFailure, ToolError
from ck_pro.results import NO_OUTPUT
from ck_pro.run import Run
from ck_pro.session import AgentSession
from ck_pro.tool import Tool, parameters_schema
from ck_web.actions import PREDEFINED_WEB_ACTIONS, parse_action
from ck_web.config import WebEnvConfig
from ck_web.env import WebEnv

_MAX_LINES = 30


class WebTool(Tool):
    """One browser function for the agent's code; its name is one of `PREDEFINED_WEB_ACTIONS`.

    Calling it writes an action string, which is parsed and done in the run's browser at once.
    """

    def __init__(self, **kwargs: Any) -> None:
        write = PREDEFINED_WEB_ACTIONS[kwargs["name"]]
        kwargs.setdefault("description", inspect.getdoc(write))
        kwargs.setdefault("parameters", parameters_schema(write))
        super().__init__(**kwargs)

    def execute(self, *args: Any, **kwargs: Any) -> str:
        """The action string of a call; `bind` makes the function that also acts."""
        return PREDEFINED_WEB_ACTIONS[self.name](*args, **kwargs)

    def bind(self, run: Run) -> Callable[..., str]:
        """The function for the code of one run: acts, and returns one line of what came of it."""
        write = PREDEFINED_WEB_ACTIONS[self.name]

        @functools.wraps(write)
        def act(*args: Any, **kwargs: Any) -> str:
            if run.environment is None:
                raise EnvironmentFailure(f"{self.name}: this run has no browser")
            done = run.environment.execute(parse_action(write(*args, **kwargs)))
            if isinstance(done, ErrorObservation):
                raise ToolError(done.text)
            return done.text

        act.__name__ = self.name
        return act

    def get_function_definition(self, short: bool) -> str:
        """The function as prompts show it."""
        signature = inspect.signature(PREDEFINED_WEB_ACTIONS[self.name], eval_str=True)
        head = f"{self.name}{signature.replace(return_annotation=signature.empty)}"
        text = " ".join(self.description.split())
        if short:
            return f"- {head}: {text.split('. ')[0].rstrip('.')}."
        return f'def {head}:\n    """{text}"""'


class WebStopTool(Tool):
    """Ends the web agent's task with its answer."""

    name = "stop"
    terminal = True

    def execute(self, answer: str, summary: str = "") -> dict[str, str]:
        """End the task.

        Args:
            answer: exactly what the task asks for; "" if it could not be found.
            summary: how it was found (on which pages), or what prevented it.
        """
        return {"output": str(answer), "log": str(summary)}


WEB_FUNCTIONS = tuple(n for n in PREDEFINED_WEB_ACTIONS if n not in ("stop", "nop"))
"""Names of the functions that act in the browser."""


class WebAgent(MultiStepAgent):
    """An agent in a web browser of its own, from the first step of a run to the last.

    A run's start page is `session.info["target_url"]`, else the setting `web_env.target_url`.
    """

    name: str = "web_agent"
    description: str = """\
Do a task on the web in a real browser: navigate, search, fill in forms, read, download.

The task text must say all that it needs: what to do, where, and in what form to answer.
target_url is the page to begin with. Files that it downloads are in the working directory.
Several calls may run at once."""
    max_steps = 20
    templates = {"plan": "web_plan", "action": "web_action", "end": "web_end"}
    tools: list[Any] = [*(WebTool(name=n) for n in WEB_FUNCTIONS), WebStopTool()]
    web_env: WebEnvConfig = WebEnvConfig()
    end_always = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._web_envs: dict[str, WebEnv] = {}

    @property
    def web_envs(self) -> Mapping[str, WebEnv]:
        """The browsers of the runs under way, by session id; a copy, to look at only."""
        return MappingProxyType(dict(self._web_envs))

    # --- as a function ---------------------------------------------------------------------

    def __call__(self, task: str, target_url: str | None = None, **kwargs: Any) -> AgentResult:
        """Do a task in a browser that begins at `target_url`; see `MultiStepAgent.__call__`."""
        if target_url:
            kwargs["info"] = {**(kwargs.get("info") or {}), "target_url": str(target_url)}
        return super().__call__(task, **kwargs)

    def bind(self, run: Run | None) -> Callable[..., AgentResult]:
        """This agent as a function for the code of `run`."""

        def function(task: str, target_url: str | None = None) -> AgentResult:
            return self(task, target_url, parent=run)

        function.__name__ = self.name
        function.__doc__ = self.description
        return function

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Open the browser."""
        super().init_run(session)
        run: Run = session.run
        target_url = session.info.get("target_url")
        env = WebEnv(self.web_env, workdir=run.workdir, target_url=target_url)
        run.environment = self._web_envs[session.id] = env

    def end_run(self, session: AgentSession) -> None:
        """Forget the browser, which the run itself closes."""
        self._web_envs.pop(session.id, None)
        super().end_run(session)

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Look at the page, before all else, and keep its state with the step."""
        run: Run = session.run
        env = self._web_envs[session.id]
        seen = env.observe()
        # the end phase prepares anew, after the last step has acted: its "before" is kept
        if session.steps and "web_state_before" not in session.steps[-1]["action"]:
            run.record("world", {"web_state_before": env.state()})
        kwargs = super().step_prepare(session, state)
        return {**kwargs, "web_page": seen.text, "web_image": seen.image}

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Run the code; what came of its browser actions is told, printed or not."""
        seen = super().step_action(session, action)
        return with_lines(seen, self._web_envs[session.id].take_log())


def with_lines(observation: Any, lines: list[str]) -> Any:
    """A step's observation with the lines of its browser actions that it does not hold already.

    Args:
        observation: text, one sub-agent's result, or a list of such.
        lines: one for each action.
    """
    if isinstance(observation, str):
        for line in lines:  # a call that stands last is the code's value: no news beside the line
            observation = observation.removesuffix(f"Last value: {line!r}").rstrip() or NO_OUTPUT
    texts = observation if isinstance(observation, list) else [observation]
    printed = "\n".join(o for o in texts if isinstance(o, str))
    missing = [line for line in lines if line not in printed]
    if not missing:
        return observation
    shown = missing[-_MAX_LINES:]
    if len(missing) > len(shown):
        shown = [f"({len(missing) - len(shown)} actions before these)", *shown]
    told = "\n".join(shown)
    if not isinstance(observation, str):
        return [told, *texts]
    return told if observation == NO_OUTPUT else f"{told}\n{observation}"
