"""Prompts about a try that ended, and parsers for the replies: judge an answer, give advice.

`ck_pro.run.sampling` has the prompt that chooses among tries. Only the judge sees the right
answer; it never reaches the advice for the next try.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ck_pro.exceptions import ParseError
from ck_pro.run.sampling import Messages, fenced_prompt, shortened
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

JUDGE, REFLECT = "tool:judge", "tool:reflect"
"""Phases of the model calls; sessions count them as `judge` and `reflect`."""

_ANSWER_CHARS = 4000
_STEP_CHARS = 600
_STEPS = 12
_VERDICT = re.compile(r"verdict\W{0,8}(right|wrong)\b", re.IGNORECASE)


def judge_messages(question: str, answer: str, log: str, gold: str | None) -> Messages:
    """Build the prompt that asks whether an answer is right.

    Args:
        question: the task.
        answer: answer of the agent.
        log: the agent's report on how it found the answer.
        gold: the right answer; None if unknown.
    """
    if gold is None:
        rules = (
            "You check answers of an agent. The right answer is not known. Say that an answer is "
            "right only if it answers exactly what the task asks for, in the form that it asks "
            "for, and the agent's report gives good reason to believe it."
        )
    else:
        rules = (
            "You check answers of an agent against the right answer. An answer is right if it "
            "says the same, however it is worded: other units, formats or additional correct "
            "words do not matter, another number or name does."
        )
    ending = "Write one or two sentences of reason, then a last line: 'Verdict: right' or "
    facts = [("Task", question), ("Answer of the agent", answer)]
    facts.append(("Its report", log) if gold is None else ("Right answer", gold))
    return fenced_prompt(f"{rules}\n{ending}'Verdict: wrong'.", facts)


def parse_verdict(reply: str) -> tuple[bool, str]:
    """Parse the judge's reply into (is right, reason); raise ParseError without a verdict."""
    found = list(_VERDICT.finditer(reply))
    if not found:
        raise ParseError("the judge's reply has no line 'Verdict: right' or 'Verdict: wrong'")
    return found[-1][1].casefold() == "right", reply[: found[-1].start()].strip(" *_`\n")


def reflect_messages(question: str, steps: Sequence[Step], said: str) -> Messages:
    """Build the prompt that asks for advice for the next try.

    Args:
        question: the task.
        steps: steps of the failed try's session.
        said: how the try ended.
    """
    rules = (
        "An agent that solves tasks by writing Python failed at a task, and will try again without "
        "remembering anything. From what it did, find out where it went wrong, and advise it: what "
        "to do otherwise, what it found out that is certain, what to check before it answers. At "
        "most 150 words, addressed to the agent. Do not guess the answer."
    )
    return fenced_prompt(
        rules, [("Task", question), ("What it did", _story(steps)), ("Its end", said)]
    )


def with_advice(question: str, failed: Sequence[tuple[str, str]]) -> str:
    """Build the question for the next try.

    Args:
        question: the task.
        failed: answer and advice of each earlier try.
    """
    if not any(advice for _, advice in failed):
        return question
    lines = ["", "", "Earlier tries at this task failed. What they tell:"]
    for number, (answer, advice) in enumerate(failed, 1):
        gave = f"it answered {shortened(answer, 200)!r}, which is wrong" if answer else "no answer"
        lines.append(f"{number}. ({gave}) {' '.join(advice.split())}".rstrip())  # on one line
    return question + "\n".join(lines)


def _story(steps: Sequence[Step]) -> str:
    """Format the last steps of a session: thought, code and observation, each truncated."""
    lines = [f"({len(steps) - _STEPS} steps before)"] if len(steps) > _STEPS else []
    for step in steps[-_STEPS:]:
        action = step["action"]
        parts = (action["thought"], action["code"], observation_text(action["observation"]))
        shown = "\n".join(shortened(p, _STEP_CHARS) for p in parts if p)
        lines.append(f"Step {step['step_idx']}:\n{shown}")
    return "\n".join(lines)[-_ANSWER_CHARS * 4 :]
