"""The site that all tests of the browser server share."""

from __future__ import annotations

import pytest
from server_site import PAGES, ByPath


def test_a_page_of_another_file_cannot_be_replaced() -> None:
    PAGES["/own"] = "first"
    PAGES["/own"] = "second"
    assert PAGES["/own"] == "second"
    with pytest.raises(ValueError, match=r"^/two belongs to .*server_site\.py: choose another"):
        PAGES["/two"] = "mine"
    assert ByPath({"/a": 1})["/a"] == 1
