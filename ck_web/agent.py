"""`WebAgent`: a `MultiStepAgent` whose environment is a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator

import ck_web.prompts  # noqa: F401  (registers the templates)
from ck_pro.agent import AgentResult, MultiStepAgent
from ck_pro.events import EventKind
from ck_pro.events.journal_events import WorldData
from ck_pro.exceptions import ToolError
from ck_pro.model import LLM
from ck_pro.run.run import Run, run_of
from ck_pro.session import AgentSession
from ck_pro.tool import ToolRegistry
from ck_pro.tools.human import AskHumanTool
from ck_web.actions import ACTIONS, PREDEFINED_WEB_ACTIONS, WEB_FUNCTIONS
from ck_web.browser.config import Pictures, WebEnvConfig
from ck_web.browser.lease import discard_browser
from ck_web.env import WebEnv
from ck_web.page.page_diff import FullPage, insert_page, page_changes, section
from ck_web.page.state import last_url_of
from ck_web.tools import WebStopTool, WebTool, definitions

__all__ = ["PREDEFINED_WEB_ACTIONS", "WebAgent", "WebStopTool", "WebTool", "start_address"]

BLANK = "about:blank"
_LAST = (True, "true", "last")
"""Values of `continue_from` that mean the last call; a model that writes no code has no results."""
_ADDRESS = re.compile(r"https?://[^\s<>\"'`()\[\]{}|\\\u3000-\u303f\uff00-\uffef]+")


def _mode(value: Any) -> Any:
    """Accept former names of the modes, and booleans: YAML reads an unquoted on or off as one."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return {"yes": "on", "always": "on", "no": "off", "never": "off"}.get(value, value)


Multimodal = Annotated[Literal["off", "auto", "on"], BeforeValidator(_mode)]


