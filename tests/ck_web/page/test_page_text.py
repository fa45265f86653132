"""What is read from a page's text: changes, cookie banners, notices, pictures. All pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_web.page.banners import find_banner
from ck_web.page.changes import (
    PageChanges,
    element_changes,
    field_values,
    is_other_page,
    lost_values,
    page_change,
)
from ck_web.page.notices import mostly_visual, page_notices
from ck_web.page.page_text import lines_of
from ck_web.page.state import WebState

HEAD = "Tab 0 (current): T\n[1] RootWebArea 'News'\n\t[2] scrollbar 'the whole page is in view'\n"


def _page(*lines: str, title: str = "News") -> str:
    return HEAD.replace("News", title) + "\n".join(f"\t{line}" for line in lines)


# --- lines and changes ---------------------------------------------------------------------------


def test_a_line_has_id_role_name_and_states() -> None:
    first, second, third = lines_of(_page("[3] link 'it's' value: 'x' focused: true"))
    assert (first.id, second.depth) == ("1", 1)
    assert (third.role, third.name, third.states) == ("link", "it's' value: 'x", " focused: true")
    assert str(third).startswith("[3] link") and "focused" not in third.without_focus


def test_changed_new_and_removed_elements_are_reported() -> None:
    before = _page("[3] link 'A'", "[4] textbox 'B' value: ", "[5] button 'C' focused: true")
    after = _page("[5] button 'C'", "[4] textbox 'B' value: x focused: true", "[9] alert 'D'")
    assert element_changes(before, after) == (
        "message: [9] alert 'D'; now on the page: [4] textbox 'B' value: x; removed: [3] link 'A'"
    )
    assert element_changes(after, after) == ""


def test_an_element_scrolled_out_of_view_is_not_reported_as_removed() -> None:
    before = _page("[3] link 'A'")
    after = _page("[4] link 'B'").replace("the whole page is in view", "9 px above, 0 px below")
    assert element_changes(before, after) == (
        "new on the page: [4] link 'B'; scrolled: [2] scrollbar '9 px above, 0 px below'"
    )


def test_lines_of_the_server_are_not_changes_of_the_page() -> None:
    before = _page("[0] alert 'HTTP status 404'", "[3] link 'A'")
    after = _page("[3] link 'A'", "[0] alert 'alert 'x' was accepted'")
    assert element_changes(before, after) == ""


def test_messages_come_first_and_nameless_structure_last() -> None:
    rows = [f"[{n}] link 'Row {n}'" for n in range(20, 26)]
    alert = ("[40] alert ''", "\t[42] list ''", "\t\t[41] StaticText 'No'")
    after = _page("[3] link 'A'", "[10] list ''", *rows, *alert)
    assert element_changes(_page("[3] link 'A'"), after) == (
        "message: [41] StaticText 'No'; new on the page: [20] link 'Row 20'; [21] link 'Row 21'; "
        "[22] link 'Row 22' and 6 more"
    )


def test_the_element_acted_on_comes_first_with_its_new_state() -> None:
    rows = [f"[{n}] link 'Row {n}'" for n in range(20, 26)]
    before = _page("[3] link 'A'", "[9] checkbox 'Oil' checked: false")
    after = _page(
        *("[40] alert 'Saved'", *rows, "[9] checkbox 'Oil' checked: true"),
        *("\t[50] option 'a'", "[51] textbox 'Mail' invalid: true"),
    )
    assert element_changes(before, after, "9", "", ()) == (
        "now checked: true; message: [40] alert 'Saved'; [51] textbox 'Mail' invalid: true; "
        "new on the page: [20] link 'Row 20'; [21] link 'Row 21'; [22] link 'Row 22' and 4 more; "
        "removed: [3] link 'A'"
    )
    renamed = _page("[3] link 'A'", "[9] checkbox 'Gas' checked: true")
    assert element_changes(before, renamed, "9") == "now [9] checkbox 'Gas' checked: true"


def test_a_result_does_not_repeat_the_options_of_a_list() -> None:
    line = "[9] combobox 'Size' value: {} options: 3 (S (36) | M | L)"
    before, after = _page(line.format("S (36)")), _page(line.format("M"))
    assert element_changes(before, after, "9") == "now value: M"
    assert element_changes(before, after) == "now on the page: [9] combobox 'Size' value: M"


def test_an_element_out_of_view_is_reported_with_role_and_name() -> None:
    page = _page("[3] link 'A'")
    unseen = "[9] combobox 'Size' value: M"
    assert element_changes(page, page, "9", unseen) == "now [9] combobox 'Size' value: M"
    assert element_changes(page, page, "9", "[9] button 'Go'") == ""


def test_texts_in_messages_are_known_by_their_class() -> None:
    before = _page("[3] link 'A'", "[5] StaticText 'old'")
    after = _page(
        "[3] link 'A'", "[5] StaticText 'old'", "[7] StaticText 'x'", "[8] StaticText 'y'"
    )
    assert element_changes(before, after, messages=("8", "5")) == (
        "message: [8] StaticText 'y'; new on the page: [7] StaticText 'x'"
    )


def _state(url: str, *lines: str, messages: tuple[str, ...] = ()) -> WebState:
    tree = _page(*lines)
    return WebState(step_url=url, title="T", current_accessibility_tree=tree, messages=messages)


def test_another_page_is_reported_with_its_messages_compared_by_content() -> None:
    before = _state("http://x/1", "[3] link 'A'", "[4] alert 'Be careful'")
    after = _state("http://x/2", "[13] link 'B'", "[14] alert 'Be careful'", "[15] status 'Saved'")
    change = page_change(before, after)
    assert change.text == "now at http://x/2 ('T'); message: [15] status 'Saved'"
    assert change.is_other_page


def test_a_reload_at_the_same_address_reports_what_is_new_by_content() -> None:
    kept = ["[3] link 'A'", "[4] link 'B'", "[5] link 'C'"]
    before = _state("http://x/1", *kept)
    after = _state(
        "http://x/1",
        *(line.replace("[", "[1") for line in kept),
        *("[21] StaticText 'Comment added'", "[22] StaticText 'hello'"),
        messages=("21",),
    )
    for stayed in (None, False):
        assert page_change(before, after, stayed=stayed).text == (
            "now at http://x/1 ('T'); message: [21] StaticText 'Comment added'; "
            "new on the page: [22] StaticText 'hello'"
        )


def test_a_page_that_now_asks_for_a_login_is_reported() -> None:
    form = ["[8] heading 'Log in' level: 1", "[9] textbox 'Password'"]
    after = _state("http://x/1", "[3] link 'A'", *form)
    assert page_change(_state("http://x/1", "[3] link 'A'"), after).text.endswith(
        "; the page asks for a login"
    )
    assert "login" not in page_change(after, _state("http://x/2", *form)).text


def test_values_that_a_form_lost_are_reported() -> None:
    page = _page(
        *("[3] textbox 'Name' value: \"a: b\" required: true", "[4] checkbox 'Oil' checked: true"),
        *("[5] combobox 'Size' value: M options: 2 (S | M)", "[6] textbox 'Mail'"),
    )
    known = field_values(page)
    assert lost_values(known, page) == ""
    empty = page.replace(' value: "a: b"', "").replace("checked: true", "checked: false")
    assert lost_values(known, empty) == (
        "form values were lost: textbox 'Name' had 'a: b', checkbox 'Oil' had 'true'"
    )
    assert lost_values(known, _page("[3] link 'A'")) == ""


def test_going_back_reports_the_values_that_the_form_lost() -> None:
    form = "[3] textbox 'Name'"
    filled, empty = _state("http://x/1", f"{form} value: Ann"), _state("http://x/1", form)
    other = _state("http://x/2", "[9] link 'B'")

    def back(between: WebState, returns: bool = True) -> str:
        changes = PageChanges()
        changes.of_action(filled, between, "", None, "3", "", returns=False)
        return changes.of_action(between, empty, "", None, "", "", returns=returns).text

    assert back(other) == (
        "now at http://x/1 ('T'); form values were lost: textbox 'Name' had 'Ann'"
    )
    assert back(other, returns=False) == "now at http://x/1 ('T')"
    assert "lost" not in back(filled)  # the page was not left


def test_a_tab_that_opened_is_a_change() -> None:
    before = _page("[3] link 'A'")
    assert element_changes(before, "Tab 1: other\n" + before)
    assert not element_changes("Tab 1: other\n" + before, "Tab 1: another\n" + before)


def test_a_page_loaded_again_is_another_page() -> None:
    def state(*lines: str) -> WebState:
        return WebState(current_accessibility_tree=_page(*lines))

    before, after = state("[3] link 'A'"), state("[7] link 'A'")
    assert is_other_page(before, after) and not is_other_page(before, after, stayed=True)
    assert not is_other_page(before, before)
    assert not is_other_page(before, state("[7] link 'A'", "[3] link 'A'"))
    assert not is_other_page(before, state())
    text = after.current_accessibility_tree.replace("the whole page is in view", "9 px above")
    assert not is_other_page(before, WebState(current_accessibility_tree=text))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_compared(before: str, after: str) -> None:
    assert not element_changes(before, before)
    assert "\n" not in element_changes(HEAD + before, HEAD + after)
    page_notices(before)
    find_banner(f"{HEAD}\t[3] dialog 'cookies'\n\t\t{before}")


# --- cookie banners ------------------------------------------------------------------------------

DIALOG = (
    "[3] link 'More'",
    "[4] dialog 'Privacy'",
    "\t[5] StaticText 'We and our partners use cookies.'",
    "\t[6] button 'Accept all'",
    "\t[7] button 'Manage options'",
)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("Reject all", True),
        ("Decline", True),
        ("Only necessary", True),
        ("Use necessary cookies only", True),
        ("Continue without accepting", True),
        ("Reject cookies", True),
        ("I do not agree", True),
        ("Alle ablehnen", True),
        ("Nur notwendige Cookies", True),
        ("Tout refuser", True),
        ("Rechazar todas", True),
        ("Rifiuta tutti", True),
        ("Close", True),
        ("\u00d7", True),
        ("Learn more about our partners", False),
        ("Reject the offer of Mr Smith", False),
        ("Delete account", False),
    ],
)
def test_a_dialog_is_answered_with_the_least_consent(name: str, answers: bool) -> None:
    banner = find_banner(_page(*DIALOG, f"\t[8] button '{name}'"))
    assert banner is not None
    assert (banner.answer.id if banner.answer else None) == ("8" if answers else None)


@pytest.mark.parametrize(
    ("box", "answer"),
    [
        ("checkbox 'Ads' checked: false", "8"),
        ("checkbox 'Ads' checked: true", None),
        ("checkbox 'Needed' checked: true disabled: true", None),
    ],
)
def test_choices_without_a_ticked_box_are_saved(box: str, answer: str | None) -> None:
    lines = (*DIALOG, f"\t[9] {box}", "\t[8] button 'Save choices'")
    banner = find_banner(_page(*lines))
    assert banner is not None
    assert (banner.answer.id if banner.answer else None) == answer


def test_a_notice_is_accepted_but_a_banner_with_choices_is_not() -> None:
    banner = find_banner(_page(*DIALOG))
    assert banner and banner.answer is None and [b.id for b in banner.buttons] == ["6", "7"]
    banner = find_banner(_page(*DIALOG[:4]))
    assert banner and banner.answer and banner.answer.id == "6"


def test_frames_and_named_regions_are_banners() -> None:
    inside = ("\t[5] StaticText 'We value your privacy'", "\t[6] button 'Reject'")
    for head in ("Iframe 'SP Consent Message'", "region 'Cookies'", "complementary 'Cookie bar'"):
        banner = find_banner(_page(f"[4] {head}", *inside))
        assert banner and banner.answer and banner.answer.id == "6", head
    assert find_banner(_page("[4] region 'Newsletter'", *inside)) is None
    covered = ("[4] region 'Cookies'", inside[0], inside[1] + " covered by: dialog (id 9)")
    assert find_banner(_page(*covered)) is None
    page = _page("[4] region 'Cookies'", *inside, "[9] dialog 'Ask'")
    state = " covered: everything outside dialog Ask (id 9)"
    lines = page.replace("RootWebArea 'News'", f"RootWebArea 'News'{state}")
    assert lines != page and find_banner(page) and find_banner(lines) is None


RUN = (
    "[3] heading 'News' level: 1",
    "[4] StaticText 'We use cookies to improve this site.'",
    "[5] link 'policy'",
    "[6] button 'Accept all'",
    "[7] button 'Reject all'",
)


def test_a_run_of_lines_is_a_banner() -> None:
    banner = find_banner(_page(*RUN))
    assert banner and banner.answer and banner.answer.id == "7"


@pytest.mark.parametrize(
    "page",
    [
        _page(*RUN, title="Cookie settings"),
        _page("[3] heading 'Your cookies' level: 1", *RUN[1:]),
        _page(*RUN[:3], "[6] textbox 'Mail'", RUN[4], "[8] button 'Accept'"),
        _page(*RUN[:3], "[7] button 'Reject all'"),
        _page("[4] StaticText 'Oat biscuits'", *RUN[3:]),
        _page("[4] dialog 'Cookies of the month'", "\t[5] textbox 'Mail'", "\t[6] button 'OK'"),
        _page("[4] dialog 'Delete?'", "\t[5] button 'Accept'", "\t[6] button 'Decline'"),
        _page("[4] dialog 'Terms'", "\t[5] StaticText 'Eat cookies'", "\t[6] button 'Delete'"),
        _page("[4] dialog 'Our privacy policy'", "\t[5] button 'Accept'", "\t[6] button 'Decline'"),
        _page(
            "[4] dialog 'Consent of the patient'",
            "\t[5] button 'I agree'",
            "\t[6] button 'Decline'",
        ),
        _page("[4] dialog 'Your set of cookies'", "\t[5] button 'OK'"),
        _page("[3] article 'Cookies'", "\t[4] link 'Accept'"),
        "",
    ],
)
def test_other_dialogs_are_not_banners(page: str) -> None:
    assert find_banner(page) is None


# --- walls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "title", "said"),
    [
        (["[3] checkbox 'I'm not a robot'"], "Shop", "a captcha or a similar test"),
        (["[3] textbox 'Enter the CAPTCHA'"], "Shop", "a captcha or a similar test"),
        (
            ["[3] heading 'Verify you are human' level: 1"],
            "Just a moment...",
            "a captcha or a similar test",
        ),
        (
            ["[3] Iframe 'Widget with a Cloudflare security challenge'"],
            "x",
            "a captcha or a similar test",
        ),
        (["[3] textbox 'Mail'", "[4] textbox 'Password'"], "Sign in", "use the task's credentials"),
        (["[3] StaticText 'Please log in to continue'"], "Shop", "asks for a login"),
        (["[3] heading 'Not found' level: 1"], "404 Not Found", "an error page"),
        (["[3] heading '503 Service Unavailable' level: 1"], "", "an error page"),
        (["[3] heading 'How CAPTCHA works' level: 1"], "Captcha", ""),
        (["[3] Iframe 'reCAPTCHA'"], "Shop", ""),
        (["[3] textbox 'Password'", "[4] heading 'Lamps' level: 1"], "Shop", ""),
        (["[3] link 'Sign in'"], "Shop", ""),
        (["[0] alert 'HTTP status 404'"], "404 Not Found", ""),
        (["[3] heading '404 lamps' level: 2"], "Shop", ""),
        ([f"[{n}] link 'x'" for n in range(3, 60)], "Not found: a novel", ""),
    ],
)
def test_obstacles_and_only_obstacles_are_noted(lines: list[str], title: str, said: str) -> None:
    notices = page_notices(_page(*lines, title=title))
    assert len(notices) == (1 if said else 0) and said in "".join(notices)
    assert "\n" not in "".join(notices)


# --- pictures ------------------------------------------------------------------------------------

VIEW = {"width": 1000, "height": 500}


@pytest.mark.parametrize(
    ("lines", "boxes", "visual"),
    [
        (["[3] Canvas ''"], {"3": {"role": "Canvas", "box": "0,0,900,400"}}, True),
        (["[3] image 'x'"], {"3": {"role": "image", "box": [0, 0, 900, 400]}}, True),
        (["[3] image 'x'"], {"3": {"role": "image", "box": [0, 450, 900, 400]}}, False),
        (["[3] image 'x'"], {"3": {"role": "image", "box": [0, 0, 90, 40]}}, False),
        (["[3] image 'x'"], {"3": {"role": "image", "box": "?"}}, False),
        (["[3] image 'x'"], {}, False),
        (
            [*(f"[{n}] link 'word {n} of a menu'" for n in range(3, 30)), "[40] image 'x'"],
            {"40": {"role": "image", "box": [0, 0, 900, 400]}},
            False,
        ),
    ],
)
def test_pages_of_pictures_are_recognized(lines: list[str], boxes: dict, visual: bool) -> None:
    assert mostly_visual(_page(*lines), boxes, VIEW) is visual
