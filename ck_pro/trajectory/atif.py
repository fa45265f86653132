"""Whole runs as ATIF v1.8 trajectories (the Agent Trajectory Interchange Format of Harbor).

A try becomes one trajectory: the system prompt, the task, then one `agent` step per model call,
with the code as a tool call and what it printed as the observation. Sub-agents' sessions are
embedded in `subagent_trajectories` and referred to where they ran. New screenshots of a prompt
stand in a `user` step before the reply to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.chat import (
    Image,
    normal_messages,
    normal_tool_calls,
    text_of,
)
from ck_pro.trajectory.images import ImageFolder
from ck_pro.trajectory.tries import Try, agent_of, nested_sessions, session_key, status_of

SCHEMA = "ATIF-v1.8"
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens")


def trajectory_of(attempt: Try, folder: ImageFolder | None) -> dict[str, Any]:
    """A try as a trajectory.

    Args:
        attempt: the try.
        folder: where its images go; None leaves them out.

    Raises:
        MessageError: a prompt in it cannot be read.
        InputError: a reference in it leads nowhere (an error of ours).
    """
    made = _Trajectory(folder, attempt.session, ()).to_dict()
    made["session_id"] = str(attempt.session.get("id", ""))
    reward = {"reward": attempt.score} if attempt.score is not None else {}
    made["extra"] = {**made["extra"], "task_id": attempt.task_id, "try": attempt.number, **reward}
    check_references(made)
    return made


def check_references(trajectory: Mapping[str, Any]) -> None:
    """Return if every reference to a sub-agent's trajectory leads to one, at every depth.

    The format's own models check the ids' uniqueness only.

    Raises:
        InputError: one leads nowhere.
    """
    known = {t["trajectory_id"] for t in trajectory.get("subagent_trajectories", ())}
    for step in trajectory["steps"]:
        for result in step.get("observation", {}).get("results", ()):
            for ref in result.get("subagent_trajectory_ref", ()):
                if ref["trajectory_id"] not in known:
                    raise InputError(
                        f"step {step['step_id']} refers to the trajectory "
                        f"{ref['trajectory_id']}, which is not there"
                    )
    for nested in trajectory.get("subagent_trajectories", ()):
        check_references(nested)


class _Trajectory:
    """The trajectory of one session while it is made."""

    def __init__(
        self, folder: ImageFolder | None, session: Mapping[str, Any], above: tuple[str, ...]
    ):
        self.folder, self.session = folder, session
        self.path = (*above, agent_of(session, len(above)))
        self.steps: list[dict[str, Any]] = []
        self.nested: dict[bytes, dict[str, Any]] = {}
        self.shown: set[str] = set()
        self.model = ""

    def to_dict(self) -> dict[str, Any]:
        """The document; without the keys that only a try's own has."""
        for n, step in enumerate(self.session["steps"]):
            if not isinstance(step, Mapping):
                raise InputError(f"steps[{n}] of {'/'.join(self.path)} is no object")
            self.ck_step(n, step)
        if all(s["source"] == "system" for s in self.steps):
            self.task_step()
        agent = {"name": self.path[-1], "version": _version()}
        if self.model:
            agent["model_name"] = self.model
        out: dict[str, Any] = {
            "schema_version": SCHEMA,
            "trajectory_id": session_key(self.session).hex(),
            "agent": agent,
            "steps": [{"step_id": n, **step} for n, step in enumerate(self.steps, 1)],
            "final_metrics": self.totals(),
            "extra": {"status": status_of(self.session), "agent_path": "/".join(self.path)},
        }
        if self.nested:
            out["subagent_trajectories"] = list(self.nested.values())
        return out

    def ck_step(self, n: int, step: Mapping[str, Any]) -> None:
        """One of our steps: its calls in order, the action's with what came of it."""
        action = step.get("action") or {}
        tool_calls = [(str(c.get("phase")), c) for c in action.get("model_calls") or ()]
        for phase, part in (("plan", step.get("plan") or {}), ("action", action)):
            self.call(n, phase, part)
        self.outcome(n, action)
        for phase, part in (*tool_calls, ("end", step.get("end") or {})):
            self.call(n, phase, part)

    def call(self, n: int, phase: str, part: Mapping[str, Any]) -> None:
        """A model call as a step; none if the phase made none."""
        text, info = part.get("llm_output") or "", part.get("llm_info") or {}
        if not (text or info or (phase == "action" and part.get("code"))):
            return
        self.prompt(part.get("llm_input") or [])
        step: dict[str, Any] = {"source": "agent", "message": text or part.get("thought") or ""}
        if info.get("model"):
            self.model = self.model or str(info["model"])
            step["model_name"] = str(info["model"])
        if info.get("reasoning"):
            step["reasoning_content"] = str(info["reasoning"])
        calls = _tool_calls(n, phase, part, info)
        if calls:
            step["tool_calls"] = calls
        metrics = {k: info["usage"][k] for k in _USAGE if info.get("usage", {}).get(k)}
        if info.get("cost"):
            metrics["cost_usd"] = info["cost"]
        if metrics:
            step["metrics"] = metrics
        self.steps.append({**step, "extra": {"phase": phase, "step": n}})

    def prompt(self, given: Any) -> None:
        """What the agent saw before it replied: at first the system prompt and the task, later
        the screenshots that are new."""
        images: list[Image] = []
        messages = normal_messages(given, images)
        if not self.steps:
            system = [text_of(m) for m in messages if m["role"] == "system"]
            if system:
                self.steps.append({"source": "system", "message": "\n\n".join(system)})
            self.task_step()
        new = [i for i in images if i.url not in self.shown]
        self.shown.update(i.url for i in new)
        if new and self.folder is not None:
            sources = [{"media_type": i.media_type, "path": self.folder.put(i)} for i in new]
            parts = [{"type": "image", "source": s} for s in sources]
            self.steps.append({"source": "user", "message": parts})

    def task_step(self) -> None:
        """The task, as its person said it."""
        self.steps.append({"source": "user", "message": str(self.session.get("task", ""))})

    def outcome(self, n: int, action: Mapping[str, Any]) -> None:
        """What the action showed, and the sub-agents that ran in it, put to the last step."""
        seen = action.get("observation")
        refs = [self.reference(nested) for nested in nested_sessions(action)]
        if not seen and not refs:
            return
        extra = {"phase": "action", "step": n}
        if not self.steps:
            self.task_step()
        if self.steps[-1].get("extra") != extra:
            self.steps.append({"source": "agent", "message": "", "extra": extra})
        step = self.steps[-1]
        results = self.results(seen, [c["tool_call_id"] for c in step.get("tool_calls", ())])
        named = [r["trajectory_id"] for x in results for r in x.get("subagent_trajectory_ref", ())]
        unnamed = {r["trajectory_id"]: r for r in refs if r["trajectory_id"] not in named}
        if unnamed:
            first = results[0].get("subagent_trajectory_ref", [])
            results[0]["subagent_trajectory_ref"] = [*first, *unnamed.values()]
        step["observation"] = {"results": results}

    def results(self, seen: Any, ids: Sequence[str]) -> list[dict[str, Any]]:
        """One result per tool call where there are as many, else one for all."""
        if not (isinstance(seen, list) and len(seen) == len(ids) > 1):
            source = {"source_call_id": ids[0]} if ids else {}
            return [{**source, "content": _shown(seen)}]
        out: list[dict[str, Any]] = []
        for entry, call_id in zip(seen, ids, strict=True):
            out.append({"source_call_id": call_id, "content": _shown(entry)})
            refs = [self.reference(s) for s in nested_sessions({"observation": entry})]
            if refs:
                out[-1]["subagent_trajectory_ref"] = refs
        return out

    def reference(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """A reference to a nested session, which is embedded when it is new."""
        key = session_key(session)
        if key not in self.nested:
            self.nested[key] = _Trajectory(self.folder, session, self.path).to_dict()
        ref = {"trajectory_id": key.hex()}
        return {**ref, "session_id": str(session["id"])} if session.get("id") else ref

    def totals(self) -> dict[str, Any]:
        """Tokens and money of this trajectory's own steps."""
        metrics = [s["metrics"] for s in self.steps if "metrics" in s]
        out: dict[str, Any] = {"total_steps": len(self.steps)}
        for key in _USAGE:
            out[f"total_{key}"] = sum(m.get(key, 0) for m in metrics)
        out["total_cost_usd"] = sum(m.get("cost_usd", 0.0) for m in metrics)
        return out


def _tool_calls(
    n: int, phase: str, part: Mapping[str, Any], info: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if phase != "action":
        return []
    if info.get("tool_calls"):
        bodies = [c["function"] for c in normal_tool_calls(info["tool_calls"])]
    elif part.get("code"):
        bodies = [{"name": "python", "arguments": {"code": str(part["code"])}}]
    else:
        return []
    return [
        {"tool_call_id": f"{n}.{k}", "function_name": b["name"], "arguments": b["arguments"]}
        for k, b in enumerate(bodies)
    ]


def _shown(seen: Any) -> str:
    """An observation as text, sub-agents' results as the calling model saw them."""
    if isinstance(seen, list):
        return "\n".join(_shown(s) for s in seen)
    if isinstance(seen, Mapping):
        kept = {k: seen[k] for k in ("output", "log") if k in seen}
        return str(seen.get("repr") or json.dumps(kept, ensure_ascii=False, default=str))
    return "" if seen is None else str(seen)


def _version() -> str:
    try:
        return version("ck-pro")
    except PackageNotFoundError:  # run from a source tree
        return "0"