class WebAgent(MultiStepAgent):
    """An agent with its own web browser, which stays open from the first step to the last.

    The start page is `session.info["target_url"]`, else the setting `web_env.target_url`, else
    `start_address` of the task.
    """

    former_names = {"web_env_kwargs": "web_env"}

    name: str = "web_agent"
    description: str = """\
Do a task in a real web browser: navigate, search, fill in forms, read, download any URL.

It runs Python on whole pages, so it can also count, compare and compute over pages and files.
target_url is the start page (default: the first URL in the task). With the result r of an earlier
call, continue_from=r keeps its browser and variables. Downloads are in the working directory."""
    can_continue = True
    max_steps = 20
    imports = []
    templates = {"plan": "web_plan", "action": "web_action", "end": "web_end"}
    tools: list[Any] = [
        *(WebTool(name=n) for n in WEB_FUNCTIONS),
        AskHumanTool(),
        WebStopTool(),
    ]
    file_functions: list[Any] = ["describe_file", "read_document", "search_file", "read_table"]
    web_env: WebEnvConfig = WebEnvConfig()
    end_always = False
    use_multimodal: Multimodal = "auto"
    """When the model gets screenshots. "off": never; "on": with each page; "auto": after it called
    `screenshot(True)`. If `model_multimodal` is set, "auto" also sends one while a page is mostly
    pictures or the last actions had no effect."""
    page_changes: bool = False
    """Show a page that the prompt already contains as its changes since then. Prompts get shorter
    and share a longer prefix. The model must combine the page and its changes."""

    _state_key: ClassVar[str] = "web_state_before"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._web_envs: dict[str, WebEnv] = {}
        self._full_pages: dict[str, FullPage] = {}

    @property
    def web_envs(self) -> Mapping[str, WebEnv]:
        """The browsers of the live runs by session id, a read-only copy."""
        return MappingProxyType(dict(self._web_envs))

    # --- as a function ---------------------------------------------------------------------

    def __call__(
        self,
        task: str,
        target_url: str | None = None,
        continue_from: Any = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Do a task in a browser; see `MultiStepAgent.__call__`.

        Args:
            task: the task.
            target_url: the start page.
            continue_from: the result of an earlier call by the same caller, or True for the last
                one. Its browser, with page and logins, and its variables are used again.
            kwargs: as for `run`.

        Raises:
            ToolError: `continue_from` is not a result of a call.
        """
        info = dict(kwargs.pop("info", None) or {})
        if target_url:
            info["target_url"] = str(target_url)
        if continue_from not in (None, False, ""):
            earlier = self._earlier(continue_from, kwargs.get("parent"))
            info["continue_from"], kwargs["continue_from"] = earlier.id, earlier
        return super().__call__(task, info=info, **kwargs)

    def _earlier(self, given: Any, caller: Run | None) -> AgentSession:
        """Return the session that a call continues.

        Raises:
            ToolError: there is none.
        """
        earlier = getattr(given, "session", None)
        if given in _LAST and caller is not None:
            sessions = [s for s in caller.session.children.values() if s.agent == self.name]
            earlier = sessions[-1] if sessions else None
        if not isinstance(earlier, AgentSession):
            raise ToolError(
                f"continue_from: give the result of an earlier call, r of r = {self.name}(...), or "
                "True for the last call"
            )
        return earlier

    def discard_environment(self, lease: Any) -> None:
        """Close a suspended browser."""
        discard_browser(self.web_env, lease)

    def functions(self) -> ToolRegistry:
        """Return the active functions, without those that a setting of the browser switches off."""
        off = {n for n, a in ACTIONS.items() if a.setting and not getattr(self.web_env, a.setting)}
        active = super().functions()
        return ToolRegistry([f for f in active if f.name not in off]) if off else active

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Open the browser, or connect again to that of a resumed run."""
        super().init_run(session)
        run = run_of(session)
        secrets = self.web_env.secret_values().values()
        run.journal.protect(str(secret["value"]) for secret in secrets)
        env = self._new_env(
            self.web_env,
            workdir=run.workdir,
            target_url=session.info.get("target_url"),
            suspended=run.lease,
            last_url=last_url_of(run.continued or session),
            approver=run.approver,
            keep_after_exit=run.journal.folder is not None,
            setting=_setting_path(run),
        )
        run.environment = self._web_envs[session.id] = env
        if run.continued is not None:
            if session.info.get("target_url"):
                env.start_at(session.info["target_url"])
            return
        given = session.info.get("target_url") or self.web_env.target_url
        address = start_address(session.task)
        if given == BLANK and address and not session.steps and run.lease is None:
            env.start_at(address)

    def _env(self, session: AgentSession) -> WebEnv:
        """Return the browser of a live run."""
        return self._web_envs[session.id]

    def _new_env(self, config: WebEnvConfig, **settings: Any) -> WebEnv:
        """Return the browser of a run."""
        return WebEnv(config, pictures=self._pictures(), **settings)

    def end_run(self, session: AgentSession) -> None:
        """Drop the browser; the run itself closes it."""
        self._web_envs.pop(session.id, None)
        self._full_pages.pop(session.id, None)
        super().end_run(session)

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Observe the page first, and record its state with the step."""
        run, env = run_of(session), self._env(session)
        seen = env.observe()
        # the end phase comes here again: do not overwrite the state before the last step
        if session.steps and self._state_key not in session.steps[-1]["action"]:
            run.record(EventKind.WORLD, cast(WorldData, {self._state_key: env.state()}))
        kwargs = super().step_prepare(session, state)
        return {
            **kwargs,
            "web_functions": definitions(run.functions.defined),
            "web_image": seen.image,
            "web_pictures": getattr(seen, "pictures", ()),
            **self._page_values(session, seen.text, kwargs),
        }

    def _model_for(self, kwargs: Mapping[str, Any], model: LLM | None) -> LLM:
        """Return the multimodal model for a prompt with a screenshot."""
        if kwargs.get("web_image") and self.model_multimodal is not None:
            return self.model_multimodal
        return super()._model_for(kwargs, model)

    def _page_values(
        self, session: AgentSession, page: str, kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the page for the prompt: in full, or its changes since the prompt shows it."""
        if not self.page_changes:
            return {"web_page": page, "web_page_title": "Current page"}
        full = self._full_pages.get(session.id)
        if full is not None:
            changes = page_changes(full.text, page)
            start = kwargs["history_starts"].get(full.step)
            history = insert_page(kwargs["history"], start, section(full.title, full.text))
            if changes is not None and history is not None:
                title = f"Current page: changes since step {full.step}"
                return {"web_page": changes, "web_page_title": title, "history": history}
        full = self._full_pages[session.id] = FullPage(kwargs["step_idx"], page)
        return {"web_page": page, "web_page_title": full.title}

    def _pictures(self) -> Pictures:
        # a text-only model must not get screenshots that it did not ask for
        if self.use_multimodal == "auto":
            return "asked" if self.model_multimodal is None else "auto"
        return self.use_multimodal


def start_address(task: str) -> str:
    """Return the address on which a task starts; empty if the task has none.

    This is the first address. If the task names exactly one page below it, as in "in the shop at
    http://x/, order the lamp of http://x/lamps/3", it is that page.
    """
    found: list[str] = [text.rstrip(".,;:!?*_") for text in _ADDRESS.findall(task)]
    if not found:
        return ""
    first = found[0]
    inner = {url for url in found[1:] if _is_below(url, first)}
    return inner.pop() if len(inner) == 1 else first


def _is_below(url: str, first: str) -> bool:
    base = first.partition("#")[0].partition("?")[0].rstrip("/")
    return url.startswith((f"{base}/", f"{base}?")) and url.rstrip("/") != base


def _setting_path(run: Run) -> str:
    """Return the path of the run's `web_env` in the settings of the command.

    For example `web_agent.web_env`.
    """
    names = ["web_env"]
    while run.parent is not None:
        agent, caller = run.agent, run.parent.agent
        found = (n for n in caller.setting_names() if getattr(caller, n, None) is agent)
        names.insert(0, next(found, agent.name))
        run = run.parent
    return ".".join(names)
