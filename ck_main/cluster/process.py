"""Helpers for processes on a Ray cluster: results, errors, and the end of a node's processes."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, cast

from ck_pro.exceptions import CKError

_POLL_SECONDS = 1.0
_WATCH = "ck-parent-watch"


def result_of(reference: Any) -> Any:
    """Return the value of a Ray reference; raise a `CKError` of the remote code as it is."""
    import ray
    from ray.exceptions import RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as e:
        if isinstance(e.cause, CKError):
            raise e.cause from None
        raise


def sendable(error: CKError) -> CKError:
    """Return a copy of an error that can be pickled, of the same class if possible."""
    for kind in type(error).__mro__:
        try:
            return cast(CKError, kind(str(error)))
        except TypeError:
            continue
    return CKError(str(error))


def only_on(node: str) -> Any:
    """Return the scheduling strategy that pins an actor or task to a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def end_with_parent() -> None:
    """End this process soon after its parent, the node's Ray, has ended.

    On a busy machine Ray may take minutes to notice that its driver was killed. Until then the
    next run would find locked tasks and an orphaned browser server.
    """
    if not any(thread.name == _WATCH for thread in threading.enumerate()):
        watch = threading.Thread(target=_end_with, args=(os.getppid(),), name=_WATCH, daemon=True)
        watch.start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
