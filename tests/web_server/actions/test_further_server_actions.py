"""The further actions, and how the page's answer to them is waited for."""

from __future__ import annotations

import base64

import pytest
from server_client import Client

pytestmark = pytest.mark.browser


def test_settling_waits_for_timers_and_requests_of_the_action(client: Client) -> None:
    client.open("/late")
    assert "'timer'" in client.act("click", "button 'Timer'")
    assert "'got slow answer'" in client.act("click", "button 'Fetch'")


def test_a_page_that_is_made_once_its_pictures_are_there(client: Client) -> None:
    assert "button 'START'" in client.open("/onload")
    assert "button 'START'" in client.go("/onload")


def test_a_page_that_never_rests_does_not_hold_up_an_action(client: Client) -> None:
    client.open("/restless")
    assert "'pressed'" in client.act("click", "button 'Press'")
    assert "Second page" in client.go("/two")


def test_dialogs_are_answered_and_told(client: Client) -> None:
    client.open("/dialogs")
    assert "[0] alert 'alert \"hello\" was accepted'" in client.act("click", "button 'Alert'")
    assert client.view["dialogs"] == ["alert 'hello' was accepted"]
    client.act("answer_dialog")
    assert "'true'" in client.act("click", "button 'Confirm'")
    client.act("answer_dialog", actionValue="dismiss")
    assert "'false'" in client.act("click", "button 'Confirm'")
    assert "confirm 'sure?' was dismissed" in client.message
    client.act("answer_dialog", text="Ada")
    assert "'Ada'" in client.act("click", "button 'Prompt'")
    assert client.tree()["dialogs"] == []


def test_covered_and_disabled_elements_are_refused_with_the_reason(client: Client) -> None:
    client.open("/cover")
    client.act("click", "button 'Below'", status=409)
    assert "covered by" in client.message and "Cookies" in client.message
    assert client.view["title"] == "Cover"
    client.act("click", "button 'No'")
    assert "Tab 0 (current): wrong" in client.act("click", "button 'Below'")
    client.go("/form")
    client.act("click", "button 'Never'", status=409)
    assert "disabled" in client.message


def test_a_vanished_element_is_not_found(client: Client) -> None:
    client.open("/cover")
    number = client.id_of("button 'No'")
    client.act("click", "button 'No'")
    client.act("click", targetId=number, status=404)
    assert number in client.message


def test_an_element_out_of_view_is_scrolled_to(client: Client) -> None:
    client.open("/long")
    view = client.tree(scope="page")
    client.view = {"yaml": view["yaml"]}
    assert "Tab 0 (current): hit" in client.act("click", "button 'Bottom'")


def test_fields_of_all_kinds(client: Client) -> None:
    client.open("/form")
    assert "value: new" in client.act("type", "textbox 'Name'", actionValue="new")
    assert "value:" not in client.act("clear", "textbox 'Name'").split("textbox 'Notes'")[0]
    assert "2024-02-03" in client.act("type", "Date 'Day'", actionValue="2024-02-03")
    client.act("type", "Date 'Day'", actionValue="soon", status=409)
    assert "fresh" in client.act("type", "textbox 'Rich'", actionValue="fresh")
    assert "some text" not in client.view["yaml"]
    assert "checked: true" in client.act("check", "checkbox 'Agree'")
    assert "checked: true" in client.act("check", "checkbox 'Agree'")
    assert "checked: false" in client.act("uncheck", "checkbox 'Agree'")
    client.act("select", "combobox 'Colour'", actionValue="Purple", status=409)
    assert "'Red', 'Green', 'Blue'" in client.message
    client.act("select_option", "combobox 'Colour'", values=["Blue"], status=409)
    client.act("type", "textbox 'Notes'", actionValue="one\ntwo")
    tree = client.act("type", "textbox 'Name'", actionValue="Ada", needEnter=True)
    assert "Tab 0 (current): Sent" in tree and "notes=one%0D%0Atwo" in client.view["url"]


def test_uploads_carry_their_content_and_no_path_is_read(client: Client) -> None:
    client.open("/form")
    content = base64.b64encode(b"hi").decode()
    tree = client.act("upload", "button 'Document'", files=[{"name": "x.txt", "buffer": content}])
    assert "x.txt" in tree
    client.act("upload", "button 'Document'", files=["/etc/passwd"], status=404)
    client.act("upload", "button 'Document'", files=[{"name": "x", "buffer": "?"}], status=400)
    client.go("/")
    client.act("click", "link 'Get file'")
    (path,) = client.view["downloaded_file_path"]
    client.go("/form")
    assert path.rsplit("/", 1)[1] in client.act("upload", "button 'Document'", files=[path])


def test_a_file_is_chosen_or_dropped(client: Client) -> None:
    client.open("/drop")
    files = [{"name": "x.txt", "buffer": base64.b64encode(b"hi").decode()}]
    assert "'chosen x.txt'" in client.act("upload", "button 'Choose'", files=files)
    assert "asks for a file" not in client.message
    client.act("upload", "StaticText 'Drop files", files=files)
    assert client.message.startswith("dropped x.txt on StaticText 'Drop files here'")
    client.act("wait_for", text="dropped hi")  # the page reads the file in its own time
    client.act("upload", "heading 'Nothing here'", files=files, status=409)
    assert "is not a file field and accepts no dropped files" in client.message
    assert "Call log" not in client.message and "\n" not in client.message


