"""The browser steps of a run as pictures with targets and captions. Pure, except for the reader."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ck_main.sharing.masking import SharedSecrets
from ck_main.viewer.runs.outline import SessionOutline, mapping_of, number_of, text_of
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.step_view import blob_name, image_url
from ck_pro.command_line import without_controls
from ck_pro.events import EventKind
from ck_pro.trajectory.reading.big_json import is_list

CAPTION_CHARS = 220
Box = tuple[float, float, float, float]
"""x, y, width and height."""


@dataclass(frozen=True)
class Frame:
    """One picture.

    Attributes:
        image: the encoded image.
        width, height: what it shows, in the units of `targets`; 0 if unknown.
        targets: what the action acts on; points have no size.
        step: index of the session's step, as in the journal.
        agent: the session's agent.
        caption: what happens, in one line.
        url: of the page.
        failed: whether the action failed.
        acts: whether an action follows.
        last: whether it shows what the last action of the run led to.
        time: Unix seconds, for the order.
    """

    image: bytes
    width: float
    height: float
    targets: tuple[Box, ...]
    step: int
    agent: str
    caption: str
    url: str
    failed: bool = False
    acts: bool = False
    last: bool = False
    time: float = 0.0


def frames_of(reader: RunReader) -> list[Frame]:
    """Return the pictures of a run in order; empty if it has none.

    Step pictures come first. A run without them may have the screens of a computer agent. Secrets
    of the environment are masked in the texts.
    """
    for kind in (EventKind.PICTURE, EventKind.SCREEN):
        frames = sorted(_frames(reader, kind), key=lambda frame: frame.time)
        if frames:
            return _without_repeats(frames)
    return []


def with_answer(frames: list[Frame], answer: str) -> list[Frame]:
    """Add a frame with the run's answer, over its last picture."""
    if not frames or not answer:
        return frames
    caption = one_line(SharedSecrets().text(f"Answer: {answer}"))
    end = replace(frames[-1], caption=caption, targets=(), failed=False, acts=False)
    return [*(frames[:-1] if frames[-1].last else frames), end]


def one_line(text: str) -> str:
    """Return text as one line of limited length, without control characters."""
    line = without_controls(" ".join(text[: 4 * CAPTION_CHARS].split()))
    return line if len(line) <= CAPTION_CHARS else line[: CAPTION_CHARS - 1] + "…"


def _frames(reader: RunReader, kind: EventKind) -> Iterator[Frame]:
    secrets = SharedSecrets()
    for session, step in reader.outline.all_steps():
        if not step.picture:
            continue
        events = reader.events(session.sid, step.i)
        calls = {
            n: mapping_of(event.get("data"))
            for event in events
            if event.get("kind") in (EventKind.STARTED, EventKind.CALL)
            and isinstance(n := mapping_of(event.get("data")).get("call"), int)
        }
        acted = False
        for event in events:
            if event.get("kind") == kind:
                frame = _frame(reader, session, step.i, event, calls, step.title, secrets)
                if frame is not None and acted and not frame.acts:
                    frame = replace(frame, caption="", last=True)
                if frame is not None:
                    yield frame
                    acted = acted or frame.acts


def _frame(
    reader: RunReader,
    session: SessionOutline,
    i: int,
    event: Mapping[str, Any],
    calls: Mapping[int, Mapping[str, Any]],
    title: str,
    secrets: SharedSecrets,
) -> Frame | None:
    data = mapping_of(event.get("data"))
    image = _image(reader, data.get("image"))
    if not image:
        return None
    number = data.get("call")
    call = calls.get(number) if isinstance(number, int) else None
    caption, failed = title, False
    if call is not None:
        failed = "error" in call
        name = text_of(call.get("name"))
        caption = text_of(call.get("error") if failed else call.get("value")) or name
    elif event.get("kind") == EventKind.SCREEN:
        caption = text_of(data.get("text")) or title
    targets = data.get("targets")
    boxes = [_box(value) for value in targets] if is_list(targets) else []
    return Frame(
        image=image,
        width=number_of(data.get("width")) or 0.0,
        height=number_of(data.get("height")) or 0.0,
        targets=tuple(box for box in boxes if box is not None),
        step=i,
        agent=one_line(session.agent),
        caption=one_line(secrets.text(caption)),
        url=one_line(secrets.text(text_of(data.get("url") or data.get("current_url")))),
        failed=failed,
        acts=call is not None,
        time=number_of(event.get("time")) or 0.0,
    )


def _image(reader: RunReader, value: Any) -> bytes:
    """Return the bytes of an image, from a reference or a data URL; empty if it is missing."""
    name = blob_name(value)
    if name is not None:
        return reader.blob(name) or b""
    url = image_url(value)
    try:
        return base64.b64decode(url.partition(",")[2]) if url else b""
    except binascii.Error:
        return b""


def _box(value: Any) -> Box | None:
    """Return a box of four numbers; None for anything else."""
    if not (is_list(value) and len(value) == 4):
        return None
    x, y, width, height = map(number_of, value)
    if x is None or y is None or width is None or height is None:
        return None
    return x, y, max(0.0, width), max(0.0, height)


def _without_repeats(frames: list[Frame]) -> list[Frame]:
    """Leave out the pictures that show the same page as the picture after them, without action."""
    pairs = zip(frames, [*frames[1:], None], strict=True)
    return [f for f, after in pairs if after is None or f.acts or f.image != after.image]
