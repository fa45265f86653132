"""`WebAgent`: a `MultiStepAgent` whose world is a browser."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

import ck_web.prompts  # noqa: F401  (registers the templates)
from ck_pro.agent import AgentResult, MultiStepAgent
from ck_pro.events import Action, EventKind
from ck_pro.events.journal_events import WorldData
from ck_pro.model import LLM
from ck_pro.run.results import NO_OUTPUT
from ck_pro.run.run import Run, run_of
from ck_pro.session import AgentSession
from ck_pro.session.observed import append_piece
from ck_pro.tools.human import AskHumanTool
from ck_web.actions import PREDEFINED_WEB_ACTIONS
from ck_web.browser.config import WebEnvConfig
from ck_web.env import Pictures, WebEnv
from ck_web.page.page_diff import ShownPage, page_changes, section, with_page
from ck_web.tools import WEB_FUNCTIONS, WebStopTool, WebTool, definitions

__all__ = ["PREDEFINED_WEB_ACTIONS", "WebAgent", "WebStopTool", "WebTool", "with_lines"]

_MAX_LINES = 30


def _mode(value: Any) -> Any:
    """The modes by other names that they have had, and as YAML reads an unquoted on and off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return {"yes": "on", "always": "on", "no": "off", "never": "off"}.get(value, value)


Multimodal = Annotated[Literal["off", "auto", "on"], BeforeValidator(_mode)]


class WebAgent(MultiStepAgent):
    """An agent in a web browser of its own, from the first step of a run to the last.

    A run's start page is `session.info["target_url"]`, else the setting `web_env.target_url`.
    """

    former_names = {"web_env_kwargs": "web_env"}

    name: str = "web_agent"
    description: str = """\
Do a task on the web in a real browser: navigate, search, fill in forms, read, download.

The task text must say all that it needs: what to do, where, and in what form to answer.
target_url is the page to begin with. Files that it downloads are in the working directory.
Several calls may run at once."""
    max_steps = 20
    templates = {"plan": "web_plan", "action": "web_action", "end": "web_end"}
    tools: list[Any] = [
        *(WebTool(name=n) for n in WEB_FUNCTIONS),
        AskHumanTool(),
        WebStopTool(),
    ]
    web_env: WebEnvConfig = WebEnvConfig()
    end_always = False
    use_multimodal: Multimodal = "auto"
    """Screenshots for the model: "off" never, "on" with each page, "auto" once it asked for them by
    `screenshot(True)` and, where `model_multimodal` is set, also by themselves while a page is
    mostly pictures or the agent is stuck."""
    page_changes: bool = False
    """Show a page that the prompt holds already by what changed since: shorter prompts, of which
    more is the same from step to step, for a model that can put the two together."""
    model_multimodal: LLM | None = None
    """The model for prompts with a screenshot; `model` when None."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._web_envs: dict[str, WebEnv] = {}
        self._shown: dict[str, ShownPage] = {}

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

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Open the browser, or take up that of a run which goes on."""
        super().init_run(session)
        run = run_of(session)
        env = self._new_env(
            self.web_env,
            workdir=run.workdir,
            target_url=session.info.get("target_url"),
            left=run.lease,
            last_url=_last_url(session),
            approver=run.approver,
            outlive=run.journal.folder is not None,
            setting=_setting_of(run),
        )
        run.environment = self._web_envs[session.id] = env

    def _new_env(self, config: WebEnvConfig, **settings: Any) -> WebEnv:
        """The browser of a run."""
        return WebEnv(config, pictures=self._pictures(), **settings)

    def end_run(self, session: AgentSession) -> None:
        """Forget the browser, which the run itself closes."""
        self._web_envs.pop(session.id, None)
        self._shown.pop(session.id, None)
        super().end_run(session)

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Look at the page, before all else, and keep its state with the step."""
        run = run_of(session)
        env = self._web_envs[session.id]
        seen = env.observe()
        # the end phase prepares anew, after the last step has acted: its "before" is kept
        if session.steps and "web_state_before" not in session.steps[-1]["action"]:
            run.record(EventKind.WORLD, WorldData(web_state_before=env.state()))
        kwargs = super().step_prepare(session, state)
        functions = definitions(self.functions())
        return {
            **kwargs,
            "web_functions": functions,
            "web_image": seen.image,
            **self._page_values(session, seen.text, kwargs),
        }

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Run the code; what came of its browser actions is told, printed or not."""
        seen = super().step_action(session, action)
        return with_lines(seen, self._web_envs[session.id].take_log())

    def _model_for(self, kwargs: Mapping[str, Any], model: LLM | None) -> LLM:
        """A prompt with a picture goes to the model that sees, where there is one of its own."""
        if kwargs.get("web_image") and self.model_multimodal is not None:
            return self.model_multimodal
        return super()._model_for(kwargs, model)

    def _page_values(
        self, session: AgentSession, page: str, kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The page for the prompt: whole, or what changed since the prompt shows it whole."""
        if not self.page_changes:
            return {"web_page": page, "web_page_title": "The page now"}
        shown = self._shown.get(session.id)
        if shown is not None:
            changes = page_changes(shown.text, page)
            before = section(shown.title, shown.text)
            history = with_page(kwargs["history"], shown.step, before)
            if changes is not None and history is not None:
                title = f"The page now: that of step {shown.step}, but for these changes"
                return {"web_page": changes, "web_page_title": title, "history": history}
        shown = self._shown[session.id] = ShownPage(kwargs["step_idx"], page)
        return {"web_page": page, "web_page_title": shown.title}

    def _pictures(self) -> Pictures:
        # a model that may not see must not be sent what it did not ask for
        if self.use_multimodal == "auto":
            return "asked" if self.model_multimodal is None else "auto"
        return self.use_multimodal


def _setting_of(run: Run) -> str:
    """The name of the run's `web_env` among the settings of the command, such as
    `web_agent.web_env`."""
    names = ["web_env"]
    while run.parent is not None:
        agent, caller = run.agent, run.parent.agent
        held = (n for n in caller.setting_names() if getattr(caller, n, None) is agent)
        names.insert(0, next(held, agent.name))
        run = run.parent
    return ".".join(names)


def _last_url(session: AgentSession) -> str:
    """Where a session was that goes on; empty for a fresh one."""
    states = (step["action"].get("web_state_before") for step in reversed(session.steps))
    return next((state["step_url"] for state in states if state), "")


def with_lines(observation: Any, lines: list[str]) -> Any:
    """A step's observation with the lines of its browser actions that it does not hold already.

    Args:
        observation: text, one sub-agent's result, or a list of such.
        lines: one for each action.
    """
    entries = list(observation) if isinstance(observation, list) else [observation]
    if isinstance(entries[-1], str):
        last = entries[-1]
        for line in lines:  # a call that stands last is the code's value, which its line repeats
            last = last.removesuffix(f"Last value: {line!r}").rstrip()
        entries[-1:] = [last] if last else [] if entries[:-1] else [NO_OUTPUT]
    printed = "\n".join(o for o in entries if isinstance(o, str))
    missing = [line for line in lines if line not in printed]
    if missing:
        shown = missing[-_MAX_LINES:]
        if len(missing) > len(shown):
            shown = [f"({len(missing) - len(shown)} actions before these)", *shown]
        told = "\n".join(shown)
        if entries == [NO_OUTPUT]:
            return told
        pieces = [f"{told}\n"]
        for entry in entries:
            append_piece(pieces, entry)
        entries = pieces
    return entries[0] if len(entries) == 1 else entries
