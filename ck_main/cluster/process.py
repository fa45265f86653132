"""What processes on a Ray cluster have in common: answers, errors that travel, and their end."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, cast

from ck_pro.exceptions import CKError

_LOOK_SECONDS = 1.0
_WATCH = "ck-parent-watch"


def answer(reference: Any) -> Any:
    """The value of a Ray reference; an error of ours is raised as it was there."""
    import ray
    from ray.exceptions import RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as e:
        if isinstance(e.cause, CKError):
            raise e.cause from None
        raise


def sendable(error: CKError) -> CKError:
    """An error that can be sent between processes, whatever it carries."""
    for kind in type(error).__mro__:
        try:
            return cast(CKError, kind(str(error)))
        except TypeError:
            continue
    return CKError(str(error))


def only_on(node: str) -> Any:
    """Where an actor or a task of Ray runs: on this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def end_with_parent() -> None:
    """From now on this process ends soon after the one that started it: its node's Ray.

    Ray's own look for that (its driver was killed) may take minutes where much else runs, in which
    the next run would find tasks locked and a browser server too many.
    """
    if not any(thread.name == _WATCH for thread in threading.enumerate()):
        watch = threading.Thread(target=_end_with, args=(os.getppid(),), name=_WATCH, daemon=True)
        watch.start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
