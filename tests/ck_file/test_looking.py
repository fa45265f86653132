"""`look` against chat servers on loopback that decode the picture and answer from its pixels."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import code

from ck_file import FileAgent
from ck_main.agent import CKAgent
from ck_pro import AgentSession, Journal
from ck_pro.session import Status
from ck_pro.testing import FakeChatServer
from ck_pro.testing.chat_server import ChatCall, Fault
from ck_pro.trajectory.export import main as export

images = pytest.importorskip("PIL.Image")
pytestmark = [pytest.mark.integration, pytest.mark.worker]


def pictures(call: ChatCall) -> list[Any]:
    """Decode the pictures of a request."""
    parts = [p for m in call.messages if isinstance(m["content"], list) for p in m["content"]]
    urls = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    return [images.open(io.BytesIO(base64.b64decode(u.partition(",")[2]))) for u in urls]


def colours(picture: Any) -> str:
    """Describe a picture of four coloured quarters, as a model that sees would."""
    names = {(255, 0, 0): "red", (0, 0, 255): "blue", (0, 128, 0): "green", (255,) * 3: "white"}
    width, height = picture.size
    at = [(x, y) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    return " ".join(names[picture.convert("RGB").getpixel(one)] for one in at)


def see(call: ChatCall) -> str:
    """Answer from the only picture of a request."""
    (picture,) = pictures(call)
    return f"{picture.size[0]} x {picture.size[1]}: {colours(picture)}"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A PDF page of 144 x 288 points with quarters in red, blue, green and white."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    path = tmp_path / "chart.pdf"
    pdf = canvas.Canvas(str(path), pagesize=(144, 288))
    for name, x, y in (("red", 0, 144), ("blue", 72, 144), ("green", 0, 0)):
        pdf.setFillColor(name)
        pdf.rect(x, y, 72, 144, stroke=0, fill=1)
    pdf.save()
    return path


def sft_rows(folder: Path, run: Path) -> list[dict[str, Any]]:
    out = folder / "sft.jsonl"
    assert export(["-f", "sft", "-i", str(run), "-o", str(out)]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def exported_picture(folder: Path, row: dict[str, Any]) -> Any:
    (name,) = row["images"]
    return images.open(folder / name)


def test_another_model_answers_from_the_pixels(chart: Path, tmp_path: Path) -> None:
    act = code(
        "stop(look('chart.pdf', 'Colours?') + '; ' + look('chart.pdf', crop=[0, 0, 0.5, 0.5]))"
    )
    with FakeChatServer([act]) as plain, FakeChatServer(see) as seeing:
        agent = CKAgent(model=plain.url, model_multimodal=seeing.url)
        with Journal(tmp_path / "run") as journal:
            work = tmp_path / "work"
            session = agent.run("Which colours?", files=[chart], journal=journal, workdir=work)
    assert [one.name for one in work.iterdir()] == ["chart.pdf"]
    answer = "300 x 600: red blue green white; 300 x 600: red red red red"
    assert session.final_results["output"] == answer
    first = seeing.calls[0].messages[0]["content"][0]["text"]
    assert (len(plain.calls), len(seeing.calls), first) == (1, 2, "Colours?")
    assert len(list((tmp_path / "run" / "blobs").glob("*.png"))) == 2
    row = next(
        r for r in sft_rows(tmp_path, tmp_path / "run") if r["metadata"]["phase"] == "tool:look"
    )
    assert colours(exported_picture(tmp_path, row)) == "red blue green white"
    assert row["completion"][0]["content"][0]["text"] == "300 x 600: red blue green white"


def test_a_sub_agent_uses_the_model_for_pictures_of_its_caller(chart: Path) -> None:
    ask = code("stop(file_agent(task='Which colours has chart.pdf?')['output'])")
    with (
        FakeChatServer([ask]) as main,
        FakeChatServer([code("stop(look('chart.pdf'))")]) as reader,
        FakeChatServer(see) as seeing,
    ):
        agent = CKAgent(
            model=main.url, model_multimodal=seeing.url, file_agent={"model": reader.url}
        )
        session = agent.run("Which colours?", files=[chart])
    assert session.final_results["output"] == "300 x 600: red blue green white"


def attaching(call: ChatCall) -> str:
    """Look first; then answer from the attached picture; then report the number of pictures."""
    if "Step 1 of" in str(call.messages[-1]["content"]):
        return code("look('chart.pdf')\nprint('looked')")
    if "Step 2 of" in str(call.messages[-1]["content"]):
        return code(f"print({see(call)!r})")
    return code(f"stop({len(pictures(call))!r})")


def test_an_agent_whose_model_sees_gets_the_picture_in_its_next_prompt(
    chart: Path, tmp_path: Path
) -> None:
    with FakeChatServer(attaching) as server, Journal(tmp_path / "run") as journal:
        agent = FileAgent(model=server.url, look={"attach": True})
        session = agent.run("Which colours?", files=[chart], journal=journal)
    assert len(server.calls) == 3
    second = session.steps[1]["action"]["observation"]
    assert (second, session.final_results["output"]) == ("300 x 600: red blue green white", "0")
    (row,) = [row for row in sft_rows(tmp_path, tmp_path / "run") if row["images"]]
    assert row["metadata"]["step"] == 1
    assert colours(exported_picture(tmp_path, row)) == "red blue green white"
    text = [p["text"] for m in row["prompt"] for p in m["content"] if p["type"] == "text"]
    assert any("# Picture: 'chart.pdf', page 1" in one for one in text)


def test_a_resumed_run_shows_the_attached_picture(chart: Path, tmp_path: Path) -> None:
    with FakeChatServer(attaching) as server:
        agent = FileAgent(model=server.url, look={"attach": True})
        with Journal(tmp_path / "run") as journal:
            session = AgentSession()
            for _ in agent.run(
                "Which colours?", session=session, files=[chart], journal=journal, stream=True
            ):
                agent.suspend_run(session)
        with Journal(tmp_path / "run") as journal:
            session = agent.resume(journal=journal)
    assert session.status is Status.DONE
    assert session.steps[1]["action"]["observation"] == "300 x 600: red blue green white"


def test_a_model_that_does_not_see_costs_one_error_line(chart: Path) -> None:
    def refuse(call: ChatCall) -> str | Fault:
        if pictures(call):
            return Fault(status=400, message="this model has no vision")
        return code("try: look('chart.pdf')\nexcept RuntimeError as e: stop(str(e))")

    with FakeChatServer(refuse) as server:
        session = FileAgent(model=server.url).run("Which colours?", files=[chart])
    answer = session.final_results["output"]
    assert "this model has no vision" in answer and "\n" not in answer
