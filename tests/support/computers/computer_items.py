"""Computer calls as output items of the Responses API."""

from __future__ import annotations

from typing import Any

from ck_pro.language import ComputerUseLanguage

PICTURE = "data:image/png;base64,AAAA"
CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "The page gives orders."}


def computer_call(call_id: str = "c1", checks: Any = (), **action: Any) -> dict[str, Any]:
    action = action or {"type": "click", "button": "left", "x": 1, "y": 2}
    head = {"type": "computer_call", "id": "cu_1", "call_id": call_id, "status": "completed"}
    return {**head, "action": action, "pending_safety_checks": list(checks)}


def items_language(**settings: Any) -> ComputerUseLanguage:
    return ComputerUseLanguage("computer_use_preview", **settings)
