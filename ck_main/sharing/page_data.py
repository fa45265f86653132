"""The data of a shared page: the answers of the viewer's server about one run."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ck_main.sharing.masking import SharedSecrets
from ck_main.viewer.runs.outline import ModelCall, mapping_of, text_of
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.run_view import run_json
from ck_main.viewer.runs.step_view import call_facts, message_json, message_size, step_json
from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.messages import MEDIA_TYPES
from ck_pro.version import __version__

_PRIVATE = ("lease", "journal")
"""Facts of a run that another person cannot use: keys of its browser, paths of this machine."""
_BLOB = re.compile(r"[0-9a-f]{64}\.([a-z0-9]+)")
_UNQUOTED = "!'()*-._~"  # as the page's encodeURIComponent
_IMAGE_KEYS = ("picture", "image")


class TooLarge(InputError):
    """The page would exceed its limit."""


class PageData:
    """Collects the answers of one run.

    Args:
        reader: the run.
        key: its key in the paths of the answers.
        task_id: id of its task, if the run does not have it.
        limit: maximum bytes of the data.
        prompts: whether to include the prompts and replies of model calls.
        labels: the labels of the run by their place, as the server answers them; None for none.

    Raises:
        TooLarge: the data would exceed the limit.
    """

    def __init__(
        self,
        reader: RunReader,
        key: str,
        *,
        task_id: str,
        limit: int,
        prompts: bool = True,
        labels: Mapping[str, Any] | None = None,
    ):
        self._reader, self._path, self._limit = reader, f"/api/run/{key}", limit
        self._secrets = SharedSecrets()
        self._responses: dict[str, Any] = {}
        self._messages: dict[str, int] = {}
        self._sizes: list[int] = []  # characters of each message
        self._numbers: dict[ModelCall, list[int]] = {}  # of the last call of each session and phase
        self._size = 0
        outline = {k: v for k, v in run_json(reader).items() if k not in _PRIVATE}
        alone = {"key": key, "try": "1", "score": outline.get("score")}
        facts = {"key": key, "source": 0, "try": "1", "live": False, "tries": [alone]}
        self.title = text_of(outline.get("id")) or task_id
        self._add("/api/info", {"sources": [], "version": __version__, "live": False})
        self._add(self._path, {**outline, **facts, "id": self.title, "journal": None})
        if labels is not None:
            self._add(f"/api/labels/{key}", without_names(labels))
        for session, step in reader.outline.all_steps():
            place = f"{quote(session.sid, safe=_UNQUOTED)}/{step.i}"
            self._add(f"{self._path}/step/{place}", step_json(reader, session.sid, step.i))
            for call in step.model_calls if prompts else ():
                self._add(f"{self._path}/call/{place}/{call.n}", self._call(call))

    def to_json(self) -> str:
        """Return the data in the form that the page reads."""
        messages = ",".join(self._messages)
        responses = json.dumps(self._responses, ensure_ascii=False, separators=(",", ":"))
        return f'{{"responses":{responses},"messages":[{messages}]}}'

    def _call(self, call: ModelCall) -> dict[str, Any]:
        """Return a model call with its messages as indexes into the list of all messages."""
        same, before = self._reader.shared_prefix(call), None
        if call.previous is not None:
            before = self._numbers.get(call.previous)
        if before is None or same is None:
            numbers = [self._number(message) for message in self._reader.messages(call)]
        else:
            new = self._reader.new_messages(call)
            numbers = [*before[:same], *(self._number(message) for message in new)]
        self._numbers[call] = numbers
        self._numbers.pop(call.previous, None)  # type: ignore[arg-type]
        shared = None
        if same is not None:
            characters = sum(self._sizes[number] for number in numbers[:same])
            shared = {"messages": same, "characters": characters}
        return {**call_facts(self._reader, call), "messages": numbers, "same": shared}

    def _number(self, message: Any) -> int:
        """Return the index of a message in the list of all messages."""
        shown = message_json(message)
        text = _dumps(self._secrets.masked(shown))
        if text not in self._messages:
            self._add_images(shown)
            self._messages[text] = len(self._messages)
            self._sizes.append(message_size(shown))
            self._count(len(text))
        return self._messages[text]

    def _add(self, path: str, answer: Any) -> None:
        self._add_images(answer)
        masked = self._secrets.masked(answer)
        self._responses[path] = masked
        self._count(len(path) + len(_dumps(masked)))

    def _add_images(self, value: Any) -> None:
        for name in _images_in(value):
            path = f"{self._path}/blob/{name}"
            kind = MEDIA_TYPES.get(name.rpartition(".")[2].replace("jpeg", "jpg"))
            if path in self._responses or kind is None:
                continue
            content = self._reader.blob(name)
            if content is not None:
                url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
                self._responses[path] = url
                self._count(len(path) + len(url))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise TooLarge(
                f"the page would have more than {self._limit // 1_000_000} MB: leave out the "
                "prompts with --no-prompts, or raise --max-mb"
            )


def without_names(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels as the server answers them without their authors and times."""
    return {
        name: _anonymous(value)
        if name == "run"
        else {place: _anonymous(label) for place, label in mapping_of(value).items()}
        for name, value in labels.items()
    }


def _anonymous(label: Any) -> Any:
    return {k: v for k, v in mapping_of(label).items() if k not in ("who", "when")} or None


def _images_in(value: Any) -> Iterator[str]:
    """Yield the names of the stored images that an answer refers to."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            names = (one.get(key) for key in _IMAGE_KEYS)
            yield from (n for n in names if isinstance(n, str) and _BLOB.fullmatch(n))
            waiting += [v for v in one.values() if isinstance(v, Mapping | list)]
        elif isinstance(one, list):
            waiting += [v for v in one if isinstance(v, Mapping | list)]


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
