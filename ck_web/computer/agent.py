"""`ComputerAgent`: an agent that uses a browser or a desktop by screenshots, mouse and keyboard.

It shares the loop, the log and the browser server with the web agent. Environment and language
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ck_pro.agent import MultiStepAgent
from ck_pro.computer import Computer, ScreenEnv, picture_size
from ck_pro.exceptions import ConfigError, GuardStopped, InputError, SafetyCheckRefused
from ck_pro.language import ComputerUseLanguage
from ck_pro.run.run import Run, run_of
from ck_pro.session import AgentSession, Status
from ck_pro.session.rows import Step
from ck_pro.tool import ToolRegistry
from ck_pro.tools.computer import ComputerTool
from ck_pro.tools.human import AskHumanTool
from ck_web.agent import WebAgent
from ck_web.browser.config import WebEnvConfig
from ck_web.computer.browser import BrowserComputer
from ck_web.computer.browser_env import ComputerEnv
from ck_web.computer.items import (
    Item,
    continued_session,
    items_of_step,
    messages_of,
    outputs_of,
    reply_of,
    require_items,
    split_conversation,
)
from ck_web.computer.method_tool import ComputerMethodTool
from ck_web.computer.safety import CallbackApprover
from ck_web.computer.step_printer import StepPrinter
from ck_web.desktop import DesktopComputer, DesktopConfig
from ck_web.env import WebEnv
from ck_web.prompts import Screen
from ck_web.tools import ComputerWebTool, WebStopTool

_METHODS = tuple(name for name in vars(Computer) if not name.startswith("_"))
_DESKTOP_DESCRIPTION = """\
Do a task on a computer with a desktop, by screenshots, mouse and keyboard.

The task text must be complete: what to do, in which program, and the form of the answer."""


class ComputerAgent(WebAgent):
    """An agent that uses a computer by screenshots, mouse and keyboard.

    Its model must read images. `language="computer_use_preview"` or `"computer"` offers the
    computer as the built-in tool of OpenAI's Responses API. `"computer_use"` (the default) offers
    it as a function to any model. With `"code"` the model writes Python that calls `computer(...)`.

    The service may attach safety checks to an action. Unless `approver` or
    `acknowledge_safety_check_callback` acknowledges them, they end the run with `sensitive-action`.

    A function in `tools` may be a dict (`{"type": "function", "name", "description",
    "parameters"}`): its calls go to the computer's method of that name.
    """

    name = "computer_agent"
    description = """\
Do a task in a real browser by screenshots: for pages that are pictures, maps or canvases.

