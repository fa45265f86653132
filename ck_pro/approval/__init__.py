"""Approval of actions: approvers decide, and the `Guard` enforces their decisions.

May import: the rooms above `approval` in `ck_pro`.
Other rooms use the names below, and those of `approval.questions`.
"""

from ck_pro.approval.approvers import (
    CallbackApprover,
    DenyAllApprover,
    TerminalApprover,
    approver_of,
    setting_of,
)
from ck_pro.approval.guard import (
    ActionRejected,
    Approver,
    AutoApprover,
    Decision,
    Guard,
    MaskingApprover,
    RuleApprover,
    describe,
    needs_review,
    require_approval,
    review,
    safety_checks,
)
from ck_pro.approval.policy import PolicyApprover, PolicyRule

__all__ = [
    "ActionRejected",
    "Approver",
    "AutoApprover",
    "CallbackApprover",
    "Decision",
    "DenyAllApprover",
    "Guard",
    "MaskingApprover",
    "PolicyApprover",
    "PolicyRule",
    "RuleApprover",
    "TerminalApprover",
    "approver_of",
    "describe",
    "needs_review",
    "require_approval",
    "review",
    "safety_checks",
    "setting_of",
]
