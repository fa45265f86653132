"""Runs model-written Python in a separate process that is isolated and can be killed.

```python
with CodeExecutor(functions={"search": search, "stop": stop}, terminal={"stop"}) as executor:
    result = executor.run("print(search('weather in Oslo'))", timeout=5)
    result.output, result.value, result.error
```

`docs/security.md` describes what the layers of isolation contain, and what they do not.

May import: `exceptions` and `threads`. Other rooms use the names below, and `extract` for the code
in a reply.
"""

from ck_pro.executor.calls.step_calls import CallFlag, current_call, outside_calls
from ck_pro.executor.core import WALL_SECONDS, CodeExecutor
from ck_pro.executor.folder_removal import remove_folder
from ck_pro.executor.results import CallLine, CodeError, CodeResult, LocalCall

__all__ = [
    "WALL_SECONDS",
    "CallFlag",
    "CallLine",
    "CodeError",
    "CodeExecutor",
    "CodeResult",
    "LocalCall",
    "current_call",
    "outside_calls",
    "remove_folder",
]
