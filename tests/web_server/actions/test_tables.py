"""Rows of tables: all of the document, as the clean text that a person sees."""

from __future__ import annotations

from typing import Any

import pytest
from server_client import LEAN, Client
from server_site import PAGES

from web_server.actions.content import tables

pytestmark = pytest.mark.browser

TINY = "position:absolute;width:1px;height:1px;overflow:hidden"
ICON = "style='display:inline-block;width:9px;height:9px'"
PEOPLE = f"""<title>People</title><h1>People</h1>
<table><caption>People</caption><thead><tr><th rowspan=2>Name<th colspan=2>Marks<th>Active</tr>
<tr><th>A<th>B<th></tr></thead><tbody>
<tr><td><a href=x aria-label='Open the page of Ada'>Ada</a><td>1<td>10<sup>3</sup>5<td>
<img src=yes.svg alt=True width=9 height=9></tr>
<tr><td rowspan=2>Bob<td colspan=2>none<td colspan=100><i {ICON} title=False></i></tr>
<tr><td><input value=two><td><input type=checkbox checked><td><i class='icon-check' {ICON}></i></tr>
<tr hidden><td>gone<td>0<td>0<td></tr>
<tr><td>Cy <span style='opacity:0'>secret</span><td><s>5</s> 4<td>a<br>b<td>
<i {ICON.replace("9px'", "9px;background:url(x.png)'")}></i><span style='{TINY}'>Yes</span></tr>
<tr><td>Di <button aria-label='Options of Di'><svg width=9 height=9></svg></button><td><button
aria-label=Edit><svg width=9 height=9></svg></button><td><span style='{TINY}'>bait</span><td></tr>
</tbody></table>"""
GRID = """<title>Grid</title><div role=grid aria-label=Stock aria-rowcount=%d>
<div><div role=row aria-rowindex=3><span role=gridcell aria-colindex=1>b1</span></div>
<div role=row aria-rowindex=2><span role=gridcell aria-colindex=1>a1</span></div></div>
<div role=row aria-rowindex=1><span role=columnheader aria-colindex=1>One</span>
<span role=columnheader aria-colindex=2>Two</span></div>
<div role=row aria-rowindex=2><span role=gridcell aria-colindex=2>a2</span></div>
<div role=row aria-rowindex=3><span role=gridcell aria-colindex=2>b2</span></div></div>"""


def table(client: Client, status: int = 200, **more: Any) -> dict[str, Any]:
    where = {"browserId": client.browser, "pageId": client.page, "actionName": "table"}
    reply = client.post("performAction", **{**LEAN, **where, **more})
    assert reply.status_code == status, reply.text
    client.message = reply.json().get("message") or reply.json().get("error")
    data: dict[str, Any] = reply.json().get("data") or {}
    return data


def test_cells_have_the_text_that_a_person_sees(client: Client) -> None:
    PAGES["/people-table"] = PEOPLE
    client.open("/people-table")
    found = table(client)
    assert found["rows"] == [
        ["Name", "Marks", "Marks", "Active"],
        ["Name", "A", "B", ""],
        ["Ada", "1", "10^(3)5", "True"],
        ["Bob", "none", "none", "False"],
        ["Bob", "two", "[x]", "[icon-check]"],
        ["Cy", "~~5~~ 4", "a b", "Yes"],
        ["Di", "Edit", "", ""],
    ]
    assert found["columns"] == ["Name", "Marks / A", "Marks / B", "Active"]
    assert (found["header"], found["total"]) == (2, 7)
    assert "rows of " in client.message and "table 'People'" in client.message


def test_rows_out_of_view_are_read_too(client: Client) -> None:
    rows = "".join(f"<tr><td>{i}<td>row {i}" for i in range(400))
    PAGES["/long-table"] = f"<title>L</title><table><tr><th>No<th>Text{rows}</table>"
    client.open("/long-table")
    found = table(client)["rows"]
    assert len(found) == 401 and found[-1] == ["399", "row 399"]
    assert table(client, start=399)["rows"] == [["398", "row 398"], ["399", "row 399"]]


def test_a_grid_joins_the_parts_of_its_rows(client: Client) -> None:
    PAGES["/grid-table"] = GRID % 3
    client.open("/grid-table")
    found = table(client)
    assert found["rows"] == [["One", "Two"], ["a1", "a2"], ["b1", "b2"]]
    assert found["columns"] == ["One", "Two"]


