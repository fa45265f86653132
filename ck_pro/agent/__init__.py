"""`MultiStepAgent`: the loop, its settings and prompts, and an agent as a function.

May import every room of `ck_pro` except `trajectory` and `testing`.
Other packages use `MultiStepAgent`, `AgentResult`, `ActionResult` and `Stepper`.
"""

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.run.results import ActionResult, AgentResult

__all__ = ["ActionResult", "AgentResult", "MultiStepAgent"]
