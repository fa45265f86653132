"""Guessed encodings of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.files.encodings import encoding_of, is_guess

TEXTS = {
    "cp1252": "Größe;Preis\nLampe für Küche;5,50 €\nnaïve façade;déjà vu\n",
    "cp1250": "Jméno;Město\nDvořák;Plzeň\nŠtěpán;České Budějovice\n",
    "cp1251": "\u0418\u043c\u044f;\u0413\u043e\u0440\u043e\u0434\n"
    "\u0410\u043d\u043d\u0430;\u041c\u043e\u0441\u043a\u0432\u0430\n",
    "shift_jis": "名前,都市\n太郎,東京\n花子,大阪\nランプ,3\n",
    "gb18030": "姓名,城市\n李明,北京\n王芳,上海\n",
    "euc_kr": "이름,도시\n김철수,서울\n이영희,부산\n",
    "utf-16-le": "item;n\nlamp;3\n",
    "utf-16-be": "item;n\nlamp;3\n",
    "utf-8": "Größe 名前\n",
}

POLISH = "lot;miasto\nL1;Łódź\nL2;Kraków\nL3;Gdańsk\n"
"""In cp1252 all its letters are letters or signs, but a sign stands in a word."""
SPANISH = "¿Qué? ¡No! £5; nº 3\n"


@pytest.mark.parametrize(("text", "encoding"), [(POLISH, "cp1250"), (SPANISH, "cp1252")])
def test_a_sign_inside_a_word_rules_out_an_encoding(text: str, encoding: str) -> None:
    assert encoding_of(text.encode(encoding)) == encoding


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_guess_reads_the_text_as_written(encoding: str) -> None:
    data = TEXTS[encoding].encode(encoding)
    assert data.decode(encoding_of(data)) == TEXTS[encoding]
    assert is_guess(encoding_of(data)) is not encoding.startswith("utf")


def test_a_few_damaged_bytes_leave_a_text_utf_8() -> None:
    assert encoding_of("Größe ".encode() * 100 + b"\xff\n") == "utf-8"


def test_a_character_incomplete_at_the_end_of_the_sample_is_no_damage() -> None:
    assert encoding_of("Größe".encode()[:3]) == "utf-8"


@given(st.binary(max_size=300))
def test_every_guess_is_an_encoding(data: bytes) -> None:
    data.decode(encoding_of(data), "replace")
