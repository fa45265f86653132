"""RTF documents: text with tracked changes, hidden text, notes, comments and tables.

Source of the format: Microsoft, "Rich Text Format Specification", version 1.9.1.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...document import Document, Facts, Part, Row

_TOKEN = re.compile(
    rb"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z'])"
    rb"|([{}])|([\r\n]+)|([^\\{}\r\n]+)"
)
_SKIPPED = frozenset(
    b"fonttbl colortbl stylesheet info pict objdata fldinst listtable listoverridetable rsidtbl "
    b"generator themedata colorschememapping datastore latentstyles xmlnstbl filetbl revtbl "
    b"pntext nonshppict bkmkstart bkmkend atnid atntime atndate atnref atrfstart atrfend".split()
)
_CELL = "\a"
"""The end of a cell; no text contains this character."""
_CHARACTERS = {
    **{b"par": "\n", b"sect": "\n", b"page": "\n", b"line": "\n", b"row": "\n", b"cell": _CELL},
    **{b"tab": "\t", b"emdash": "\u2014", b"endash": "\u2013", b"bullet": "\u2022"},
    **{b"lquote": "\u2018", b"rquote": "\u2019", b"ldblquote": "\u201c", b"rdblquote": "\u201d"},
    **{b"emspace": " ", b"enspace": " "},
}
_SYMBOLS = {b"~": "\u00a0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}
_NOTES = {b"footnote": "note", b"annotation": "comment", b"header": "header", b"footer": "footer"}
_CHARSETS = {
    **{0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5"},
    **{161: "cp1253", 162: "cp1254", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251"},
    **{222: "cp874", 238: "cp1250", 254: "cp437"},
}
_AUTHOR = "author"
_MAX_DEPTH = 1000


@dataclass(frozen=True)
class _State:
    """The properties of a group.

    Attributes:
        place: "" for text; else the destination whose text this is, such as "note".
        skipped: whether this text is not part of the document.
        change: sign of a tracked change, "+" or "-", or "".
        author: number of its author.
        after_unicode: number of characters that follow each Unicode character as its substitute.
    """

    place: str = ""
    skipped: bool = False
    hidden: bool = False
    change: str = ""
    author: int = 0
    encoding: str = "cp1252"
    after_unicode: int = 1
    in_table: bool = False


class Reader(Document):
    """An RTF document."""

    def facts(self) -> Facts:
        spans = self._spans
        hidden = []
        for sign, what in (("+", "insertions"), ("-", "deletions")):
            found = Counter(self._author(state) for state, _ in spans if state.change == sign)
            hidden += [f"tracked changes by {who!r}: {n} {what}" for who, n in found.items()]
        for place in ("comment", "note"):
            count = sum(1 for state, _ in spans if state.place == place)
            hidden += [f"{count} {place}s"] if count else []
        count = sum(state.hidden for state, _ in spans)
        hidden += [f"{count} pieces of hidden text"] if count else []
        if b"\\object" in self._data:
            hidden.append("embedded objects")
        words = sum(len(block.split()) for block in self.blocks("text"))
        return Facts([f"{words:,} words"], hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("text", "text")]

    def blocks(self, part: str) -> Iterator[str]:
        for line in self._lines():
            if _CELL in line:
                yield f"| {' | '.join(_cells(line))} |\n"
            else:
                yield f"{line.rstrip()}\n"

    def tables(self, part: str) -> list[list[Row]]:
        groups = itertools.groupby(self._lines(), key=lambda line: _CELL in line)
        return [[_cells(line) for line in lines] for is_table, lines in groups if is_table]

    def _lines(self) -> list[str]:
        shown, by = "", ""
        for state, text in self._spans:
            if state.place == _AUTHOR:
                by = text.strip()
                continue
            shown += self._shown(state, text, by if state.place == "comment" else "")
            by = "" if state.place == "comment" else by
        return shown.strip("\n").split("\n")

    def _shown(self, state: _State, text: str, by: str) -> str:
        body = text.rstrip("\n")
        if not body:
            return text
        end = text[len(body) :]
        if state.place:
            body = f"[{state.place}{f' by {by}' if by else ''}: {' '.join(body.split())}]"
        if state.hidden:
            body = "" if self.reading.hidden == "omit" else f"[hidden: {body}]"
        if state.change and body:
            who = self._author(state)
            chosen = self.reading.change_state(who)
            if chosen == "mark":
                body = f"[{state.change}{who}: {body}{state.change}]"
            elif (chosen == "accept") != (state.change == "+"):
                return ""
        return body + end

    def _author(self, state: _State) -> str:
        authors = self._authors
        return authors[state.author] if state.author < len(authors) else "an unknown author"

    @functools.cached_property
    def _data(self) -> bytes:
        return self.path.read_bytes()

    @functools.cached_property
    def _authors(self) -> list[str]:
        table = re.search(rb"\{\\\*\\revtbl(.*?)\}\s*\}", self._data, re.DOTALL)
        names = re.findall(rb"\{([^{};]*);", table[1]) if table else []
        return [name.decode("cp1252", "replace").strip() for name in names]

    @functools.cached_property
    def _fonts(self) -> dict[int, str]:
        """Encoding of each font that declares a character set."""
        found = re.findall(rb"\\f(\d+)[^{};]*?\\fcharset(\d+)", self._data[: 1 << 18])
        return {int(f): _CHARSETS[int(c)] for f, c in found if int(c) in _CHARSETS and int(c)}

    @functools.cached_property
    def _spans(self) -> list[tuple[_State, str]]:
        """The text in pieces of equal properties."""
        page = re.search(rb"\\ansicpg(\d+)", self._data[:1000])
        start = _State(encoding=f"cp{page[1].decode()}" if page else "cp1252")
        return list(_joined(_Parser(self._data, start, self._fonts).pieces()))


def _cells(line: str) -> Row:
    return [cell.strip() for cell in line.rstrip().removesuffix(_CELL).split(_CELL)]


class _Parser:
    """Walks through the tokens of a document."""

    def __init__(self, data: bytes, start: _State, fonts: dict[int, str]):
        self._data, self._fonts, self._base = data, fonts, start.encoding
        self._stack: list[_State] = []
        self._state = start
        self._bytes = bytearray()
        self._skip = 0
        self._optional = False
        self._surrogate = ""

    def pieces(self) -> Iterator[tuple[_State, str]]:
        for match in _TOKEN.finditer(self._data):
            word, number, code, symbol, brace, _, text = match.groups()
            if code is not None:
                self._add(bytes([int(code, 16)]))
                continue
            if text is not None:
                self._add(text)
                continue
            if self._bytes:
                yield self._state, self._flushed()
            if brace:
                self._group(brace)
            elif symbol:
                self._optional = symbol == b"*"
                yield self._state, _SYMBOLS.get(symbol, "")
            elif word:
                yield self._state, self._word(word, int(number) if number else None)
        if self._bytes:
            yield self._state, self._flushed()

    def _add(self, data: bytes) -> None:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._bytes += data[skipped:]

    def _flushed(self) -> str:
        data = bytes(self._bytes)
        self._bytes.clear()
        try:
            return data.decode(self._state.encoding, "replace")
        except LookupError:
            return data.decode("cp1252", "replace")

    def _group(self, brace: bytes) -> None:
        self._skip, self._optional = 0, False
        if brace == b"{":
            if len(self._stack) > _MAX_DEPTH:
                raise RecursionError
            self._stack.append(self._state)
        elif self._stack:
            self._state = self._stack.pop()

    def _word(self, word: bytes, number: int | None) -> str:
        """Apply a control word; return the character that it stands for, or ""."""
        optional, self._optional = self._optional, False
        state, on = self._state, number != 0
        if word == b"u" and number is not None:
            self._skip = state.after_unicode
            return self._unicode(number & 0xFFFF)
        if word in (b"par", b"line") and state.in_table:
            return " / "
        if word in _CHARACTERS:
            return _CHARACTERS[word]
        if word in _NOTES:
            state = replace(state, place=_NOTES[word], change="", hidden=False)
        elif word == b"atnauthor":
            state = replace(state, place=_AUTHOR, change="", hidden=False)
        elif word in _SKIPPED or optional:
            state = replace(state, skipped=True)
        elif word == b"v":
            state = replace(state, hidden=on)
        elif word in (b"revised", b"deleted"):
            state = replace(state, change=("+" if word == b"revised" else "-") if on else "")
        elif word in (b"revauth", b"revauthdel"):
            state = replace(state, author=number or 0)
        elif word == b"plain":
            state = replace(state, hidden=False, change="", encoding=self._base)
        elif word == b"f":
            state = replace(state, encoding=self._fonts.get(number or 0, self._base))
        elif word in (b"intbl", b"pard"):
            state = replace(state, in_table=word == b"intbl")
        elif word == b"uc":
            state = replace(state, after_unicode=number or 0)
        self._state = state
        return ""

    def _unicode(self, unit: int) -> str:
        """Return a character; its first half is kept until the second half follows."""
        if 0xD800 <= unit < 0xDC00:
            self._surrogate = chr(unit)
            return ""
        text, self._surrogate = self._surrogate + chr(unit), ""
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _joined(pieces: Iterator[tuple[_State, str]]) -> Iterator[tuple[_State, str]]:
    """Join adjacent pieces of text with equal properties; leave out skipped ones."""
    now, text = _State(), ""
    for state, piece in pieces:
        if not piece or state.skipped:
            continue
        plain = replace(state, encoding="", after_unicode=0, in_table=False)
        if plain != now or (state.change and text.endswith("\n")):
            if text:
                yield now, text
            now, text = plain, ""
        text += piece
    if text:
        yield now, text
