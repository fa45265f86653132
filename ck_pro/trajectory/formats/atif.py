"""Whole runs as ATIF v1.8 trajectories (the Agent Trajectory Interchange Format of Harbor).

A try becomes one trajectory: the system prompt, the task, then one `agent` step per model call. The
code is a tool call, and its output is the observation. The sessions of sub-agents are embedded in
`subagent_trajectories`; steps refer to them. New screenshots of a prompt are in a `user` step
before the reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.session.observed import join_entries
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.images import ImageFolder
from ck_pro.trajectory.formats.layout import Layout
from ck_pro.trajectory.reading.attempts import (
    Try,
    agent_of,
    nested_sessions,
    session_key,
    status_of,
)
from ck_pro.trajectory.reading.big_json import Pairs, is_list, plain
from ck_pro.trajectory.reading.messages import (
    Image,
    hash_of,
    normal_messages,
    normal_tool_calls,
    text_of,
)
from ck_pro.version import __version__

SCHEMA = "ATIF-v1.8"
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens")


def trajectory_of(attempt: Try, folder: ImageFolder | None) -> Pairs:
    """Return a try as a trajectory for `json_pieces`, which generates it while it is written.

    Steps are read one by one, so a long run need not fit in memory. The trajectories of sub-agents
    come after the steps of their caller.

    Args:
        attempt: the try.
        folder: stores the images; None drops them.

    Raises (while the trajectory is written):
        MessageError: a prompt cannot be read.
        InputError: the try does not match the schema.
    """
    score = {"reward": attempt.score} if attempt.score is not None else {}
    extra = {"task_id": attempt.task_id, "try": attempt.number, **score}
    return Pairs(_Trajectory(folder, attempt.session, ()).pairs(extra))


class _Trajectory:
    """Generates the trajectory of one session."""

    def __init__(
        self, folder: ImageFolder | None, session: Mapping[str, Any], above: tuple[str, ...]
    ):
        self.folder, self.session = folder, session
        self.path = (*above, agent_of(session, len(above)))
        self.has_task = False
        self.steps: list[dict[str, Any]] = []
        """Finished steps; the last may still lack its observation."""
        self.nested: dict[bytes, int] = {}
        """Sub-agents' sessions by key, with the index of the first step that contains them."""
        self.known_images: set[bytes] = set()
        self.model = ""
        self.totals = {"total_steps": 0, **{f"total_{k}": 0 for k in _USAGE}, "total_cost_usd": 0.0}

    def pairs(self, extra: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values of the document.

        Args:
            extra: facts about the try; empty for a sub-agent.
        """
        yield "schema_version", SCHEMA
        yield "trajectory_id", session_key(self.session).hex()
        if extra:
            yield "session_id", str(self.session.get("id") or "")
        yield "steps", self.all_steps()
        agent = {"name": self.path[-1], "version": __version__}
        yield "agent", {**agent, "model_name": self.model} if self.model else agent
        yield "final_metrics", self.totals
        facts = {"status": status_of(self.session), "agent_path": "/".join(self.path)}
        yield "extra", {**facts, **extra}
        if self.nested:
            yield "subagent_trajectories", self.sub_trajectories()

    def sub_trajectories(self) -> Iterator[Pairs]:
        """Yield the sub-agents' trajectories; each is generated after the previous is written."""
        for key, n in self.nested.items():
            action = self.session["steps"][n].get("action") or {}  # read again, to save memory
            session = next(s for s in nested_sessions(action) if session_key(s) == key)
            yield Pairs(_Trajectory(self.folder, session, self.path).pairs({}))

    def all_steps(self) -> Iterator[dict[str, Any]]:
        """Yield all steps with their numbers."""
        for n, step in enumerate(self.session["steps"]):
            if not isinstance(step, Mapping):
                raise InputError(f"steps[{n}] of {'/'.join(self.path)} is not an object")
            self.add_step(n, step)
            yield from self.numbered()
        if not self.has_task:
            self.add_task()
            yield from self.numbered()

    def numbered(self) -> Iterator[dict[str, Any]]:
        """Yield the steps since the last call with their numbers, and add up their metrics."""
        for step in self.steps:
            self.totals["total_steps"] += 1
            metrics = step.get("metrics", {})
            for key in _USAGE:
                self.totals[f"total_{key}"] += metrics.get(key, 0)
            self.totals["total_cost_usd"] += metrics.get("cost_usd", 0.0)
            yield {"step_id": self.totals["total_steps"], **step}
        self.steps = []

    def add_step(self, n: int, step: Mapping[str, Any]) -> None:
        """Add the model calls of a row's step in order, and the observation of its action."""
        action = step.get("action") or {}
        tool_calls = [(str(c.get("phase")), c) for c in action.get("model_calls") or ()]
        for phase, part in (("plan", step.get("plan") or {}), ("action", action)):
            self.add_call(n, phase, part)
        self.add_observation(n, action)
        end = step.get("end") or {}
        ends = [("end", part) for part in (*(end.get("model_calls") or ()), end)]
        for phase, part in (*tool_calls, *ends):
            self.add_call(n, phase, part)

    def add_call(self, n: int, phase: str, part: Mapping[str, Any]) -> None:
        """Add a step for the model call of a phase, if it made one."""
        text, info = part.get("llm_output") or "", plain(part.get("llm_info") or {})
        if not (text or info or (phase == "action" and part.get("code"))):
            return
        self.add_prompt(part.get("llm_input") or [])
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

    def add_prompt(self, prompt: Any) -> None:
        """Add steps for the prompt: first the system prompt and the task, later new screenshots."""
        images: list[Image] = []
        messages = normal_messages(prompt, images)
        if not self.has_task:
            system = [text_of(m) for m in messages if m["role"] == "system"]
            if system:
                self.steps.append({"source": "system", "message": "\n\n".join(system)})
            self.add_task()
        new = [i for i in images if hash_of(i.url) not in self.known_images]
        self.known_images.update(hash_of(i.url) for i in new)
        if new and self.folder is not None:
            sources = [{"media_type": i.media_type, "path": self.folder.put(i)} for i in new]
            parts = [{"type": "image", "source": s} for s in sources]
            self.steps.append({"source": "user", "message": parts})

    def add_task(self) -> None:
        """Add the user's task."""
        self.has_task = True
        self.steps.append({"source": "user", "message": str(self.session.get("task") or "")})

    def add_observation(self, n: int, action: Mapping[str, Any]) -> None:
        """Add the observation of an action and its sub-agents to the last step."""
        observation = action.get("observation")
        refs = [self.reference(n, nested) for nested in nested_sessions(action)]
        if not observation and not refs:
            return
        extra = {"phase": "action", "step": n}
        if not self.has_task:
            self.add_task()
        if not self.steps or self.steps[-1].get("extra") != extra:
            self.steps.append({"source": "agent", "message": "", "extra": extra})
        step = self.steps[-1]
        results = self.results(
            n, observation, [c["tool_call_id"] for c in step.get("tool_calls", ())]
        )
        named = [r["trajectory_id"] for x in results for r in x.get("subagent_trajectory_ref", ())]
        unnamed = {r["trajectory_id"]: r for r in refs if r["trajectory_id"] not in named}
        if unnamed:
            first = results[0].get("subagent_trajectory_ref", [])
            results[0]["subagent_trajectory_ref"] = [*first, *unnamed.values()]
        step["observation"] = {"results": results}

    def results(self, n: int, observation: Any, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return one result per tool call if their numbers match, else one result for all."""
        if not (is_list(observation) and len(observation) == len(ids) > 1):
            source = {"source_call_id": ids[0]} if ids else {}
            return [{**source, "content": _observation_text(observation)}]
        out: list[dict[str, Any]] = []
        for entry, call_id in zip(observation, ids, strict=True):
            out.append({"source_call_id": call_id, "content": _observation_text(entry)})
            refs = [self.reference(n, s) for s in nested_sessions({"observation": entry})]
            if refs:
                out[-1]["subagent_trajectory_ref"] = refs
        return out

    def reference(self, n: int, session: Mapping[str, Any]) -> dict[str, Any]:
        """Return a reference to a nested session, which is embedded once, after the steps."""
        key = session_key(session)
        self.nested.setdefault(key, n)
        ref = {"trajectory_id": key.hex()}
        return {**ref, "session_id": str(session["id"])} if session.get("id") else ref


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


def _observation_text(observation: Any) -> str:
    """Return an observation as the calling model saw it."""
    if is_list(observation):
        return join_entries(observation, _observation_text)
    if isinstance(observation, Mapping):
        kept = {k: plain(observation[k]) for k in ("output", "log") if k in observation}
        return str(observation.get("repr") or json.dumps(kept, ensure_ascii=False, default=str))
    return "" if observation is None else str(observation)


def atif_row(attempt: Try, layout: Layout) -> Pairs:
    """Return a try as a trajectory; see `trajectory_of`."""
    return trajectory_of(attempt, None if layout.images == "drop" else layout.folder)


FORMAT = ExportFormat(
    name="atif",
    help="Harbor's ATIF v1.8, a trajectory per run: OUTPUT is a folder, or JSON lines if it ends "
    "in .jsonl",
    trainer="Harbor",
    row="ATIF v1.8, a trajectory per run",
    images="paths",
    run_row=atif_row,
    reasoning=("drop",),
    one_file_per_row=True,
)
