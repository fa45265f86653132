"""Actions on a page: a handler for each `actionName`, declared by `@action`.

May import: `session` and the rooms above it.
`operations` uses `find_action`, `check_reach` and `reach_of`.
"""

from web_server.actions import (  # noqa: F401 - importing them registers the actions
    field_actions,
    mouse_actions,
    page_actions,
)
from web_server.actions.content import field_content, page_content  # noqa: F401
