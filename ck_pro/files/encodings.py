"""Guesses the encoding of a text from its first bytes."""

from __future__ import annotations

import codecs
import importlib
import unicodedata
from itertools import pairwise

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATES = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "cp437", "mac_roman"),
]
_NEAR_WESTERN = ("cp1250", "cp1254", "cp437", "mac_roman")
_WESTERN = frozenset(
    "äöüÄÖÜßéèêëáàâãçñíïóôõúûÉÁÀÂÃÇÑÍÓÔÕÚåæøÅÆØ¿¡ºª©®€£§°«»“”„…½²\u00a0\u2013\u2014\u2018\u2019"
)
_SIGNS = ("Sc", "Sm", "So", "Sk", "No", "Cc", "Cn", "Po", "Lm")
_IN_WORDS = "\u00bf\u00a1\u00ba\u00aa\u00b0\u00ae\u2122\u00a9\u00b2\u00b3\u00b7\u2019"
"""Signs beside letters: questions, ordinals, degree, trademarks, powers, middle dot, quote."""
_GUESSED = 8192
"""Bytes from which an encoding is guessed, of lines that are not ASCII."""
_FEW = 0.05


def encoding_of(start: bytes) -> str:
    """Return the encoding of a text: by a byte order mark, UTF-8, UTF-16, or a guess.

    Args:
        start: the first bytes of the text; its last character may be incomplete.
    """
    for mark, name in _BOMS:
        if start.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
        return utf16_without_mark(start) or "utf-8"
    except UnicodeDecodeError:
        pass
    text = start.decode("utf-8", "replace")
    if text.count("\ufffd") < _FEW * sum(1 for one in text if ord(one) > 127):
        return "utf-8"  # with damaged characters
    return utf16_without_mark(start) or _guessed(start)


def utf16_without_mark(start: bytes) -> str:
    """Return "utf-16-le" or "utf-16-be" if about every second byte is zero, else ""."""
    half = len(start) // 2
    low, high = start[1::2].count(0), start[::2].count(0)
    if half and max(low, high) > 0.4 * half and min(low, high) < 0.02 * half:
        return "utf-16-le" if low > high else "utf-16-be"
    return ""


def is_guess(encoding: str) -> bool:
    """Return whether nothing in a text proves its encoding."""
    return not encoding.startswith("utf")


def _guessed(start: bytes) -> str:
    lines = [line for line in start.split(b"\n")[:-1] if not line.isascii()]
    sample = b"\n".join(lines)[:_GUESSED] or start[:_GUESSED]
    try:
        from_bytes = importlib.import_module("charset_normalizer").from_bytes
    except ImportError:
        return "cp1252"
    best = from_bytes(sample, cp_isolation=_CANDIDATES, threshold=0.5).best()
    name = str(best.encoding) if best is not None else "cp1252"
    if name in _NEAR_WESTERN:
        shown = sample.decode("cp1252", "replace")
        if all(one.isascii() or one in _WESTERN for one in shown):
            name = "cp1252"
    if name in ("cp1252", *_NEAR_WESTERN):
        near = [name, "cp1252", *_NEAR_WESTERN]
        return min(near, key=lambda one: _odd_pairs(sample.decode(one, "replace")))
    return name


def _odd_pairs(text: str) -> int:
    """Count the pairs of characters that no language writes: a sign in a word, or "aB"."""
    return sum(
        (a.islower() and b.isupper())
        or (a.isalpha() and _is_sign(b))
        or (_is_sign(a) and b.isalpha())
        for a, b in pairwise(text)
        if not (a.isascii() and b.isascii())
    )


def _is_sign(one: str) -> bool:
    return not one.isascii() and one not in _IN_WORDS and unicodedata.category(one) in _SIGNS
