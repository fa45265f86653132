"""The tools for files: in the sandbox of an agent's code, and pictures for a model that sees."""

from __future__ import annotations

import base64
import io
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attachments
import pytest
from sample_files import write_pdf, write_png, write_wav, write_xlsx

from ck_pro import CodeExecutor, MultiStepAgent, StopTool, file_tools
from ck_pro.exceptions import ToolError
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.files import FileTool, LookTool, TranscribeTool, _Renderer

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeExecutor]:
    folder = tmp_path_factory.mktemp("files")
    write_xlsx(folder / "sales.xlsx")
    write_pdf(folder / "invoice.pdf")
    write_png(folder / "red.png")
    write_wav(folder / "tone.wav")
    functions = {tool.name: tool.bind(None) for tool in file_tools()}  # type: ignore[arg-type]
    with CodeExecutor(functions, workdir=folder, packages=[FileTool.package]) as executor:
        yield executor


def test_code_gets_values_of_the_readers(executor: CodeExecutor) -> None:
    code = "rows = read_table('sales.xlsx', 'Sales')\nprint(sum(int(r[1]) for r in rows[1:4]))"
    result = executor.run(code)
    assert (result.output, result.error) == ("6\n", None)
    assert "very hidden" in executor.run("print(describe_file('sales.xlsx'))").output


def test_errors_are_those_of_the_tool(executor: CodeExecutor) -> None:
    result = executor.run("read_document('none.pdf')")
    assert result.error is not None
    assert result.error.type == "ToolError"
    assert result.error.message == "read_document: 'none.pdf' does not exist"
    code = "try: read_table('red.png')\nexcept RuntimeError as e: print(e)"
    assert "this kind of file has no tables" in executor.run(code).output


def test_the_readers_see_no_more_than_the_code(executor: CodeExecutor, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("PLANTED")
    if "mounts" not in executor.isolation["active"]:
        pytest.skip("the file view needs mounts")
    result = executor.run(f"read_document({str(tmp_path / 'secret.txt')!r})")
    assert result.error is not None and "does not exist" in result.error.message


def test_a_page_is_rendered_as_a_picture(executor: CodeExecutor) -> None:
    code = "from PIL import Image\nprint(Image.open(render('invoice.pdf', 1, dpi=72)).size)"
    assert executor.run(code).output == "(596, 842)\n"
    code = "print(Image.open(render('red.png', crop=[0, 0, 0.5, 1])).size)"
    assert executor.run(code).output == "(20, 20)\n"
    result = executor.run("render('invoice.pdf', 9)")
    assert result.error is not None
    assert result.error.message == "render: there is no page 9; the file has pages 1 to 3"


def test_speech_is_recognised_or_the_missing_recogniser_named(executor: CodeExecutor) -> None:
    result = executor.run("print(transcribe('tone.wav'))")
    said = result.output + (result.error.message if result.error else "")
    assert "recognised by pocketsphinx" in said or "no speech recogniser is installed" in said
    result = executor.run("transcribe('red.png')")
    assert result.error is not None
    assert "is not a sound file, but a file of the kind PNG image" in result.error.message


def test_the_worker_can_read_the_folder_of_the_speech_model(tmp_path: Path) -> None:
    model, work = tmp_path / "model", tmp_path / "work"
    for folder in (model, work):
        folder.mkdir()
    (model / "config.json").write_text("{}")
    write_wav(work / "tone.wav")
    look = f"import os\nprint(os.listdir({str(model)!r}))\n"
    call = "try: transcribe('tone.wav')\nexcept RuntimeError as e: print(e)"
    agent = _agent([f"```python\n{look}{call}\n```"])
    agent.tools = [TranscribeTool(model=str(model)), StopTool()]
    session = agent.run("Listen", workdir=str(work), max_steps=1)
    listed, error = session.steps[0]["action"]["observation"].splitlines()
    assert listed == "['config.json']"
    assert error.startswith("transcribe: ") and "HFValidationError" not in error


def test_a_speech_model_that_is_no_folder_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="'small', which is not a folder; download a model first"):
        TranscribeTool(model="small").execute("tone.wav")


def _agent(replies: list[str]) -> MultiStepAgent:
    return MultiStepAgent(
        name="reader", model=ScriptedLLM(replies), tools=[*file_tools(), StopTool()]
    )


