"""The header Retry-After."""

from __future__ import annotations

from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from ck_pro.model.backends.service_errors import retry_after_seconds


def test_all_forms_of_retry_after_are_read():
    now = 1_000_000.0
    later = formatdate(now + 30, usegmt=True)
    assert retry_after_seconds({"Retry-After": "5"}) == 5
    assert retry_after_seconds({"retry-after-ms": "1500", "Retry-After": "9"}) == 1.5
    assert retry_after_seconds({"Retry-After": later}, lambda: now) == 30
    assert retry_after_seconds({"Retry-After": later}, lambda: now + 99) == 0
    assert retry_after_seconds({"Retry-After": "-5"}) == 0
    for nothing in ({}, {"Retry-After": "soon"}, {"Retry-After": "nan"}, {"Retry-After": "inf"}):
        assert retry_after_seconds(nothing) is None


@given(st.text(max_size=40))
def test_any_value_is_read_or_ignored(value):
    seconds = retry_after_seconds({"Retry-After": value})
    assert seconds is None or seconds >= 0
