"""Export with the real command, and load exports with the libraries that they are for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ck_pro.trajectory.export import FORMATS, main

LIGHT_AND_LONG = [
    format_
    if format_ in ("atif", "ckpro", "dpo", "parquet")
    else pytest.param(format_, marks=pytest.mark.long)
    for format_ in FORMATS
]
"""Formats as parameters for tests of contents; the less different ones only in the long form."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def export(format_: str, output: Path, *args: Any) -> Path:
    """Export with the real command."""
    assert main([str(a) for a in ("-f", format_, "-o", output, *args)]) == 0
    return output


def ending(format_: str) -> str:
    """Return the suffix of a format."""
    return "parquet" if format_ in ("verl", "parquet") else "jsonl"


def loaded(format_: str, path: Path) -> list[Any]:
    """Load an export with the library that it is for: rows or trajectories."""
    return _LOADERS.get(format_, _by_datasets)(path)


def _by_datasets(path: Path) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OFFLINE.items():
            patch.setenv(name, value)
        import datasets

        datasets.disable_progress_bars()
        kind = "parquet" if path.suffix == ".parquet" else "json"
        cache = str(path.parent / "cache")
        rows = datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=cache)
        return list(rows)


def _by_trl(path: Path) -> list[Any]:
    rows = _by_datasets(path)
    tools = pytest.importorskip("trl.data_utils", reason="pip install --no-deps trl")
    assert all(tools.is_conversational(r) for r in rows)
    return rows


def _by_llama_factory(path: Path) -> list[Any]:
    probe = "llama_factory_probe.py"
    done = _probe("llamafactory", "", probe, str(path.parent), path.stem, home=path.parent)
    return list(json.loads(done))


def _by_atif(path: Path) -> list[Any]:
    from atif import Trajectory

    return [Trajectory.model_validate_json(line) for line in path.read_text().splitlines()]


def _as_rows(path: Path) -> list[Any]:
    """Exporting the rows again gives the same."""
    again = export("ckpro", path.with_name("again.jsonl"), "-i", path)
    assert again.read_bytes() == path.read_bytes()
    return [json.loads(line) for line in path.read_text().splitlines()]


def probed(package: str, needs: str, path: Path) -> list[Any]:
    """Load an export with a trainer's loader, in a separate process.

    Args:
        package: whose `PACKAGE_probe.py` it is.
        needs: other packages, with blanks between them.
        path: of the export.
    """
    out = path.with_suffix(".probed")
    _probe(package, needs, f"{package}_probe.py", str(path), str(out), home=path.parent)
    return list(json.loads(out.read_text()))


def _probe(package: str, needs: str, probe: str, *args: str, home: Path) -> str:
    missing = [name for name in (package, *needs.split()) if find_spec(name) is None]
    if missing:
        pytest.skip(f"pip install --no-deps {' '.join(missing)}")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(probe)), *args],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **OFFLINE, "HF_HOME": str(home / "hf")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_LOADERS: dict[str, Callable[[Path], list[Any]]] = {
    **dict.fromkeys(("sft", "dpo", "kto", "parquet"), _by_trl),
    "sharegpt": _by_llama_factory,
    "axolotl": lambda path: probed("axolotl", "colorama addict", path),
    "verl": lambda path: probed("verl", "", path),
    "atif": _by_atif,
    "ckpro": _as_rows,
}
