"""Tools that read files of many kinds inside the sandbox of an agent's code.

A call is approved and logged like any other. Then the worker runs the function of the same name in
`ck_pro/files`. See `docs/files.md`.
"""

from __future__ import annotations

import ast
import base64
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from ck_pro.exceptions import ContentFiltered, ToolError
from ck_pro.executor import CodeExecutor, LocalCall
from ck_pro.files.kinds import OFFICE_SUFFIXES
from ck_pro.model import LLM
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool

_PACKAGE = str(Path(__file__).parents[1] / "files")
_LOOK_DPI = 150
_LOOK_MAX_DPI = 400
_LOOK_SIDE = 1568
"""Longest side of a picture for a model, in pixels; services scale larger ones down."""
_LOOK_SECONDS = 60.0
_MAX_PICTURE = 20 << 20
_NO_FOLDER = (
    "the setting `model` is {!r}, which is not a folder; download a model first, by "
    "faster_whisper.download_model('small', 'FOLDER'), and give that folder"
)
_ATTACHED = "The next prompt shows the picture, once."
_DESCRIBE = "Describe this picture exactly. Copy all text and all numbers in it verbatim."


class FileTool(Tool):
    """A tool whose calls run in the worker, in the package `ck_pro/files`."""

    package: ClassVar[str] = _PACKAGE
    on_resume = "again"

    def in_worker(self, path: object, **kwargs: Any) -> LocalCall:
        """Return the call for the worker.

        Raises:
            ToolError: the path is not a text.
        """
        if not isinstance(path, str) or not path.strip():
            raise ToolError(f"{self.name}: path must be a non-empty text, not {path!r}")
        return LocalCall(self.name, {"path": path, **kwargs}, package=self.package)


class DescribeFileTool(FileTool):
    """Kind, size, parts and hidden parts of a file."""

    name = "describe_file"

    def execute(self, path: str) -> str:
        """Return a file's kind, size and parts, and everything hidden in it; any kind of file.

        Args:
            path: path of the file.
        """
        return cast("str", self.in_worker(path))


class ReadDocumentTool(FileTool):
    """The text of a document."""

    name = "read_document"

    def execute(
        self,
        path: str,
        part: str | int | None = None,
        changes: Literal["mark", "accept", "reject"] = "mark",
        authors: list[str] | None = None,
        hidden: Literal["mark", "omit"] = "mark",
    ) -> str:
        """Return the text of a document (PDF, Office, HTML, e-mail, archive, table, ...).

        A long document ends with the call that returns the next part.

        Args:
            path: path of the file.
            part: where to begin: a page, sheet, slide or member, as describe_file lists them.
            changes: tracked changes: both states marked, or only one of them.
            authors: accept or reject only the changes of these authors.
            hidden: whether hidden rows, columns, sheets, slides and texts are marked or omitted.
        """
        given = {"part": part, "changes": changes, "authors": authors, "hidden": hidden}
        return cast("str", self.in_worker(path, **given))


class SearchFileTool(FileTool):
    """Finds a text in a document."""

    name = "search_file"

    def execute(self, path: str, text: str) -> str:
        """Return the lines of a document that contain a text, each with the part it is in.

        Args:
            path: path of the file.
            text: to search; upper and lower case and white space make no difference.
        """
        if not isinstance(text, str):
            raise ToolError(f"{self.name}: text must be a text, not {type(text).__name__}")
        return cast("str", self.in_worker(path, text=text))


class ReadTableTool(FileTool):
    """A table of a document."""

    name = "read_table"

    def execute(self, path: str, part: str | int | None = None, n: int = 1) -> list[list[str]]:
        """Return the n-th table of a document as a list of rows, each a list of texts.

        Args:
            path: path of the file.
            part: only the tables of this page, sheet or slide.
            n: number of the table, from 1.
        """
        if type(n) is not int or n < 1:
            raise ToolError(f"{self.name}: n must be a whole number from 1, not {n!r}")
        return cast("list[list[str]]", self.in_worker(path, part=part, n=n))


