"""Measure the peak memory of an export in a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# `getrusage` will not do: of it a process inherits what its parent, pytest, once had in memory
_RUN = """
import re, sys
from ck_pro.trajectory.export import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()
print("peak", int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024)
sys.exit(code)
"""
MEBIBYTE = 2**20


def peak_of_export(
    format_: str, source: Path, output: Path, *options: str, timeout: float = 170
) -> int:
    """Export, and return the peak in bytes.

    Args:
        format_, source, output, options: of the command line.
        timeout: in seconds.
    """
    command = [sys.executable, "-c", _RUN, "-f", format_, "-i", str(source), "-o", str(output)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=timeout)
    no_rows = 1 if format_ == "dpo" else 0  # dpo may find no pair
    assert done.returncode in (0, no_rows), done.stdout + done.stderr
    peak = int(done.stdout.rpartition("peak ")[2])
    print(f"{format_} of {source.name}: peak {peak / MEBIBYTE:.0f} MiB")
    return peak