def test_the_action_that_makes_the_page_ask_for_a_file_says_so(client: Client) -> None:
    client.open("/drop")
    notice = "the page asks for a file: use the action upload"
    for _ in range(3):
        assert f"[0] alert '{notice}'" in client.act("click", "button 'Choose'")
        assert client.message.endswith(notice)
        assert notice not in client.act("click", "heading 'Nothing here'")
    content = base64.b64encode(b"hi").decode()
    files = [{"name": name, "buffer": content} for name in ("a.txt", "b.txt")]
    client.act("upload", "button 'Choose'", files=files, status=409)
    assert "takes one file, not 2" in client.message
    assert "'chosen b.txt'" in client.act("upload", "button 'Choose'", files=files[1:])


def test_a_cover_is_called_by_its_dialog(client: Client) -> None:
    tree = client.open("/label-cover")
    assert "button 'Below' covered by: dialog Letter" in tree
    client.act("click", "button 'Below'", status=409)
    assert f"covered by 'dialog Letter (id {client.id_of('dialog')})'" in client.message


def test_what_leaving_and_closing_say(client: Client) -> None:
    client.open("/leave")
    client.act("click", "button 'Arm'")
    client.act("click", "link 'Leave'")
    assert "the page asked whether to leave it: yes; the page is now" in client.message
    client.act("close_tab", status=409)
    assert client.message == "the last tab cannot be closed"


def test_keys_and_text_at_the_focus(client: Client) -> None:
    client.open("/keys")
    client.act("click", "textbox 'Field'")
    client.act("type_text", text="ab")
    assert "a b ctrl+Control ctrl+k Enter" in client.act("press", keys=["ctrl+k", "enter"])
    client.act("press", keys="Nokey", status=400)


def test_dragging(client: Client) -> None:
    client.open("/drag")
    goal = client.id_of("button 'Bin'")
    assert "Bin with card" in client.act("drag", "button 'Card'", toId=goal)


def test_a_list_made_of_other_elements(client: Client) -> None:
    client.open("/menu")
    assert "Tab 0 (current): Pear" in client.act("select", "combobox 'Fruit'", actionValue="pear")


def test_reading_and_finding(client: Client) -> None:
    client.open("/long")
    client.act("read")
    assert client.message.startswith("Part 1 of ") and "line 0" in client.message
    client.act("read", actionValue="999", status=400)
    client.act("find", text="LINE 77")
    found = client.message.split("\n")[1]
    assert "'line 77'" in found
    assert "'line 150'" in client.act("scroll_to", text="line 150")
    client.act("scroll_to", text="no such line", status=404)
    client.act("wait_for", text="line 299")
    assert client.message == "'line 299' is on the page"


def test_the_mouse_at_a_point(client: Client) -> None:
    client.open("/", elements=True)
    x, y, width, height = client.view["elements"][client.id_of("button 'Press'")]["box"]
    point = {"x": x + width / 2, "y": y + height / 2}
    assert "pressed 1" in client.act("click_at", **point)
    assert "pressed 3" in client.act("double_click_at", **point)
    client.act("move", x=5, y=5)
    client.act("drag_path", path=[{"x": 1, "y": 1}, {"x": 90, "y": 90}])
    client.act("click_at", x=5000, y=1, status=400)
    client.act("click_at", x=5, y=5, keys=["a"], status=400)


def test_tabs(tabs_client: Client) -> None:
    client = tabs_client
    client.open("/")
    tree = client.act("click", "link 'Blank two'")
    assert tree.startswith("Tab 0: Home\nTab 1 (current): Two\n")
    assert [tab["current"] for tab in client.view["tabs"]] == [False, True]
    client.act("new_tab", actionValue=client.site + "/form")
    assert client.page == "2"
    assert "Tab 0 (current): Home" in client.act("switch_tab", actionValue="0")
    assert "Tab 1" not in client.act("close_tab", actionValue="1")
    client.act("switch_tab", actionValue="1", status=404)


def test_history(client: Client) -> None:
    client.open("/")
    client.act("goback")
    assert "no page to go back to" in client.message
    client.go("/two")
    assert "Tab 0 (current): Home" in client.act("goback")
    assert "Tab 0 (current): Two" in client.act("goforward")
    client.act("new_tab", status=400)


def test_what_changed_since_an_earlier_observation(client: Client) -> None:
    client.open("/long")
    first, number = client.view["yaml"], client.view["number"]
    assert number == 1 and client.view["delta"] == ""
    client.act("move", x=5, y=5, since=number)
    assert client.view["delta"].endswith("since observation 1:\nnothing else")
    client.act("scroll", actionValue="down", since=number)
    delta = client.view["delta"] or client.view["yaml"]
    client.act("scroll", actionValue="up", since=number)
    assert client.view["yaml"] == first and client.view["number"] == 4
    client.act("wait", timeout=1, since="no number", status=400)
    client.act("wait", timeout=1, since=99)
    assert client.view["delta"] == ""
    assert "[2]" in delta