def test_missing_rows_are_an_error_unless_the_request_accepts_a_part(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    PAGES["/virtual-table"] = GRID % 5000
    client.open("/virtual-table")
    table(client, status=409)
    assert "grid 'Stock' has 5,000 rows, and the document only 3 of them" in client.message
    assert len(table(client, start=0)["rows"]) == 3
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    PAGES["/people-table"] = PEOPLE
    client.open("/people-table")
    table(client, status=409)
    assert "has 7 rows, and one call returns 3 of them: call it with start=0" in client.message
    assert [row[0] for row in table(client, start=3)["rows"]] == ["Bob", "Bob", "Cy"]
    monkeypatch.setattr(tables, "MAX_TEXT", 60)
    assert len(table(client, start=0)["rows"]) < 3


def test_a_table_is_named_by_number_name_or_an_element(client: Client) -> None:
    plain = "<tr><td>{0}1</td><td>{0}2</td></tr><tr><td>{0}3</td><td>{0}4</td></tr>"
    PAGES["/tables"] = (
        "<title>T</title><a href=x>Second</a><div id=both role=region aria-label=Both>"
        f"<table border=1>{plain.format('a')}</table><table border=1><caption>Second</caption>"
        f"{plain.format('b')}</table></div><p>text</p><table>{plain.format('c')}</table>"
    )
    client.open("/tables")
    second = [["b1", "b2"], ["b3", "b4"]]
    assert table(client, actionValue="2")["rows"] == second
    assert table(client, targetId="'Second'")["rows"] == second
    assert table(client, targetId=client.id_of("row 'b3"))["rows"] == second
    assert table(client, targetId=client.id_of("StaticText 'c1"))["rows"][1] == ["c3", "c4"]
    table(client, status=409, targetId=client.id_of("region 'Both'"))
    assert "contains 2 tables: give the id of one" in client.message
    table(client, status=409, targetId=client.id_of("StaticText 'text'"))
    assert "is not in a table" in client.message
    table(client, status=404, actionValue="3")
    assert "the page has 2 tables" in client.message
    table(client, status=400, actionValue="x")


def test_tables_without_header_or_borders_count_if_there_are_no_others(client: Client) -> None:
    PAGES["/plain-table"] = "<title>P</title><table><tr><td>a<td>b<tr><td>c<td>d</table>"
    client.open("/plain-table")
    found = table(client)
    assert found["rows"] == [["a", "b"], ["c", "d"]] and found["columns"] == []
    client.open("/two")
    table(client, status=404)
    assert "the page has no table" in client.message


def test_a_grid_that_draws_rows_on_scrolling_is_not_taken_for_whole(client: Client) -> None:
    row = "<div role=row style='position:absolute;top:%dpx'><span role=gridcell>r%d</span></div>"
    rows = "".join(row % (i * 30, i) for i in range(8))
    PAGES["/drawn-rows"] = (
        "<title>V</title><div role=grid style='height:200px;overflow:auto'>"
        f"<div style='height:30000px;position:relative'>{rows}</div></div>"
    )
    client.open("/drawn-rows")
    table(client, status=409)
    assert "has 8 rows in the document now, and space for more" in client.message
    assert len(table(client, start=0)["rows"]) == 8
    spacer = "<tr style='height:9000px'><td></td></tr>"
    PAGES["/spaced-rows"] = f"<title>S</title><table><tr><th>a<tr><td>b{spacer}</table>"
    client.open("/spaced-rows")
    table(client, status=409)
    assert "space for more" in client.message
    tall = "".join(f"<tr style='height:50px'><td>{i}" for i in range(40))
    PAGES["/boxed-rows"] = (
        "<title>B</title><div style='height:99px;overflow:auto'>"
        f"<table><tr><th>a{tall}</table></div>"
    )
    client.open("/boxed-rows")
    assert table(client)["total"] == 41


def test_tables_in_frames_and_shadow_trees_are_counted(client: Client) -> None:
    rows = "<table border=1><tr><th>{0}<tr><td>{0}1</table>"
    PAGES["/framed-table"] = rows.format("f")
    PAGES["/all-tables"] = (
        f"<title>A</title><div id=h></div><iframe src=/framed-table></iframe>{rows.format('m')}"
        f"<script>h.attachShadow({{mode: 'closed'}}).innerHTML = '{rows.format('s')}'</script>"
    )
    client.open("/all-tables")
    found = [table(client, actionValue=str(n))["rows"] for n in (1, 2, 3)]
    assert found == [[["s"], ["s1"]], [["f"], ["f1"]], [["m"], ["m1"]]]
