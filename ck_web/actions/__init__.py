"""Action strings: the grammar between the web agent's functions and `WebEnv`. Pure.

May import: `page`, `ck_pro` and `web_server.contract`.
`PREDEFINED_WEB_ACTIONS`, `FURTHER_WEB_ACTIONS` and `parse_action` are used elsewhere.
"""

from ck_web.actions.grammar import FURTHER_WEB_ACTIONS, PREDEFINED_WEB_ACTIONS, parse_action

__all__ = ["FURTHER_WEB_ACTIONS", "PREDEFINED_WEB_ACTIONS", "parse_action"]
