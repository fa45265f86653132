"""`MultiStepAgent`: the loop, its prompts, and an agent as a function of another one.

May import every room of `ck_pro` except `trajectory` and `testing`.
Other packages use `MultiStepAgent`, `AgentResult`, `ActionResult` and `Stepper`.
"""

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.run.results import ActionResult, AgentResult

__all__ = ["ActionResult", "AgentResult", "MultiStepAgent"]
