"""Sound files: length and format. `transcribe` returns what is said in them."""

from __future__ import annotations

import shutil
import subprocess
import wave
from collections.abc import Iterator, Sequence

from ..document import Document, Facts, Part


class Reader(Document):
    """A sound file."""

    def facts(self) -> Facts:
        try:
            with wave.open(str(self.path)) as sound:
                seconds = sound.getnframes() / max(1, sound.getframerate())
                return Facts([f"{seconds:.1f} s", f"{sound.getframerate()} Hz"])
        except (wave.Error, EOFError):
            return Facts(self._probed())

    def parts(self) -> Sequence[Part]:
        return [Part("sound", "sound")]

    def blocks(self, part: str) -> Iterator[str]:
        yield f"(a sound file; transcribe({self.shown!r}) returns what is said in it)\n"

    def _probed(self) -> list[str]:
        program = shutil.which("ffprobe")
        if program is None:
            return []
        options = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"]
        done = subprocess.run(
            [program, *options, str(self.path)], capture_output=True, timeout=20, check=False
        )
        text = done.stdout.decode("ascii", "replace").strip()
        return [f"{float(text):.1f} s"] if text.replace(".", "", 1).isdigit() else []