class RenderTool(FileTool):
    """A page as a picture file."""

    name = "render"

    def execute(
        self, path: str, page: int = 1, dpi: int = 150, crop: list[float] | None = None
    ) -> str:
        """Write a page of a PDF or Office file, or an image, as a PNG file, and return its path.

        Args:
            path: path of the file.
            page: number of the page, from 1.
            dpi: resolution.
            crop: [left, top, right, bottom] of the part to keep, each a share from 0 to 1.
        """
        return cast("str", self.in_worker(path, page=page, dpi=dpi, crop=crop))

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for one run; Office files are rendered in a second worker."""

        def render(
            path: str, page: int = 1, dpi: int = 150, crop: list[float] | None = None
        ) -> str:
            call = self.in_worker(path, page=page, dpi=dpi, crop=crop)
            if not path.lower().endswith(OFFICE_SUFFIXES):
                return cast("str", call)
            return _rendered(self.name, run.workdir, call)

        render.__doc__ = self.execute.__doc__
        return render


class LookTool(FileTool):
    """A question about a picture to a model that sees."""

    name = "look"
    model: LLM | None = None
    """The model that answers; None uses `model_multimodal` of the calling agent, or its model."""
    attach: bool = False
    """Show the picture in the agent's next prompt instead of asking a model now, for an agent whose
    own model sees. It saves a call, and the model sees the picture beside the task."""

    def execute(
        self, path: str, question: str = "", page: int = 1, crop: list[float] | None = None
    ) -> str:
        """Show a picture, or a page of a PDF or Office file, to a model; return its answer.

        Args:
            path: path of the file.
            question: about the picture; empty: describe it, with all text in it.
            page: number of the page, from 1.
            crop: [left, top, right, bottom] of the part to show, each a share from 0 to 1.
        """
        raise ToolError(f"{self.name}: it works only within a run")

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for one run, which logs the call and charges the run's budget."""

        def look(
            path: str, question: str = "", page: int = 1, crop: list[float] | None = None
        ) -> str:
            call = self.in_worker(path, page=page, dpi=_dpi(crop), crop=crop, side=_LOOK_SIDE)
            picture = base64.b64encode(_picture(self.name, run.workdir, call)).decode()
            url = f"data:image/png;base64,{picture}"
            if self.attach and run.show_picture(url, _caption(path, page, crop)):
                return _ATTACHED
            content = [
                {"type": "text", "text": question.strip() or _DESCRIBE},
                {"type": "image_url", "image_url": {"url": url}},
            ]
            model = self.model or run.model_multimodal or run.model
            messages = [{"role": "user", "content": content}]
            try:
                return str(run.call_model(model, messages, f"tool:{self.name}"))
            except ContentFiltered as e:
                raise ToolError(f"{self.name}: {e}") from None

        look.__doc__ = self.execute.__doc__
        return look


def _dpi(crop: object) -> int:
    """Return the resolution of the page at which a part of it fills the picture."""
    try:
        left, top, right, bottom = cast("list[float]", crop)
        share = max(right - left, bottom - top)
        return round(min(_LOOK_MAX_DPI, _LOOK_DPI / share))
    except (TypeError, ValueError, ArithmeticError):  # no crop, or one that `render` refuses
        return _LOOK_DPI


def _caption(path: str, page: int, crop: object) -> str:
    part = "" if crop is None else f", the part {crop}"
    return f"{path!r}, page {page}{part}"


def _rendered(tool: str, workdir: Path, call: LocalCall) -> str:
    """Render in a second worker, and return the path of the picture.

    Raises:
        ToolError: the file cannot be rendered.
    """
    functions = {"render": lambda: replace(call, name="render")}
    with _Renderer(
        functions, workdir=workdir, packages=[_PACKAGE], timeout=_LOOK_SECONDS
    ) as executor:
        result = executor.run("render()")
    if result.error is not None or result.value is None:
        text = result.error.message if result.error is not None else "nothing was rendered"
        raise ToolError(f"{tool}: {text.removeprefix('render: ')}")
    return str(ast.literal_eval(result.value))


def _picture(tool: str, workdir: Path, call: LocalCall) -> bytes:
    """Return a rendered picture, and remove its file.

    Raises:
        ToolError: the file cannot be rendered, or its picture is not what was written.
    """
    path = workdir / Path(_rendered(tool, workdir, call)).name
    try:
        # the code may have replaced the file by a link to one that it cannot read
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(_MAX_PICTURE + 1)
        path.unlink()
    except OSError as e:
        raise ToolError(f"{tool}: {e.strerror}: {path.name!r}") from None
    if not data.startswith(b"\x89PNG") or len(data) > _MAX_PICTURE:
        raise ToolError(f"{tool}: the picture is not a PNG file of at most {_MAX_PICTURE:,} bytes")
    return data


class _Renderer(CodeExecutor):
    """A worker that runs only `render`. LibreOffice needs local sockets, which code has not."""

    local_sockets = True


class TranscribeTool(FileTool):
    """What is said in a sound file."""

    name = "transcribe"
    model: str = ""
    """Folder of a faster-whisper model; "" uses pocketsphinx (English) if installed."""

    def readable(self) -> list[str]:
        """Return the folder of the model."""
        return [self.model] if self.model and Path(self.model).is_dir() else []

    def execute(
        self, path: str, language: str | None = None, hints: list[str] | None = None
    ) -> str:
        """Return what is said in a sound file, one line per sentence with its time.

        Args:
            path: path of the file.
            language: code such as "en"; None: find out.
            hints: words or sentences that may be said, such as the ten digits; they help much.
        """
        if self.model and not self.readable():
            raise ToolError(f"{self.name}: {_NO_FOLDER.format(self.model)}")
        model = str(Path(self.model).resolve()) if self.model else ""
        given = {"language": language, "hints": hints, "model": model}
        return cast("str", self.in_worker(path, **given))


def file_tools() -> list[Tool]:
    """Return all tools for files, for an agent's `tools`."""
    seeing = [RenderTool(), LookTool(), TranscribeTool()]
    return [DescribeFileTool(), ReadDocumentTool(), SearchFileTool(), ReadTableTool(), *seeing]
