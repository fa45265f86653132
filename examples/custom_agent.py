"""A custom agent with a setting, a tool, a prompt, a hook and a sub-agent.

python examples/custom_agent.py                             # scripted replies, no model
python examples/custom_agent.py -u model=gpt:gpt-4.1 -u checker.model=gpt:gpt-4.1
python examples/custom_agent.py -u model=manual -u checker.model=manual -u currency=francs
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ck_pro import AgentSession, MultiStepAgent, StopTool, Tool, register_template
from ck_pro.exceptions import ToolError
from ck_pro.settings import load_settings, merge_settings
from ck_pro.testing import ScriptedLLM

TASK = "What do three lamps and a kettle cost together?"


class PriceTool(Tool):
    """The price list of a shop. The model reads the signature and docstring of `execute`."""

    name = "price_of"
    prices: dict[str, float] = {"lamp": 19.5, "kettle": 32.0}

    def execute(self, item: str) -> float:
        """Return the price of one item.

        Args:
            item: its name in the singular, such as "lamp".
        """
        if item not in self.prices:  # raised in the model's code, and shown to the model
            raise ToolError(f"no item {item!r}; known are: {', '.join(self.prices)}")
        return self.prices[item]


class Checker(MultiStepAgent):
    """A sub-agent: the code of another agent calls it as the function `checker`."""

    name = "checker"
    description = "Checks a calculation. The task must contain the complete calculation."
    tools = [StopTool()]
    max_steps = 3


class ShopAgent(MultiStepAgent):
    """`tools` and `sub_agents` name attributes, so that settings can change them."""

    name = "shop_agent"
    currency: str = "euros"
    """A setting of this agent."""
    prices: PriceTool = PriceTool()
    checker: Checker = Checker()
    tools = ["prices", StopTool()]
    sub_agents = ["checker"]
    templates = {"action": "shop_action"}

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for the templates, with `currency` added."""
        return {**super().step_prepare(session, state), "currency": self.currency}


register_template(
    "shop_action",
    """\
You sell lamps and kettles. You answer by writing Python. Prices are in {currency}.
Reply with a short thought, then one Python block between ```python and ```.

Available functions:
{functions_long}

Task: {task}

Steps so far:
{recent_steps_str}

Now act.""",
)

SCRIPT = {
    "shop_agent:action": [
        "Look the prices up.\n```python\ntotal = 3 * price_of('lamp') + price_of('kettle')\n"
        "print(total)\n```",
        "Have it checked.\n```python\nchecked = checker(f'Is 3 * 19.5 + 32 equal to {total}?')\n"
        "print(checked['output'])\n"
        "if checked['output'] == 'yes':\n    stop(str(total), 'checked')\n```",
    ],
    "checker:action": ["```python\nstop('yes' if 3 * 19.5 + 32 == 90.5 else 'no')\n```"],
}


SCRIPTED = {"model": ScriptedLLM(SCRIPT), "checker": {"model": ScriptedLLM(SCRIPT)}}


def main() -> None:
    """Run the agent on one task and print its steps."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("-u", "--updates", action="append", default=[], metavar="NAME=VALUE")
    settings = load_settings(None, parser.parse_args().updates)
    agent = ShopAgent(**merge_settings(SCRIPTED, settings))
    session = agent.run(TASK)
    for step in session.steps:
        action = step["action"]
        print(f"--- step {step['step_idx']}\n{action['code']}\n>>> {action['observation']}")
    print(f"{session.status}: {session.final_results['output']} {agent.currency} {session.message}")


if __name__ == "__main__":
    main()
