"""Choose options of native `select` elements, and values of a field's own suggestions."""

from __future__ import annotations

from web_server.actions.pointer import label
from web_server.errors import Conflict
from web_server.observe.target import ElementGone, Target
from web_server.quoting import quoted
from web_server.session.page_handle import PageHandle


async def choose(target: Target, labels: list[str]) -> str | None:
    """Choose options of a native select by label or value.

    Returns:
        what was selected, or None if the element is not a native select.

    Raises:
        Conflict: there is no such option, or it cannot be chosen.
    """
    result = await target.call("chooseOptions", labels)
    kind = result["kind"]
    if kind == "none":
        return None
    if kind == "missing":
        missing, available = _listed(result["missing"]), _listed(result["labels"])
        raise Conflict(f"{label(target)} has no option {missing}; it has {available}")
    if kind == "disabled":
        raise Conflict(f"{label(target)} is disabled: it cannot be acted on")
    if kind == "off":
        raise Conflict(f"the option {quoted(result['label'])} is disabled")
    if kind == "single":
        raise Conflict(f"{label(target)} takes exactly one option")
    done = f"selected {_listed(result['labels'])}"
    if kind == "otherwise":
        now = _listed(result["now"]) or "nothing"
        done += f", which the page changed to {now},"
    return done


async def choose_visibly(page_handle: PageHandle, target: Target, labels: list[str]) -> str | None:
    """Choose options as `choose`; where the page shows a substitute, report what it chose instead.

    Raises:
        Conflict: see `choose`.
    """
    done = await choose(target, labels)
    if done is None or (target.in_viewport and not target.covered_by and not target.passes):
        return done
    try:
        chosen = await target.call("chosenLabels")
        await page_handle.settler.settle()
        now = await target.call("chosenLabels")
    except ElementGone:
        return done
    if now != chosen:
        done += f", which the page changed to {_listed(now) or 'nothing'} then,"
    return done


def _listed(labels: list[str]) -> str:
    return ", ".join(quoted(each) for each in labels)


async def suggested_value(target: Target, text: str) -> str | None:
    """Return the value that a field's `datalist` has under a label; None without one."""
    value: str | None = await target.call("suggestedValue", text)
    return value
