"""One folder with a file of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_files import WRITERS


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; tests do not change its files."""
    folder = tmp_path_factory.mktemp("samples")
    for name, write in WRITERS.items():
        write(folder / name)
    (folder / "notes.txt").write_text("first line\nTotal: 7\n")
    (folder / "table.csv").write_text('item;n\nlamp;3\n"a;b";4\n')
    (folder / "letter.rtf").write_text(r"{\rtf1\ansi Dear \b Ann\b0\par three lamps}")
    return folder
