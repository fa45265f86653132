"""Observations of real pages: ids, text, states, viewport, round trips."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observe_lab import Lab, bare
from paths import SUPPORT

from web_server.observe.target import ElementGone, Target

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def ids(body: str) -> dict[str, int]:
    """Id by the rest of the line."""
    found = re.findall(r"^\t*\[(\d+)\] (.*)$", body, re.MULTILINE)
    return {text: int(number) for number, text in found}


# -- lines ---------------------------------------------------------------------------------------

LINES = [
    ("<p>Some <b>bold</b> text with a <a href=x>link</a> inside.</p>",
     ["StaticText 'Some bold text with a link inside.'", "link 'link'"]),
    ("<p>by <a href=x>A. Person</a>, today</p>",
     ["StaticText 'by A. Person, today'", "link 'A. Person'"]),
    ("<p>see <a href=x>a name as long as it takes to be dear</a></p>",
     ["StaticText 'see'", "link 'a name as long as it takes to be dear'"]),
    ("<p><a href=x>A</a> | <a href=y>B</a> (<a href=z>C</a>)</p>",
     ["link 'A'", "link 'B'", "link 'C'"]),
    ("<p>a <a href=x><img src=x alt=pic width=9 height=9> b</a> c <a href=y>d</a></p>",
     ["StaticText 'a pic b c d'", "link 'pic b'", "link 'd'"]),
    ("<p>one</p><p>two</p>", ["StaticText 'one'", "StaticText 'two'"]),
    ("<div>a<br>b</div>", ["StaticText 'a b'"]),
    ("<label>Name <input required></label>", ["textbox 'Name' required: true"]),
    ("<input type=password aria-label=Key value=s3cret>", ["textbox 'Key' value: ••••"]),
    ("<input aria-label=A value=\"it's\">", ["textbox 'A' value: it\u2019s"]),
    ("<input aria-label=A placeholder='a date'>", ["textbox 'A' placeholder: a date"]),
    ("<input type=checkbox aria-label=A checked>", ["checkbox 'A' checked: true"]),
    ("<input type=checkbox aria-label=A id=m><script>m.indeterminate = true</script>",
     ["checkbox 'A' checked: mixed"]),
    ("<input type=radio aria-label=A>", ["radio 'A' checked: false"]),
    ("<label><input type=checkbox style='position: absolute; width: 0; height: 0'> Yes</label>",
     ["LabelText 'Yes' checked: false"]),
    ("<input type=range aria-label=A min=1 max=9 value=4>", ["slider 'A' value: 4 min: 1 max: 9"]),
    ("<input type=date aria-label=A value=2024-05-06>", ["Date 'A' value: 2024-05-06"]),
    ("<input aria-label=A readonly value=x>", ["textbox 'A' value: x readonly: true"]),
    ("<input aria-label=A aria-invalid=true>", ["textbox 'A' invalid: true"]),
    ("<textarea aria-label=A disabled>t\nu</textarea>",
     ["textbox 'A' value: t \u21b5 u multiline: true disabled: true"]),
    ("<style>b { content: url(data:image/gif;base64,R0lGODlhAQABAAAAACw=#/x.gif);"
     " display: inline-block; width: 9px; height: 9px }</style><b id=n onclick=1></b>",
     ["image '' hint: n clickable: true"]),
    ("<svg width=99 height=99><rect width=9 height=9 onclick=1 fill=blue /></svg>",
     ["generic '' hint: rect color: rgb(0,0,255) size: 9x9 clickable: true"]),
    ("<p><button class='ui-button ui-widget ui-state-default ui-corner-all up'></button>"
     "<button class='ui-button ui-widget ui-state-default ui-corner-all down'></button>",
     ["button '' hint: up", "button '' hint: down"]),
    ("<i style='cursor: se-resize; display: block; width: 9px; height: 9px' class=grip></i>",
     ["generic '' hint: grip draggable: true"]),
    ("<input id=e aria-label=A><script>e.focus()</script>", ["textbox 'A' focused: true"]),
    ("<button aria-pressed=false>A</button>", ["button 'A' pressed: false"]),
    ("<details><summary>A</summary>b</details>", ["DisclosureTriangle 'A' expanded: false"]),
    ("<details open><summary>A</summary>b</details>",
     ["DisclosureTriangle 'A' expanded: true", "StaticText 'b'"]),
    ("<h2>Title <i>x</i></h2>", ["heading 'Title x' level: 2"]),
    ("<h3><a href=x>T</a></h3>", ["heading 'T' level: 3", "link 'T'"]),
    ("<select aria-label=A><option>r<option selected>b</select>",
     ["combobox 'A' value: b options: 2 (r | b)"]),
    ("<fieldset><legend>Kind</legend><label><input type=radio>x</label></fieldset>",
     ["group 'Kind'", "radio 'x' checked: false"]),
    ("<table><tr><th>A<th>B<tr><td>1<td>2<tr><td><td>3</table>",
     ["table ''", "row 'A | B'", "row '1 | 2'", "row '| 3'"]),
    ("<table><caption>T</caption><tr><td>x<td><a href=q>go</a></table>",
     ["table 'T'", "row 'x | go'", "link 'go'"]),
    ("<img src=x alt='a cat'><img src=x alt=''>", ["image 'a cat'"]),
    ("<a href=/some/page><img src=/img/arrow.png width=9 height=9></a>",
     ["link '' hint: page url: /some/page"]),
    ("<div role=dialog aria-label=D>text</div>", ["dialog 'D'", "StaticText 'text'"]),
    ("<div hidden>no</div><div style='visibility: hidden'>no</div><p>yes</p>",
     ["StaticText 'yes'"]),
    ("<div style='text-transform: uppercase'>loud</div>", ["StaticText 'LOUD'"]),
    ("<style>p::before { content: 'No. ' }</style><p>5</p>", ["StaticText 'No. 5'"]),
    ("<meter aria-label=A value=.3></meter>", ["meter 'A' value: 0.3"]),
    ("<div id=e contenteditable>my <b>text</b></div>",
     ["generic '' value: my text editable: true"]),
    ("<style>nav::before { content: 'Go to' }</style><nav><a href=a>A</a></nav>",
     ["navigation ''", "StaticText 'Go to'", "link 'A'"]),
    ("<button aria-haspopup=menu aria-expanded=true aria-controls=m>M</button><p>t</p>"
     "<div role=menu id=m><div role=menuitem>Cut</div></div>",
     ["button 'M' hasPopup: menu expanded: true", "menu ''", "menuitem 'Cut'", "StaticText 't'"]),
    ("<button aria-haspopup=true aria-expanded=true>M</button>",
     ["button 'M' hasPopup: menu open: true"]),
    ("before <span id=h>in <a href=x>A</a> <a href=y>B</a></span>"
     "<script>h.addEventListener('mouseenter', () => 0)</script>",
     ["StaticText 'before'", "StaticText 'in'", "link 'A'", "link 'B'"]),
    ("<button>it's [4] button 'x'</button>", ["button 'it's [4] button \u2019x\u2019'"]),
]  # fmt: skip


@pytest.mark.parametrize(("html", "lines"), LINES, ids=[html[:40] for html, _ in LINES])
def test_elements_become_lines(lab: Lab, html: str, lines: list[str]) -> None:
    shown = [re.sub(r" hint: e(?= )", "", line) for line in lab.lines(html)]
    assert shown == lines


def test_a_sentence_is_one_line_with_its_links_below(lab: Lab) -> None:
    lab.show("<p>from <a href=x>here</a> to <a href=y>there</a> and back</p>")
    text = lab.observe().yaml_body.split("\n")[2:]
    assert [re.sub(r"\[\d+\] ", "", line) for line in text] == [
        "\tStaticText 'from here to there and back'",
        "\t\tlink 'here'",
        "\t\tlink 'there'",
    ]


def test_a_long_list_box_lists_its_first_options_and_their_number(lab: Lab) -> None:
    options = "".join(f"<option>o{i}" for i in range(200))
    lines = lab.lines(f"<select aria-label=A size=9>{options}</select>")
    assert lines[0] == "listbox 'A' options: 200 (the first 30 are listed)"
    assert len(lines) == 31


def test_a_long_text_shows_the_pieces_in_view(lab: Lab) -> None:
    words = " ".join(f"w{i}" for i in range(20_000))
    shown = lab.lines(f"<p style='width: 600px'>{words}</p>")
    assert 2 < len(shown) < 20
    assert "w0 w1 " in shown[0]
    whole = "".join(lab.lines(f"<p style='width: 600px'>{words}</p>", scope="page"))
    assert "w19999" in whole
    lab.run(lab.page.evaluate("scrollTo(0, document.body.scrollHeight / 2)"))
    assert "w0 w1 " not in lab.observe().yaml_body


def test_an_observation_has_focus_title_url_scroll_and_viewport(lab: Lab) -> None:
    lab.show("<title>A\ttitle</title><input aria-label=A><p style='height: 3000px'>x")
    lab.run(lab.page.evaluate("document.querySelector('input').focus()"))
    assert re.fullmatch(r"\[\d+\] textbox 'A'", lab.observe().focused)
    lab.run(lab.page.evaluate("scrollTo(0, 100)"))
    seen = lab.observe()
    assert seen.title == "A title" and seen.url == lab.page.url
    assert seen.viewport == {"width": 1280, "height": 720}
    assert seen.scroll["above"] == 100 and seen.scroll["below"] > 2000
    assert f"'{100} px above, {seen.scroll['below']} px below'" in seen.yaml_body
    assert seen.focused == ""  # it is out of view


# -- views ---------------------------------------------------------------------------------------

LONG = (
    "<h1>Top</h1><nav><a href=a>Near</a><a href=b>Next</a></nav>"
    "<div style='overflow: auto; height: 60px'><p>in<p>in2<p>in3<button>inner far</button></div>"
    "<p style='height: 2000px'>tall</p><button>Far</button><table><tr><th>far<th>row</table>"
    "<footer><p>off<span style='position: fixed; top: 0; right: 0'>pinned</span></footer>"
)


def test_the_yaml_is_limited_to_the_viewport_and_the_full_tree_is_not(lab: Lab) -> None:
    lab.show(LONG)
    seen = lab.observe(fulltree=True)
    near, far = bare(seen.yaml_body), bare(seen.fulltree_body)
    assert "button 'Far'" not in near and "button 'Far'" in far
    assert "button 'inner far'" not in near and "button 'inner far'" in far
    assert "StaticText 'pinned'" in near, "fixed, though what is around it is far away"
    assert bare(lab.observe(scope="page").yaml_body) == far


def test_an_element_has_the_same_line_in_both_trees(lab: Lab) -> None:
    lab.show(LONG)
    seen = lab.observe(fulltree=True)
    far = {line.strip() for line in seen.fulltree_body.split("\n")}
    near = {line.strip() for line in seen.yaml_body.split("\n")}
    assert near <= far
    assert near == {line.strip() for line in lab.observe().yaml_body.split("\n")}


PAGES = sorted((SUPPORT / "web" / "observe_pages").glob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_ids_are_unique_and_lines_agree_at_any_scroll_position(lab: Lab, page: Path) -> None:
    lab.show(page.read_text(encoding="utf-8"))
    for _ in range(3):
        seen = lab.observe(fulltree=True)
        near, far = (
            [x.strip() for x in t.split("\n")] for t in (seen.yaml_body, seen.fulltree_body)
        )
        assert set(near) - {near[1]} <= set(far)
        for lines in (near, far):
            numbers = [line.split("]")[0] for line in lines]
            assert len(numbers) == len(set(numbers))
        lab.run(lab.page.evaluate("scrollBy(0, 400)"))


def test_an_extremely_nested_page_is_shown_in_part(lab: Lab) -> None:
    lab.show("<button>first</button><div id=deep></div><button>last</button>")
    lab.run(
        lab.page.evaluate("""() => {
        let inner = document.querySelector('#deep');
        for (let i = 0; i < 1200; i++) {
            inner = inner.appendChild(document.createElement('div'));
            if (i === 400) inner.append('level 400');
        }
    }""")
    )
    lines = bare(lab.observe(scope="page").yaml_body)
    assert lines == ["button 'first'", "StaticText 'level 400'", "button 'last'"]


def test_snapshot_and_elements_describe_the_page(lab: Lab) -> None:
    lab.show("<ul><li><button>A</button><li><button disabled>B</button></ul>")
    seen = lab.observe(snapshot=True, elements=True)
    (menu,) = seen.snapshot["children"]
    assert [child["name"] for child in menu["children"]] == ["A", "B"]
    by_name = {facts["name"]: facts for facts in seen.elements.values()}
    assert by_name["B"]["disabled"] is True and len(by_name["B"]["box"]) == 4
    assert lab.observe().elements == {} and lab.observe().snapshot == {}


def test_boxes_belong_to_interactive_elements(lab: Lab) -> None:
    lab.show(
        "<body style='margin: 0'><p style='margin: 0; height: 50px'>text</p>"
        "<button style='width: 80px; height: 30px'>A</button>"
        "<p style='margin-top: 3000px'><button>far</button>"
    )
    seen = ids(lab.observe().yaml_body)
    (box,) = lab.run(lab.observer.boxes())
    assert box.id == seen["button 'A'"]
    assert (box.width, box.height, box.x) == (80, 30, 0)


# -- ids -----------------------------------------------------------------------------------------


def test_ids_persist_while_the_page_changes(lab: Lab) -> None:
    lab.show("<ul id=l><li><button>A</button><li><button>B</button></ul><p>text")
    before = ids(lab.observe().yaml_body)
    lab.run(
        lab.page.evaluate("""() => {
        const items = document.querySelectorAll('li');
        items[0].before(items[1]);
        document.querySelector('p').before(document.createElement('input'));
        const wrap = document.createElement('section');
        document.body.append(wrap);
        wrap.append(document.querySelector('#l'));
    }""")
    )
    after = ids(lab.observe().yaml_body)
    for line in ("button 'A'", "button 'B'", "StaticText 'text'"):
        assert after[line] == before[line]
    fresh = after["textbox ''"]
    assert fresh > max(before.values())


def test_ids_persist_after_garbage_collection(lab: Lab) -> None:
    lab.show("".join(f"<button>b{i}</button>" for i in range(300)))
    before = lab.observe().yaml_body
    session = lab.observer._walker.main.session
    lab.run(session.send("HeapProfiler.collectGarbage"))
    assert lab.observe().yaml_body == before


def test_the_next_page_does_not_reuse_ids(lab: Lab) -> None:
    lab.open("/one", "<button>one</button>")
    first = ids(lab.observe().yaml_body)
    lab.open("/two", "<button>two</button>")
    with pytest.raises(ElementGone):
        lab.run(lab.observer.resolve(first["button 'one'"]))
    second = ids(lab.observe().yaml_body)
    assert second["button 'two'"] > first["button 'one'"]


# -- targets -------------------------------------------------------------------------------------


def resolve(lab: Lab, text: str) -> Target:
    return lab.run(lab.observer.resolve(lab.id_of(text)))


def test_a_target_has_the_facts_of_its_element(lab: Lab) -> None:
    lab.show("<label>Mail <input type=email></label><button disabled>Off</button>")
    mail = resolve(lab, "textbox 'Mail'")
    assert (mail.role, mail.name, mail.tag, mail.input_type) == (
        "textbox", "Mail", "input", "email",
    )  # fmt: skip
    assert mail.editable and not mail.disabled and mail.in_viewport
    assert mail.frame == lab.page.main_frame
    off = resolve(lab, "button 'Off'")
    assert off.disabled and not off.editable


def test_resolving_does_not_scroll_and_scroll_into_view_does(lab: Lab) -> None:
    lab.show("<p style='height: 3000px'>x</p><div style='overflow: auto; height: 50px'>"
             "<p style='height: 300px'>y</p><button>Far</button></div>")  # fmt: skip
    far = resolve(lab, "button 'Far'")
    assert not far.in_viewport
    assert lab.run(lab.page.evaluate("scrollY")) == 0
    near = lab.run(far.scroll_into_view())
    assert near.in_viewport and near.covered_by is None and 0 < near.y < 720


def test_the_point_of_a_text_is_on_the_text(lab: Lab) -> None:
    lab.show("<p>first</p><p style='margin-left: 300px'><b>second</b></p>")
    target = resolve(lab, "'second'")
    under = lab.run(
        lab.page.evaluate("([x, y]) => document.elementFromPoint(x, y).localName",
                          [target.x, target.y])
    )  # fmt: skip
    assert under == "b" and target.role == "StaticText"


def test_a_function_of_the_walker_acts_on_exactly_that_element_unseen(lab: Lab) -> None:
    lab.show("<input aria-label=A value=x><input aria-label=A value=y>")
    numbers = [int(n) for n in re.findall(r"\[(\d+)\] textbox 'A'", lab.observe().yaml_body)]

    async def read_and_focus() -> Any:
        second = await lab.observer.resolve(numbers[1])
        await second.call("focusElement")
        return await second.call("fieldContent")

    assert lab.run(read_and_focus()) == "y"
    assert lab.run(lab.page.evaluate("document.activeElement.value")) == "y"
    assert lab.run(lab.page.evaluate("typeof ckObserver + typeof hitTest")) == "undefined" * 2


def test_the_point_considers_labels_frames_and_covers(lab: Lab) -> None:
    lab.show(
        "<label><input type=checkbox style='opacity: 0; position: absolute; z-index: -1'>"
        "<b style='background: red'>Styled</b></label><p style='position: relative'>"
        "<button>Under</button><span id=veil style='position: absolute; inset: 0'></span></p>"
    )
    assert resolve(lab, "checkbox 'Styled'").covered_by is None
    assert resolve(lab, "button 'Under'").covered_by == "span veil"


# -- what the page can see, what it costs ----------------------------------------------------------


def test_the_page_cannot_detect_an_observation(lab: Lab) -> None:
    lab.open(
        "/look", "<button>A</button><script>window.before = Object.keys(window).length</script>"
    )
    lab.observe()
    said = lab.run(
        lab.page.evaluate("""() => ({
        listen: EventTarget.prototype.addEventListener.toString(),
        shadow: Function.prototype.toString.call(Element.prototype.attachShadow),
        string: Function.prototype.toString.toString(),
        onclick: Object.getOwnPropertyDescriptor(HTMLElement.prototype, 'onclick').set.toString(),
        names: [addEventListener.name, addEventListener.length],
        added: Object.keys(window).length - window.before - 1,
        marks: document.documentElement.outerHTML.includes('data-'),
        bad: (() => { try { EventTarget.prototype.addEventListener.call({}, 'click', () => 0); }
            catch (error) { return error.constructor === TypeError; } })(),
    })""")
    )
    assert said == {
        "listen": "function addEventListener() { [native code] }",
        "shadow": "function attachShadow() { [native code] }",
        "string": "function toString() { [native code] }",
        "onclick": "function set onclick() { [native code] }",
        "names": ["addEventListener", 2],
        "added": 0,
        "marks": False,
        "bad": True,
    }


def test_a_page_that_overrides_properties_is_observed(lab: Lab) -> None:
    names = ["nodeType", "attributes", "children", "localName", "firstChild", "parentNode"]
    names += ["assignedSlot", "getAttribute", "ownerDocument", "childNodes"]
    fields = "".join(f"<input name={name}>" for name in names)
    traps = "".join(
        f"<form name={name}></form>"
        for name in ("documentElement", "body", "title", "activeElement", "defaultView",
                     "elementFromPoint", "addEventListener", "dispatchEvent", "createRange")
    )  # fmt: skip
    lines = lab.lines(f"<form>{fields}<button>Send</button></form>{traps}<button>Last</button>")
    assert [line for line in lines if line.startswith("button")] == [
        "button 'Send'",
        "button 'Last'",
    ]
    assert sum(line.startswith("textbox") for line in lines) == len(names)
    assert resolve(lab, "button 'Send'").covered_by is None


def count_calls(lab: Lab) -> list[str]:
    session = lab.observer._walker.main.session
    calls: list[str] = []
    send = session.send

    async def counted(method: str, parameters: Any = None) -> Any:
        calls.append(method)
        return await send(method, parameters)

    session.send = counted
    return calls


@pytest.mark.parametrize("size", [10, 5000])
def test_an_observation_of_any_size_takes_one_round_trip(lab: Lab, size: int) -> None:
    lab.new_page()
    lab.open(
        "/many", "<iframe srcdoc='<b>x</b>'></iframe>" + "<p><a href=x>link</a> text</p>" * size
    )
    calls = count_calls(lab)
    lab.observe(fulltree=True, elements=True)
    assert len(calls) <= 3, "a new document, into which the walker may have been brought already"
    calls.clear()
    lab.observe()
    assert calls == ["Runtime.callFunctionOn"]
    calls.clear()
    resolve_first = lab.observer.resolve(3)
    lab.run(resolve_first)
    assert len(calls) <= 2


def test_a_frame_of_another_origin_takes_one_more_round_trip(lab: Lab) -> None:
    lab.new_page()
    lab.site.pages["/in"] = "<button>inside</button>"
    lab.open("/out", f"<iframe src='http://127.0.0.1:{lab.site.other_port}/in'></iframe>")
    assert "button 'inside'" in bare(lab.observe().yaml_body)
    calls = count_calls(lab)
    lab.observe()
    assert calls == ["Runtime.callFunctionOn"] * 2


def test_a_page_may_navigate_during_an_observation(lab: Lab) -> None:
    lab.site.pages["/next"] = "<title>arrived</title><button>here</button>"
    lab.open("/leaving", "<script>setTimeout(() => location.href = '/next')</script>")

    async def look_until_there() -> None:
        while (await lab.observer.observe()).title != "arrived":
            await asyncio.sleep(0)

    lab.run(asyncio.wait_for(look_until_there(), 60))
    assert "button 'here'" in bare(lab.observe().yaml_body)


def test_frames_may_be_added_and_removed(lab: Lab) -> None:
    lab.site.pages["/in"] = "<button>inside</button>"
    lab.site.pages["/in2"] = "<button>replaced</button>"
    lab.open("/out", f"<iframe src='http://localhost:{lab.site.port}/in'></iframe>")
    number = lab.id_of("button 'inside'")
    lab.run(
        lab.page.evaluate(
            """(url) => new Promise((resolve) => {
                const frame = document.querySelector('iframe');
                frame.onload = resolve;
                frame.src = url;
            })""",
            f"http://127.0.0.1:{lab.site.other_port}/in2",
        )
    )
    assert "button 'replaced'" in bare(lab.observe().yaml_body)
    with pytest.raises(ElementGone):
        lab.run(lab.observer.resolve(number))
    lab.run(lab.page.evaluate("document.querySelector('iframe').remove()"))
    assert bare(lab.observe().yaml_body) == []
