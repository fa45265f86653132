"""The option `--ids`."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.command_line import id_text, ids_of

COMMAND = click.Command("c")
CONTEXT, OPTION = click.Context(COMMAND), click.Option(["--ids"])


def read(text: str | None) -> tuple[str, ...]:
    return ids_of(CONTEXT, OPTION, text)


def test_ids_come_from_lists_and_files(tmp_path: Path) -> None:
    assert read(None) == ()
    assert read("a, b,,c ") == ("a", "b", "c")
    assert read('"with, comma",b "quoted"') == ("with, comma", 'b "quoted"')
    path = tmp_path / "ids"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n\n  c\n")
    assert read(f"@{path}") == ("a,b", "c")


def test_empty_lists_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "picture").write_bytes(b"\x89PNG")
    for text, said in (
        ("", "no task ids"),
        (f"@{tmp_path}/empty", "no task ids"),
        (f"@{tmp_path}/none", "No such file"),
        (f"@{tmp_path}/picture", "it is not UTF-8 text"),
        ("a\nb", "new-line"),
    ):
        with pytest.raises(click.BadParameter, match=said):
            read(text)


@given(st.text().map(str.strip).filter(lambda t: t and not set(t) & set("\r\n\0")))
def test_every_id_can_be_quoted(task_id: str) -> None:
    assert read(id_text(task_id)) == (task_id,)
