"""A model with fixed latency over HTTP, as a separate process, for `collection.py`.

    python benchmarks/collection_model.py --latency 0.2

Prints its URL and answers until standard input closes. For a task with "in N steps" it returns
N - 1 code actions that compute and print some text, then a `stop`. A reply depends only on the
prompt.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ck_pro.testing import ChatCall, FakeChatServer

_STEPS = re.compile(r"in (\d+) steps")
_SEEN = re.compile(r"Observation of step (\d+):")
PRINTED = 1000
"""Number of characters that each step prints."""


def step_reply(number: int, last: int, *, light: bool = False) -> str:
    """Return the reply of a step, with a usual amount of text and code.

    Args:
        number: of the step, starting at 0.
        last: number of the step that stops.
        light: return one line of cheap code.
    """
    if number >= last:
        return f"Thought: All is done.\n```python\nstop(output='{number}', log='counted')\n```"
    if light:
        return f"Thought: Step {number}.\n```python\nprint('step', {number})\n```"
    return (
        f"Thought: Step {number}. The list is extended by the next numbers, and its content "
        "is shown, so that the next step can continue from there. Nothing else is needed.\n"
        "```python\n"
        f"values = [((k * {number + 1}) % 1009) ** 2 for k in range(200)]\n"
        "table = {n: values.count(n) for n in values[:5]}\n"
        "total = sum(values)\n"
        f"print('step', {number}, 'total', total, len(table))\n"
        f"print(' '.join(str(v) for v in values)[:{PRINTED}])\n"
        "```"
    )


def reply(messages: Sequence[dict[str, Any]], *, light: bool = False) -> str:
    """Return the reply to a prompt of the agent loop; see `step_reply`."""
    texts = [str(m["content"]) for m in messages]
    steps = next((found for text in texts if (found := _STEPS.search(text))), None)
    if steps is None:
        return "OK"
    seen = _SEEN.findall(texts[-1])
    return step_reply(int(seen[-1]) + 1 if seen else 0, int(steps[1]) - 1, light=light)


class FixedLatency(FakeChatServer):
    """A server that returns `reply` after a fixed time.

    Args:
        latency: in seconds.
    """

    def __init__(self, latency: float):
        super().__init__()
        self.latency = latency

    def answer(self, call: ChatCall) -> str:
        """Return the reply after the latency."""
        end = time.monotonic() + self.latency
        text = reply(call.messages)
        self.closing.wait(max(0.0, end - time.monotonic()))
        return text


@contextmanager
def model_process(latency: float) -> Iterator[str]:
    """Run the model as a separate process; yields its URL."""
    command = [sys.executable, __file__, "--latency", str(latency)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per reply")
    options = parser.parse_args()
    with FixedLatency(options.latency) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
