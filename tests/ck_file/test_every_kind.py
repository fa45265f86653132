"""Questions about attachments of every kind, whose answers depend on hidden parts.

An agent answers each by tool calls in a real worker, from the command's parts: prompts, tools, log.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from attachments import WRITERS
from scripted_agents import code

from ck_main.agent import CKAgent
from ck_pro.testing import ScriptedLLM

pytestmark = [pytest.mark.integration, pytest.mark.worker]

QUESTIONS = {
    "lease.docx, with only Ann's changes: the rent, and the exception": (
        "text = read_document('lease.docx', changes='accept', authors=['Ann'])\n"
        "assert '[+Bob:  plus heating+]' in text\n"
        "note = read_document('lease.docx', 'footnotes')\n"
        "rent = text.split('rent is ')[1].split()[0]\n"
        "stop(f\"{rent}; {re.search('footnote .] (.*)', note)[1]}\")",
        "950; Not in July.",
    ),
    "lease.docx: who commented, and the hidden key": (
        "found = describe_file('lease.docx') + read_document('lease.docx')\n"
        "stop(re.search('comment by (\\\\w+)', found)[1] + re.search('hidden: (.*?)]', found)[1])",
        "EveKey 4471",
    ),
    "budget.xlsm: the sum of the visible rows, the limit, and whether it has macros": (
        "rows = read_table('budget.xlsm', 'Budget')\n"
        "facts = describe_file('budget.xlsm')\n"
        "hidden = [int(n) for n in re.findall('hidden rows (\\\\d+)', facts)]\n"
        "seen = sum(int(r[3]) for n, r in enumerate(rows[1:4], 2) if n not in hidden)\n"
        "stop(f\"{seen} {read_table('budget.xlsm', 'Limits')[0][1]} {'macros' in facts}\")",
        "960 1000 True",
    ),
    "budget.xlsm: the comment, and the value of the total, which is not stored": (
        "text = read_document('budget.xlsm')\n"
        "total = re.search('(\\\\d+) {=SUM.*not stored, computed now', text)[1]\n"
        "stop(total + re.search('by Eve: (.*)]', text)[1])",
        "1160without the hidden row: 960",
    ),
    "stock.xls: where is the hidden item, and which code is hidden": (
        "shown = read_document('stock.xls', hidden='omit')\n"
        "row = next(r for r in read_table('stock.xls') if r[0] not in shown)\n"
        "stop(row[2] + ' ' + read_table('stock.xls', 'Codes')[0][0])",
        "B7 door 8812",
    ),
    "stock.ods: how many hidden items, and which code is hidden": (
        "shown = read_document('stock.ods', hidden='omit')\n"
        "row = next(r for r in read_table('stock.ods') if r[0] not in shown)\n"
        "stop(row[1] + ' ' + read_table('stock.ods', 'Codes')[0][0])",
        "5 door 8813",
    ),
    "cities.csv: its encoding, the city of the row that is too long": (
        "rows = read_table('cities.csv')\n"
        "kind = re.search('encoding (\\\\w+) .a guess', describe_file('cities.csv'))[1]\n"
        "stop(kind + ' ' + ascii(next(r for r in rows if len(r) == 3)[1]))",
        "cp1251 " + ascii("\u041a\u0430\u0437\u0430\u043d\u044c"),
    ),
    "talk.pptx: adult visitors in June, the hidden target, the comment": (
        "june = dict(read_table('talk.pptx')[1:])['June']\n"
        "text = read_document('talk.pptx')\n"
        "children = re.search('includes (\\\\d+)', text)[1]\n"
        "target = re.search('hidden. ==\\\\nTarget: (\\\\d+)', text)[1]\n"
        "stop(f\"{int(june) - int(children)} {target} {re.search('by Eve: (.*)]', text)[1]}\")",
        "400 500 Count again",
    ),
    "report.pdf: the right column, the turned page, the attached price of the valve": (
        "text = read_document('report.pdf', 1).replace('\\n', ' ')\n"
        "meter = re.search('meter (.*)', search_file('report.pdf', 'meter'))[1]\n"
        "assert 'page 2 is rotated by 90' in describe_file('report.pdf')\n"
        "try: read_table('report.pdf')\n"
        "except RuntimeError as e: assert 'has 0 tables' in str(e), e\n"
        "price = dict(read_table('report.pdf', 'parts.csv'))['valve']\n"
        "stop(re.search('not paid, (because .*all)', text)[1] + f'; {meter}; {price}')",
        "because it does not name the leak at all; 60312; 61",
    ),
    "locked.pdf: why it cannot be read": (
        "try: read_document('locked.pdf')\nexcept RuntimeError as e: stop(str(e))",
        "read_document: the PDF is encrypted; its text needs a password",
    ),
    "menu.html: what guests do not see": (
        "stop(' / '.join(re.findall('hidden: (.*?)]', read_document('menu.html'))))",
        "| staff meal | 2 | / closed on Sunday",
    ),
    "order.eml: desks in the HTML form, its attachments": (
        "desks = re.search('order (\\\\w+)', read_document('order.eml', 'html'))[1]\n"
        "limit = read_table('order.eml', 'budget.xlsx/Limits')[0][1]\n"
        "approved = re.search('up to (\\\\d+)', read_document('order.eml', 'message-2.eml'))[1]\n"
        "stop(f\"{desks} {limit} {approved} {'Bcc: z@' in describe_file('order.eml')}\")",
        "three 1000 1100 True",
    ),
    "order.msg: the hidden recipient, the table, the attached message": (
        "copy = re.search('Bcc: (\\\\w+)', read_document('order.msg'))[1]\n"
        "desks = dict(read_table('order.msg', 'order.csv')[:3])['desk']\n"
        "inner = read_document('order.msg', 'message-2.eml')\n"
        "html = read_document('order.msg', 'html').split('\\n')[0]\n"
        "stop(f\"{copy} {desks} {re.search('gate .', inner)[0]} {html}\")",
        "Zoe 4 gate 9 See table. Urgent",
    ),
    "memo.rtf, with Ann's changes: the day, the dock, the driver": (
        "text = read_document('memo.rtf', changes='accept', authors=['Ann'])\n"
        "assert '[+Bob:  at noon+]' in text and '[comment by Eve: late!]' in text\n"
        "day, dock = re.search('on (\\\\w+)', text)[1], re.search('hidden: Dock (..)', text)[1]\n"
        "driver = re.search('Driver: (\\\\w+)', text)[1]\n"
        "stop(f\"{day} {dock} {ascii(driver)} {read_table('memo.rtf')}\")",
        f"Friday 12 {chr(0x41F) + chr(0x451) + chr(0x442) + chr(0x440)!a} [['box', '7']]",
    ),
    "memo.doc, with Ann's changes: the day, the dock, the note": (
        "text = read_document('memo.doc', changes='accept', authors=['Ann'])\n"
        "assert '[+Bob:  at noon+]' in text and 'Page 7' in text and 'Monday' not in text\n"
        "day = re.search('on (\\\\w+?)\\\\[', text)[1]\n"
        "dock = re.search('hidden: Dock (..)', text)[1]\n"
        "note = read_document('memo.doc', 'footnotes').split('\\n')[1]\n"
        "stop(f\"{day} {dock} {note} {read_table('memo.doc')}\")",
        "Friday 12 No ferry in July. [['box', '7']]",
    ),
    "isle.epub: the first sentence, and the hidden one": (
        "stop(read_document('isle.epub', 1).split('\\n')[1])",
        "They landed.[hidden: Map: page 6]",
    ),
    "box.zip: the limit in the innermost workbook": (
        "stop(read_table('box.zip', 'old.zip/2024/budget.xlsx/Limits')[0][1])",
        "1000",
    ),
    "shop.db: the total of lamps, and what runs at each sale": (
        "total = dict(read_table('shop.db', 'total'))['lamp']\n"
        "stop(total + ' ' + re.search(\"trigger '(.*?)'\", describe_file('shop.db'))[1])",
        "80.0 watch",
    ),
    "events.jsonl: the failed event": (
        "stop(search_file('events.jsonl', 'failed').split('\\n')[1])",
        'text: {"number": 17031, "state": "failed"}',
    ),
    "photo.jpg: where it was taken, and its size upright": (
        "from PIL import Image\n"
        "place = re.search('ImageDescription: (.*)', describe_file('photo.jpg'))[1]\n"
        "stop(f\"{place} {Image.open(render('photo.jpg')).size}\")",
        "Harbour, pier 3 (10, 30)",
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_agent_answers_from_hidden_parts(question: str, tmp_path: Path) -> None:
    name = question.partition(",")[0].partition(":")[0]
    WRITERS[name](tmp_path / name)
    steps, answer = QUESTIONS[question]
    model = ScriptedLLM([code(f"import re\n{steps}")])
    session = CKAgent(model=model, max_steps=1).run(question, files=[tmp_path / name])
    assert session.final_results["output"] == answer, session.steps[0]["action"]["observation"]


def test_every_attachment_has_a_question() -> None:
    asked = {question.partition(",")[0].partition(":")[0] for question in QUESTIONS}
    assert asked == set(WRITERS)


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs tesseract")
def test_text_in_a_picture_is_recognised(tmp_path: Path) -> None:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (600, 120), "white")
    ImageDraw.Draw(picture).text((20, 30), "PARCEL 7318", "black", ImageFont.load_default(60))
    picture.save(tmp_path / "label.png")
    model = ScriptedLLM([code("stop(read_document('label.png').split()[1])")])
    session = CKAgent(model=model, max_steps=1).run("Which?", files=[tmp_path / "label.png"])
    assert session.final_results["output"] == "7318"


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="needs espeak-ng")
def test_words_among_hints_are_recognised(tmp_path: Path) -> None:
    pytest.importorskip("pocketsphinx")
    speak = ["espeak-ng", "-s", "120", "-w", str(tmp_path / "call.wav"), "open the window"]
    subprocess.run(speak, check=True)
    hints = "['open the window', 'close the door', 'seven red apples']"
    steps = f"import re\nstop(re.search('s\\\\] (.*)', transcribe('call.wav', hints={hints}))[1])"
    model = ScriptedLLM([code(steps)])
    session = CKAgent(model=model, max_steps=1).run("Which?", files=[tmp_path / "call.wav"])
    assert session.final_results["output"] == "open the window"
