"""`TemplatedString`: like f-strings, without evaluation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import TemplateError
from ck_pro.template import TemplatedString, get_template, register_template

VALUES = {"a": SimpleNamespace(b=[1, 2], d={"k": 3.14159}), "n": 7, "w": 5, "key": "k"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{n}", "7"),
        ("{a.b[1]}", "2"),
        ("{a.b[-1]}", "2"),
        ("{a.d['k']:.2f}", "3.14"),
        ("{a.d[key]:.1f}", "3.1"),
        ("{key!r:>5}", "  'k'"),
        ("{n:>{w}}", "    7"),
        ("{{n}} {n}", "{n} 7"),
    ],
)
def test_names_attributes_items_and_formats_work_as_in_f_strings(text: str, expected: str) -> None:
    assert TemplatedString(text).format(**VALUES) == expected


@pytest.mark.parametrize(
    "text", ["{", "}", "{}", "{0}", "{n.__class__}", "{f()}", "{n + 1}", "{a.b[f()]}", "{n:{f()}}"]
)
def test_other_expressions_are_refused_on_creation(text: str) -> None:
    with pytest.raises(TemplateError, match="template 'mine'"):
        TemplatedString(text, name="mine")


@pytest.mark.parametrize(
    ("text", "what"),
    [("{zzz}", "'zzz' is missing"), ("{a.q}", "cannot fill"), ("{a.b[9]}", "cannot fill")],
)
def test_errors_of_missing_values_name_the_template(text: str, what: str) -> None:
    with pytest.raises(TemplateError, match="template 'mine'") as caught:
        TemplatedString(text, name="mine").format(**VALUES)
    assert what in str(caught.value)


def test_functions_and_texts_can_be_registered() -> None:
    def greet(who: str, **_: Any) -> list[dict[str, str]]:
        return [{"role": "user", "content": f"hi {who}"}]

    register_template("test_greet", greet)
    assert get_template("test_greet").format(who="you", more=1)[0]["content"] == "hi you"
    with pytest.raises(TemplateError, match=r"test_greet.*who"):
        get_template("test_greet").format()
    with pytest.raises(TemplateError, match="not registered"):
        get_template("test_nothing_of_the_kind")


@given(st.text())
def test_any_text_is_a_template_or_raises_a_template_error(text: str) -> None:
    try:
        template = TemplatedString(text)
    except TemplateError:
        return
    if "{" not in text and "}" not in text:
        assert template.format() == text


@given(st.text())
def test_values_are_not_parsed_as_templates(text: str) -> None:
    assert TemplatedString("<{x}>").format(x=text) == f"<{text}>"


def test_a_function_gets_the_values_in_its_signature() -> None:
    def greet(who: str, mark: str = "!") -> str:
        return f"Hello {who}{mark}"

    assert TemplatedString(greet).format(who="Ann", step_idx=3) == "Hello Ann!"
