"""The sandbox state machine as a LangGraph graph: sandbox manager, planner, executor, end.

LangGraph runs it and stores its checkpoints. Each step of the plan is one run of an agent, with its
journal, limits and resume. It needs the extra `langgraph`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from ck_pro.agent.run_end import record_ending
from ck_pro.events import EventKind
from ck_pro.events.journal_events import FinishData
from ck_pro.exceptions import CKError, EnvironmentFailure, InputError, LeaseExpired
from ck_pro.journal import Journal, is_journal, read_events
from ck_pro.language import parse_literal
from ck_pro.model import LLM, Budget
from ck_pro.run.resume import read_interrupted_run
from ck_pro.run.run import Run
from ck_pro.session import AgentSession, Status, StopReason
from ck_web.agent import WebAgent
from ck_web.sandbox import Sandbox, SandboxManager, application_platform

PLANNER = """\
You plan tasks for an agent that uses {place}. Split the user's request into at most \
{max_steps} short steps. Each step is one instruction that stands alone, with all names, addresses \
and values that it needs. The steps run one after another in the same window.
Reply with one JSON object and nothing else:
{{"application_platform": "{platform}", "steps": ["...", "..."]}}
If the request is too unclear for a plan, reply {{"question": "..."}} instead."""
_PLACES = {"browser": "a web browser", "desktop": "a desktop computer"}
_MAX_PLANNED = 20
_MAX_SCREENSHOTS = 20


class SandboxState(TypedDict, total=False):
    """The state of the graph. `user_request` is the input; the graph sets the others.

    Keys:
        user_request: the task.
        sandbox_id, sandbox_url: an existing sandbox as input; then the sandbox in use.
        sandbox_expires_at: its end (ISO 8601, UTC).
        application_platform: "browser" or "desktop".
        plan: the steps.
        current_step: index of the next step.
        screenshots: base64 PNGs after the steps; equal ones only once.
        last_executor_output: the answer of the last step.
        outputs: the answers of all steps.
        status: `in_progress`, `done`, `ambiguity`, `human-intervention`, `sensitive-action` or
            `problem`.
        message: the question, the stopped action or the problem.
        answer, approve: input for a graph that stopped for a person: the answer to `message`, or
            the approval of the one stopped action.
    """

    user_request: str
    sandbox_id: str
    sandbox_url: str
    sandbox_expires_at: str
    application_platform: str
    plan: list[str]
    current_step: int
    screenshots: list[str]
    last_executor_output: str
    outputs: list[str]
    status: str
    message: str
    answer: str
    approve: bool


class SandboxGraph:
    """The nodes of the graph. `compiled` returns it for LangGraph.

    Args:
        manager: makes and renews the sandbox; the caller closes it.
        agent: executes the steps. In a browser it gets the sandbox's settings as its `web_env`; on
            a desktop it must be a `ComputerAgent`, and gets the sandbox's `computer`.
        planner: model that plans; the agent's model by default.
        folder: folder for the journals of the steps; a stopped step resumes from there.
        budget: limits for all steps together.
    """

    def __init__(
        self,
        manager: SandboxManager,
        agent: WebAgent,
        *,
        planner: LLM | None = None,
        folder: Path | str,
        budget: Budget | None = None,
    ):
        self.manager, self.agent = manager, agent
        self.planner = planner or agent.model
        self.folder = Path(folder)
        self.budget = budget or Budget()

    def compiled(self, **settings: Any) -> Any:
        """Return the compiled graph.

        Args:
            settings: for `StateGraph.compile`, such as `checkpointer`.
        """
        graph = StateGraph(SandboxState)
        graph.add_node("sandbox_manager", self.sandbox_manager)
        graph.add_node("planner", self.plan)
        graph.add_node("executor", self.execute)
        graph.add_edge(START, "sandbox_manager")
        graph.add_conditional_edges("sandbox_manager", self._after_manager)
        graph.add_conditional_edges("planner", self._after_planner)
        graph.add_conditional_edges("executor", self._after_executor)
        return graph.compile(**settings)

    # --- the nodes -------------------------------------------------------------------------

    def sandbox_manager(self, state: SandboxState) -> SandboxState:
        """Ensure that the sandbox runs and lasts for at least a minute more."""
        if self.manager.sandbox is None and state.get("sandbox_id") and state.get("sandbox_url"):
            self.manager.use(state["sandbox_id"], state["sandbox_url"])
        try:
            sandbox = self.manager.ensure()
        except (LeaseExpired, EnvironmentFailure) as e:
            return {"status": Status.PROBLEM.value, "message": str(e)}
        found: SandboxState = {
            "sandbox_id": sandbox.id,
            "sandbox_url": sandbox.url,
            "status": Status.IN_PROGRESS.value,
        }
        if sandbox.expires_at is not None:
            end = datetime.fromtimestamp(sandbox.expires_at, timezone.utc)
            found["sandbox_expires_at"] = end.isoformat()
        return found

    def plan(self, state: SandboxState) -> SandboxState:
        """Split the request into steps, or ask a question about it."""
        request = state.get("user_request", "").strip()
        if state.get("answer"):
            request += f"\n\nQuestion: {state.get('message', '')}\nAnswer: {state['answer']}"
        platform = self._sandbox().platform
        system = PLANNER.format(max_steps=_MAX_PLANNED, platform=platform, place=_PLACES[platform])
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": request},
        ]
        try:
            plan = _read_plan(self._ask_planner(request, messages))
            platform = application_platform(str(plan.get("application_platform") or "browser"))
            if (has := self._sandbox().platform) != platform:
                raise InputError(f"the planner chose a {platform}, but the sandbox is a {has}")
        except CKError as e:
            return {"status": Status.PROBLEM.value, "message": str(e)}
        if not plan["steps"]:
            return {"status": Status.AMBIGUITY.value, "message": plan["question"], "answer": ""}
        return {
            "plan": plan["steps"],
            "current_step": 0,
            "application_platform": platform,
            "outputs": [],
            "answer": "",
        }

    def execute(self, state: SandboxState) -> SandboxState:
        """Execute the next step of the plan, or resume it where it stopped for a person."""
        number = state["current_step"]
        try:
            session = self._run_step(state, number)
        except CKError as e:
            return {"status": Status.PROBLEM.value, "message": str(e), "answer": ""}
        found: SandboxState = {"answer": "", "approve": False, "message": session.message}
        found["screenshots"] = self._screenshots(state)
        if session.status is not Status.DONE:
            found["status"] = session.status.value
            return found
        output = str((session.final_results or {"output": ""})["output"])
        last = number + 1 >= len(state["plan"])
        found["last_executor_output"] = output
        found["outputs"] = [*state.get("outputs", []), output]
        found["current_step"] = number + 1
        found["status"] = (Status.DONE if last else Status.IN_PROGRESS).value
        return found

    # --- the edges -------------------------------------------------------------------------

    def _after_manager(self, state: SandboxState) -> Literal["planner", "executor", "__end__"]:
        if state["status"] == Status.PROBLEM.value:
            return "__end__"
        return "executor" if state.get("plan") else "planner"

    def _after_planner(self, state: SandboxState) -> Literal["executor", "__end__"]:
        return "executor" if state["status"] == Status.IN_PROGRESS.value else "__end__"

    def _after_executor(self, state: SandboxState) -> Literal["sandbox_manager", "__end__"]:
        return "sandbox_manager" if state["status"] == Status.IN_PROGRESS.value else "__end__"

    # --- parts -----------------------------------------------------------------------------

    def _sandbox(self) -> Sandbox:
        sandbox = self.manager.sandbox
        assert sandbox is not None  # the node `sandbox_manager` has ensured it
        return sandbox

    def _run_step(self, state: SandboxState, number: int) -> AgentSession:
        """Run one step of the plan, or resume it."""
        sandbox = self._sandbox()
        settings: dict[str, Any] = {"web_env": dict(sandbox.settings or {})}
        if sandbox.computer is not None:
            settings = {"computer": sandbox.computer}
        agent: WebAgent = self.agent.updated(settings)
        folder = self.folder / f"{_name(state)}-step-{number}"
        resumed = is_journal(folder)
        if resumed:
            earlier, _ = read_interrupted_run(read_events(folder))
            if earlier is not None and earlier.session.status is Status.DONE:
                return earlier.session  # the process ended before the graph's checkpoint
        with Journal(folder) as journal:
            given: dict[str, Any] = {"journal": journal, "workdir": self.folder / "work"}
            given["budget"] = Budget(parent=self.budget)
            if resumed:
                answer, approve = state.get("answer", ""), bool(state.get("approve"))
                session: AgentSession = agent.resume(answer=answer, approve=approve, **given)
                return session
            task = state["plan"][number]
            if outputs := state.get("outputs"):
                done = zip(state["plan"], outputs, strict=False)
                lines = "\n".join(f"- {step} Result: {output}" for step, output in done)
                task = f"{task}\n\nEarlier steps, already done in this window:\n{lines}"
            session = agent.run(task, **given)
            return session

    def _ask_planner(self, request: str, messages: list[dict[str, Any]]) -> str:
        """Call the planner; the call is journaled and counts against the budget."""
        session = AgentSession(request, agent="planner")
        with Journal(self.folder / f"plan-{session.id[:12]}") as journal:
            run = Run(self.agent, session, journal=journal, budget=Budget(parent=self.budget))
            reason, message, reply = StopReason.MODEL_FAILURE, "", ""
            try:
                run.start()
                run.start_step()
                reply = str(run.call_model(self.planner, messages, "plan"))
                run.record(EventKind.FINISH, FinishData(output=reply, log=""))
                reason = StopReason.FINISHED
            except CKError as e:
                message = str(e)
                raise
            finally:
                run.close()
                record_ending(run, reason, message)
        return reply

    def _screenshots(self, state: SandboxState) -> list[str]:
        """Return the screenshots with the present one, unless an equal one is there."""
        known = list(state.get("screenshots", []))
        image = self.manager.screenshot()
        if image is None:
            return known
        text = base64.b64encode(image).decode()
        return known if text in known else [*known, text][-_MAX_SCREENSHOTS:]


def _name(state: SandboxState) -> str:
    """Return a name for the journals of a request and its plan."""
    facts = json.dumps([state["user_request"], state["plan"], state["sandbox_id"]])
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def _read_plan(reply: str) -> dict[str, Any]:
    """Return `steps`, `question` and `application_platform` of the planner's reply.

    Raises:
        InputError: the reply has no plan.
    """
    start, end = reply.find("{"), reply.rfind("}")
    found = parse_literal(reply[start : end + 1]) if 0 <= start < end else None
    if not isinstance(found, Mapping):
        raise InputError(f"the planner's reply has no plan: {reply[:200]!r}")
    steps = [str(step).strip() for step in found.get("steps") or [] if str(step).strip()]
    question = str(found.get("question") or "").strip()
    if not steps and not question:
        raise InputError(f"the planner's reply has neither steps nor a question: {reply[:200]!r}")
    return {**found, "steps": steps[:_MAX_PLANNED], "question": question}