The task text must be complete: what to do, where, and the form of the answer.
target_url is the start page. Several calls may run concurrently."""
    max_steps = 40
    file_functions: list[Any] = []
    templates = {"plan": None, "action": "computer_action", "end": "computer_end"}
    tools: list[Any] = [
        ComputerTool(),
        *(ComputerWebTool(name=n) for n in ("goto", "goback", "reload", "save", "upload")),
        AskHumanTool(),
        WebStopTool(),
    ]
    language: Any = ComputerUseLanguage()
    computer: Any = "browser"
    """The computer: "browser" (settings: `web_env`), "desktop" (settings: `desktop`), or a
    `Computer` object. An object that is open serves all runs and stays open."""
    desktop: DesktopConfig = DesktopConfig()
    acknowledge_safety_check_callback: Any = None
    """A function that is called with the message of a safety check, and returns whether to accept
    it. A function without parameters also works."""
    picture_after_each_act: bool = False
    """Show the screen after each action of a reply in the next prompt, not only the last one."""
    print_steps: bool = False
    """Print each action and message to standard error."""
    show_images: bool = False
    """Show each screen in an image viewer; without a display, print where it was saved."""
    debug: bool = False
    """Print the items of each step to standard error, with images shortened."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._check_computer()
        if any(isinstance(tool, Mapping) for tool in self.tools):
            self.tools = _with_methods(self.tools)
        callback = self.acknowledge_safety_check_callback
        if callback is not None and not callable(callback):
            raise ConfigError("acknowledge_safety_check_callback: not a function")
        if isinstance(self.language, ComputerUseLanguage):
            screen = self._screen()
            self.language = self.language.with_display(
                screen.width, screen.height, self._environment_name()
            )
        if not self._is_browser and self.description == ComputerAgent.description:
            self.description = _DESKTOP_DESCRIPTION
        self._printers: dict[str, StepPrinter] = {}

    # --- the computer ----------------------------------------------------------------------

    @property
    def _is_browser(self) -> bool:
        return self._environment_name() == "browser"

    def _environment_name(self) -> str:
        if isinstance(self.computer, str):
            return "browser" if self.computer == "browser" else "linux"
        return str(self.computer.environment)

    def _screen(self) -> Screen:
        """Return size and kind of the pictures."""
        side = self.web_env.picture_side
        match self.computer:
            case "browser":
                size = (self.web_env.viewport_width, self.web_env.viewport_height)
            case "desktop":
                size = (self.desktop.width, self.desktop.height)
            case BrowserComputer() as computer:
                return Screen(*computer.dimensions)
            case computer:
                size = computer.dimensions
        return Screen(*picture_size(*size, side), is_browser=self._is_browser)

    def _check_computer(self) -> None:
        """Raise ConfigError unless `computer` is a known name or follows the protocol."""
        computer = self.computer
        if computer is None:
            self.computer = "browser"
        elif isinstance(computer, str):
            if computer not in ("browser", "desktop"):
                raise ConfigError(
                    f"{self.name}.computer: {computer!r} is unknown: use 'browser', 'desktop' or a "
                    "Computer object"
                )
        elif missing := [name for name in _METHODS if not hasattr(computer, name)]:
            raise ConfigError(
                f"{self.name}.computer: {type(computer).__name__} is not a Computer: it has no "
                f"{', '.join(missing)}"
            )

    def used_settings(self) -> dict[str, Any]:
        """Return the settings that a run uses: of the browser only if the computer is one."""
        used = {k: v for k, v in super().used_settings().items() if k not in ("web_env", "desktop")}
        match self.computer:
            case "browser":
                return {**used, "web_env": self.web_env}
            case "desktop":
                return {**used, "desktop": self.desktop}
            case BrowserComputer() as computer:
                return {**used, "web_env": computer.config}
        return used

    def functions(self) -> ToolRegistry:
        """Return the active functions; a desktop has none of the browser's."""
        found = super().functions()
        if self._is_browser and isinstance(self.computer, str | BrowserComputer):
            return found
        return ToolRegistry(f for f in found if not isinstance(f, ComputerWebTool))

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Open the computer, or connect again to that of a resumed run."""
        run = run_of(session)
        if (callback := self.acknowledge_safety_check_callback) is not None:
            run.approver = CallbackApprover(run.approver, callback)
        computer = self.computer
        if isinstance(computer, BrowserComputer) and computer.is_open:
            MultiStepAgent.init_run(self, session)
            secrets = computer.config.secret_values().values()
            run.journal.protect(str(secret["value"]) for secret in secrets)
            each = self.picture_after_each_act
            env = computer.lend(run.approver, picture_after_each_act=each, suspended=run.lease)
            run.environment = self._web_envs[session.id] = env
            if url := session.info.get("target_url"):
                env.start_at(url)
        elif isinstance(computer, str | BrowserComputer) and self._is_browser:
            super().init_run(session)
        else:
            MultiStepAgent.init_run(self, session)
            if computer == "desktop":
                computer = DesktopComputer(self.desktop, workdir=run.workdir)
            run.environment = ScreenEnv(
                computer,
                max_side=self.web_env.picture_side,
                suspended=run.lease,
                picture_after_each_act=self.picture_after_each_act,
            )

    def _new_env(self, config: WebEnvConfig, **settings: Any) -> ComputerEnv:
        if isinstance(self.computer, BrowserComputer):
            config = self.computer.config
        each = self.picture_after_each_act
        return ComputerEnv(config, picture_after_each_act=each, **settings)

    def _env(self, session: AgentSession) -> WebEnv:
        # a `ScreenEnv` has the methods that the web agent's hooks call
        return cast(WebEnv, run_of(session).environment)

    @property
    def _state_key(self) -> str:  # type: ignore[override]
        return "web_state_before" if self._is_browser else "computer_state_before"

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Observe the screen first, and put the earlier conversation before the steps."""
        kwargs = super().step_prepare(session, state)
        earlier = session.info.get("earlier_items") or ()
        history = [*messages_of(earlier, self.language), *kwargs["history"]]
        return {**kwargs, "screen": self._screen(), "history": history}

    def step(self, session: AgentSession, state: Mapping[str, Any]) -> Step:
        """Do one step, and print it if the settings ask for it."""
        done = super().step(session, state)
        printer = self._printers.get(session.id)
        if printer is None:
            printer = StepPrinter(self.print_steps, self.debug, self.show_images)
        screens = done["action"].get("screens", ())
        printer.show(items_of_step(done), [s["image"] for s in screens if s.get("image")])
        return done

    # --- the protocol of OpenAI's sample agent ---------------------------------------------

    def run_full_turn(
        self,
        input_items: Sequence[Mapping[str, Any]],
        print_steps: bool = True,
        debug: bool = False,
        show_images: bool = False,
        **settings: Any,
    ) -> list[Item]:
        """Work on the last user message until the agent has answered.

        Each call is a turn of `turn`: journaled and limited like every run. If `input_items` has
        the result of an earlier call, its session is continued with the same computer.

        Args:
            input_items: the conversation as items of the Responses API; the last is the user's.
            print_steps: print actions and messages to standard output.
            debug: print all items, with images shortened.
            show_images: show each screen.
            settings: `journal`, `budget`, `workdir`, `max_steps`, `cancel`, `on_event`, as for
                `turn`.

        Returns:
            The new items: calls, their outputs, and the final message with the role "assistant".
            Each has the attribute `session`.

        Raises:
            SafetyCheckRefused: a safety check was not acknowledged (a ValueError).
            InputError: no item is a message of the user.
        """
        earlier, text = split_conversation(input_items)
        session = continued_session(input_items)
        if session is None:
            session = AgentSession(text, agent=self.name)
            if earlier:
                settings["info"] = {**settings.get("info", {}), "earlier_items": earlier}
        first = len(session.steps)
        self._printers[session.id] = StepPrinter(print_steps, debug, show_images, to_stdout=True)
        try:
            session = self.turn(session, text, **settings)
            self._rest(session)
        finally:
            printer = self._printers.pop(session.id)
        if session.status is Status.SENSITIVE_ACTION:
            raise SafetyCheckRefused(session.message)
        items = [item for step in session.steps[first:] for item in items_of_step(step)]
        answer = self._answer(session)
        if not items or items[-1].get("role") != "assistant":
            items.append(Item.message(answer))
            printer.show(items[-1:])
        for item in items:
            item.session = session
        return items

    def handle_item(self, item: Mapping[str, Any]) -> list[Item]:
        """Carry out one output item of a model on the open computer.

        Returns:
            The output item of a call, with the screen after it; nothing for other items.

        Raises:
            SafetyCheckRefused: a safety check was not acknowledged (a ValueError).
            InputError: the item is not a dict, or the computer is not open.
        """
        require_items([item])
        reply = reply_of(item)
        if reply is None:
            StepPrinter(True, self.debug, False, to_stdout=True).show([Item(item)])
            return []
        if isinstance(self.computer, str) or not getattr(self.computer, "is_open", True):
            raise InputError(
                "handle_item needs an open computer: `with BrowserComputer() as computer:`"
            )
        session = AgentSession("one item", agent=self.name)
        run = session.run = Run(self, session)
        try:
            self.init_run(session)
            run.start()
            run.start_step()
            actions = ComputerUseLanguage("computer").parse(reply)
            observation = self.act(session, actions)
        except GuardStopped as e:
            raise SafetyCheckRefused(str(e)) from None
        finally:
            self.end_run(session)
            run.close()
        return outputs_of([dict(item)], session.steps[-1]["action"], observation)

    def _rest(self, session: AgentSession) -> None:
        """Release the run of a turn; the computer stays as it is for the next one."""
        if session.run is None:
            return
        if isinstance(self.computer, str) or not getattr(self.computer, "is_open", True):
            self.suspend_run(session)
        else:
            self.end_session(session)

    @staticmethod
    def _answer(session: AgentSession) -> str:
        results = session.final_results
        return str((results and results["output"]) or session.message)


def _with_methods(given: Sequence[Any]) -> list[Any]:
    """Return the default tools and further functions; a function replaces the tool of its name."""
    made = [ComputerMethodTool.of(t) if isinstance(t, Mapping) else t for t in given]
    names = {getattr(tool, "name", "") for tool in made}
    return [*(t for t in ComputerAgent.tools if t.name not in names), *made]