def test_a_model_that_sees_gets_the_picture_and_the_question(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    write_pdf(tmp_path / "invoice.pdf")
    agent = _agent(["```python\nstop(look('invoice.pdf', 'What is the total?'))\n```", "It is 42"])
    session = agent.run("Read it", workdir=str(tmp_path))
    assert session.final_results["output"] == "It is 42"
    asked: Any = agent.model.calls[1].messages[-1]["content"]
    assert asked[0]["text"] == "What is the total?"
    data = base64.b64decode(asked[1]["image_url"]["url"].partition("base64,")[2])
    assert max(images.open(io.BytesIO(data)).size) == 1568


def test_a_link_in_place_of_the_picture_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_png(tmp_path / "red.png")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG secret")
    run = CodeExecutor.run

    def swapped(executor: CodeExecutor, code: str, **more: Any) -> Any:
        result = run(executor, code, **more)
        (tmp_path / "red-page1.png").unlink(missing_ok=True)
        os.symlink(tmp_path / "secret.png", tmp_path / "red-page1.png")
        return result

    monkeypatch.setattr(CodeExecutor, "run", swapped)
    from ck_pro.tools.files import _picture

    with pytest.raises(ToolError, match=r"look: .*red-page1\.png"):
        call = LookTool().in_worker("red.png", page=1, dpi=72, crop=None, side=100)
        _picture("look", tmp_path, call)


@pytest.mark.skipif(shutil.which("soffice") is None, reason="needs LibreOffice")
def test_an_office_file_is_rendered_by_libreoffice_in_a_worker(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    attachments.write_budget(tmp_path / "budget.xlsm")
    agent = _agent(["```python\nstop(render('budget.xlsm', dpi=72))\n```"])
    session = agent.run("Render it", workdir=str(tmp_path))
    assert session.final_results["output"] == "budget-page1.png"
    picture = images.open(tmp_path / "budget-page1.png").convert("L")
    assert max(picture.size) in range(780, 850), "a page of A4 or letter size"
    assert picture.getextrema()[0] < 100, "there is text on it"
    damaged = tmp_path / "damaged.docx"
    damaged.write_bytes(b"PK\x03\x04 broken")
    agent = _agent(
        ["```python\ntry: render('damaged.docx')\nexcept RuntimeError as e: stop(e)\n```"]
    )
    session = agent.run("Render it", workdir=str(tmp_path))
    assert "damaged ZIP archive" in session.final_results["output"]


@pytest.mark.skipif(shutil.which("soffice") is None, reason="needs LibreOffice")
def test_a_hidden_slide_is_rendered_under_its_number(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    pptx = pytest.importorskip("pptx")
    deck = pptx.Presentation()
    for hidden, colour in (("1", "FFFFFF"), ("0", "FF0000"), ("1", "0000FF")):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        slide._element.set("show", hidden)
        slide.background.fill.solid()
        slide.background.fill.fore_color.rgb = pptx.dml.color.RGBColor.from_string(colour)
    deck.save(str(tmp_path / "deck.pptx"))
    agent = _agent(["```python\nstop(render('deck.pptx', page=2, dpi=36))\n```"])
    session = agent.run("Render it", workdir=str(tmp_path))
    picture = images.open(tmp_path / session.final_results["output"])
    assert picture.getpixel((picture.width // 2, picture.height // 2)) == (255, 0, 0)


def test_local_sockets_of_the_renderer_reach_no_other_process(tmp_path: Path) -> None:
    path, name = str(tmp_path / "host.sock"), f"\0ck-pro-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for server, address in ((one, path), (other, name)):
            server.bind(address)
            server.listen()
        code = (
            "import socket\n"
            f"for address in ({path!r}, {name!r}):\n"
            "    try: socket.socket(socket.AF_UNIX).connect(address); print('reached')\n"
            "    except OSError as e: print(type(e).__name__)"
        )
        with _Renderer({}, workdir=tmp_path / "work") as executor:
            if not {"mounts", "network", "seccomp"} <= set(executor.isolation["active"]):
                pytest.skip("local sockets need these layers")
            assert executor.run(code).output == "FileNotFoundError\nConnectionRefusedError\n"
        with CodeExecutor({}, workdir=tmp_path / "work") as executor:
            assert executor.run(code).output == "PermissionError\n" * 2


def test_without_the_layer_mounts_the_renderer_has_no_sockets(tmp_path: Path) -> None:
    class Bare(_Renderer):
        layers = tuple(layer for layer in CodeExecutor.layers if layer != "mounts")

    with Bare({}, workdir=tmp_path) as executor:
        if "seccomp" not in executor.isolation["active"]:
            pytest.skip("needs seccomp")
        result = executor.run("import socket\nsocket.socket(socket.AF_UNIX)")
    assert result.error is not None and result.error.type == "PermissionError"


def test_an_agent_names_file_tools_in_its_settings() -> None:
    agent = MultiStepAgent(name="reader", tools=["read_document", "describe_file"])
    assert agent.functions().names == ["read_document", "describe_file"]
