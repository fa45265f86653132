"""Settings of the whole process, made before anything else."""

from __future__ import annotations

import logging

import pytest

from web_server import process

resource = pytest.importorskip("resource")


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "told"),
    [
        (64, 64, None, 64),
        (64, 500, 500, 500),
        (1024, 1024, None, None),
        (256, 10**6, 65_536, None),
        (256, resource.RLIM_INFINITY, 65_536, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, None),
    ],
)
def test_the_limit_of_open_files_is_raised_and_told_where_it_is_low(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None, told: int | None
) -> None:
    seen, set_to = [], []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    monkeypatch.setattr(logging.getLogger("web_server"), "warning", lambda *said: seen.append(said))
    process.allow_many_files()
    assert set_to == ([] if raised is None else [(raised, hard)])
    assert [args for _, *args in seen] == ([] if told is None else [[told]])
