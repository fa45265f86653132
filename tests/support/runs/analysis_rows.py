"""Small output rows for the tests of analyses and frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def step(observation: Any = "ok", *, code: str = "", tokens: int = 100, **action: Any) -> Any:
    """A step with one model call of `tokens` prompt and 10 completion tokens, for 0.001 USD."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 10, "cached_tokens": tokens // 2}
    return {
        "step_idx": 0,
        "action": {
            "thought": "a thought",
            "code": code or f"look({observation!r})",
            "observation": observation,
            "llm_input": [{"role": "user", "content": "a prompt"}],
            "llm_output": "a reply",
            "llm_info": {"model": "m", "usage": usage, "cost": 0.001},
            **action,
        },
    }


def session(
    steps: Iterable[Any] = (), *, agent: str = "ck_agent", output: str = "x", **info: Any
) -> dict[str, Any]:
    """A session that ended with an answer, unless `info` says otherwise."""
    steps = [{**s, "step_idx": n} for n, s in enumerate(steps or [step()])]
    facts = {"agent": agent, "status": "done", "stop_reason": "finished", "duration": 2.0}
    facts["final_results"] = {"output": output, "log": "a log"}
    key = f"{agent}-{len(steps)}-{output}-{info.get('key', '')}"
    return {"id": key, "task": "q", "info": {**facts, **info}, "steps": steps}


def row(
    task_id: str,
    score: float | None = 1,
    *,
    gold: str | None = "x",
    original: Mapping[str, Any] | None = None,
    made: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An output row."""
    found = made or session(output=gold if score == 1 and gold else "other", key=task_id)
    pred = found["info"]["final_results"]["output"]
    return {
        **{"id": task_id, "task": f"Question {task_id}?", "file": None, "answer": gold},
        **{"_orig": dict(original or {}), "skip_hard": False, "session": found},
        "eval": {"pred": pred, "gold": gold, "corr": score},
        **more,
    }


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path
