"""`transcribe`: what is said in a sound file, by a recogniser that is installed."""

from __future__ import annotations

import array
import importlib
import re
import shutil
import subprocess
import tempfile
import wave
from pathlib import Path
from typing import Any

from .child import in_child
from .limits import CALL_SECONDS
from .opening import file_at, kind_of_file, split_path
from .problem import ToolError

_RATE = 16_000
_MAX_SECONDS = 600
"""Length from which sound is resampled by ffmpeg, not here."""
_NONE_INSTALLED = (
    "no speech recogniser is installed: install faster-whisper and name its model in the tool's "
    "setting `model`, or install pocketsphinx (English only)"
)


def transcribe(
    path: str, language: str | None = None, hints: list[str] | None = None, model: str = ""
) -> str:
    """Return what is said in a sound file, each piece with its time in seconds."""
    kind_of_file(split_path(path)[0])
    if model:
        return in_child(lambda: _by_whisper(_sound(path), language, hints, model))
    if _installed("pocketsphinx"):
        return in_child(lambda: _by_pocketsphinx(_sound(path), language, hints))
    in_child(lambda: _sound(path))
    raise ToolError(_NONE_INSTALLED)


def _sound(path: str) -> Path:
    """Return a sound file, which may be inside another file."""
    where, kind = file_at(path)
    if kind.format != "audio":
        raise ToolError(f"{path!r} is not a sound file, but a file of the kind {kind.name}")
    return where


def _installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _by_whisper(path: Path, language: str | None, hints: list[str] | None, model: str) -> str:
    try:
        whisper = importlib.import_module("faster_whisper")
    except ImportError:
        raise ToolError(f"the model {model!r} needs the package faster-whisper") from None
    recogniser = whisper.WhisperModel(model, device="cpu", compute_type="int8")
    prompt = ". ".join(hints) if hints else None
    pieces, found = recogniser.transcribe(str(path), language=language, initial_prompt=prompt)
    lines = [f"{_span(piece.start, piece.end)} {piece.text.strip()}" for piece in pieces]
    return "\n".join([f"[language: {found.language}]", *lines])


def _by_pocketsphinx(path: Path, language: str | None, hints: list[str] | None) -> str:
    if language not in (None, "en", "en-US", "en-us"):
        raise ToolError(f"the installed recogniser knows only English, not {language!r}")
    sphinx: Any = importlib.import_module("pocketsphinx")
    samples = _samples(path)
    decoder = sphinx.Decoder(samprate=_RATE, loglevel="FATAL")
    note = "[recognised by pocketsphinx: expect errors; hints help]"
    if hints:
        decoder.add_jsgf_string("hints", _grammar(decoder, hints))
        decoder.activate_search("hints")
        note = "[recognised by pocketsphinx: only the given hints are possible results]"
    lines = [note]
    for start, end, piece in _spoken(sphinx, samples):
        decoder.start_utt()
        decoder.process_raw(piece, full_utt=True)
        decoder.end_utt()
        said = decoder.hyp()
        if said is not None and said.hypstr:
            lines.append(f"{_span(start, end)} {said.hypstr}")
    return "\n".join(lines) if len(lines) > 1 else f"{note}\nnothing was recognised"


def _grammar(decoder: Any, hints: list[str]) -> str:
    """Return a grammar of the hints, without words that the recogniser does not know."""
    known = []
    for hint in hints:
        words = re.findall(r"[a-z']+", hint.lower())
        if words and all(decoder.lookup_word(word) for word in words):
            known.append(" ".join(words))
    if not known:
        raise ToolError("the recogniser knows no word of the hints; it knows English words")
    return f"#JSGF V1.0; grammar hints; public <hints> = ({' | '.join(known)})+ ;"


def _spoken(sphinx: Any, samples: bytes) -> list[tuple[float, float, bytes]]:
    """Cut the sound at pauses: start and end in seconds, and samples, of each piece."""
    endpointer = sphinx.Endpointer(sample_rate=_RATE)
    size = endpointer.frame_bytes
    pieces: list[tuple[float, float, bytes]] = []
    now = bytearray()
    for at in range(0, len(samples), size):
        frame = samples[at : at + size]
        speech = endpointer.process(frame) if len(frame) == size else endpointer.end_stream(frame)
        if speech is not None:
            now += speech
            if not endpointer.in_speech:
                pieces.append((endpointer.speech_start, endpointer.speech_end, bytes(now)))
                now.clear()
    if now:
        pieces.append((endpointer.speech_start, len(samples) / 2 / _RATE, bytes(now)))
    return pieces


def _samples(path: Path) -> bytes:
    """Return the sound as 16-bit mono samples at 16 kHz."""
    try:
        with wave.open(str(path)) as sound:
            channels, width, rate, count = sound.getparams()[:4]
            if width == 2 and count / rate < _MAX_SECONDS:
                return _resampled(array.array("h", sound.readframes(count)), channels, rate)
    except (wave.Error, EOFError):
        pass
    program = shutil.which("ffmpeg")
    if program is None:
        raise ToolError("this sound file needs the program ffmpeg, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "sound.raw"
        options = ["-v", "error", "-nostdin", "-i", str(path), "-ac", "1", "-ar", str(_RATE)]
        done = subprocess.run(
            [program, *options, "-f", "s16le", str(target)],
            capture_output=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        if done.returncode or not target.exists():
            text = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
            raise ToolError(f"the sound file is damaged: {text}")
        return target.read_bytes()


def _resampled(samples: array.array[int], channels: int, rate: int) -> bytes:
    """Mix the channels, and interpolate to 16 kHz."""
    mono = [sum(samples[at : at + channels]) // channels for at in range(0, len(samples), channels)]
    if rate == _RATE or not mono:
        return array.array("h", mono).tobytes()
    mono.append(mono[-1])
    made = array.array("h")
    for index in range((len(mono) - 1) * _RATE // rate):
        at, rest = divmod(index * rate, _RATE)
        made.append(mono[at] + (mono[at + 1] - mono[at]) * rest // _RATE)
    return made.tobytes()


def _span(start: float, end: float) -> str:
    return f"[{start:.1f}-{end:.1f} s]"
