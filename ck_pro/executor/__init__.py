"""Runs model-written Python in a worker process of its own: isolated, and killed when told.

```python
with CodeExecutor(functions={"search": search, "stop": stop}, terminal={"stop"}) as executor:
    result = executor.run("print(search('weather in Oslo'))", timeout=5)
    result.output, result.value, result.error
```
`docs/security.md` says what is contained, by which layer, and what is not.
"""

from ck_pro.executor.core import WALL_SECONDS, CodeExecutor
from ck_pro.executor.folder_removal import remove_folder
from ck_pro.executor.function_calls import CallFlag, current_call
from ck_pro.executor.results import CodeError, CodeResult, LocalCall

__all__ = [
    "WALL_SECONDS",
    "CallFlag",
    "CodeError",
    "CodeExecutor",
    "CodeResult",
    "LocalCall",
    "current_call",
    "remove_folder",
]
