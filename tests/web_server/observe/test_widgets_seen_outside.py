"""What pages of others showed: each case is a small page of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from observe_lab import Lab, bare

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def test_roles_that_need_a_parent_are_found_however_deep_they_are_nested(lab: Lab) -> None:
    deep = "<div role=option>" * 60 + "Deep" + "</div>" * 60
    lab.show(deep)
    seen = lab.run(asyncio.wait_for(lab.observer.observe(), 60))
    assert bare(seen.yaml_body) == ["StaticText 'Deep'"]


def test_names_that_refer_to_each_other_end(lab: Lab) -> None:
    html = """<fieldset id=f aria-labelledby=g><legend><b aria-labelledby=f>Legend</b></legend>
        <button>Inside</button></fieldset><p id=g><b aria-labelledby=f>Other</b></p>
        <label for=a>First <input id=b></label><label for=b>Second <input id=a></label>"""
    lines = lab.lines(html)
    assert "button 'Inside'" in lines
    assert "textbox 'Second First'" in lines


def test_lists_nested_beyond_the_stack_leave_what_is_around_them(lab: Lab) -> None:
    html = """<p>before</p><div id=d></div><p>after</p><script>
        let e = document.getElementById('d');
        for (let i = 0; i < 1500; i++) {
            const ul = document.createElement('ul');
            ul.setAttribute('aria-label', i);
            e.append(ul);
            e = ul;
        }
        e.append('deepest');
    </script>"""
    lines = lab.lines(html)
    assert lines[0] == "StaticText 'before'"
    assert lines[-1] == "StaticText 'after'"


def test_what_covers_an_element_is_told_with_its_id_at_once(lab: Lab) -> None:
    html = """<div style="position: relative"><button>Under</button>
        <a href="#" style="position: absolute; inset: 0; background: red">Over</a></div>"""
    lab.fresh()
    lab.show(html)
    first = lab.look()
    over = lab.id_of("Over'")
    assert f"covered by: link Over (id {over})" in first.yaml_body
    assert lab.look().yaml_body == first.yaml_body


def test_texts_of_the_style_sheet_around_a_block_have_lines_of_their_own(lab: Lab) -> None:
    html = """<style>p::before { content: "say" } p::after { content: "said" }</style>
        <p><span style="display: block">words</span></p>"""
    lab.show(html)
    body = lab.look().yaml_body
    assert bare(body) == ["StaticText 'say'", "StaticText 'words'", "StaticText 'said'"]
    ids = [line.split("]")[0] for line in body.split("\n")]
    assert len(set(ids)) == len(ids)


def test_what_is_folded_away_is_off_screen(lab: Lab) -> None:
    html = """<div style="max-height: 0; overflow: hidden"><a href="#">Folded</a>
        <b style="position: fixed; top: 50px">Fixed</b></div><button>Next</button>"""
    assert lab.lines(html) == ["StaticText 'Fixed'", "button 'Next'"]
    assert "link 'Folded'" in bare(lab.look(scope="page").yaml_body)


def test_the_field_that_an_editor_hides_is_there(lab: Lab) -> None:
    html = """<div style="overflow: hidden; width: 3px; height: 0; position: absolute">
        <textarea aria-label=Code style="width: 900px; height: 1em"></textarea></div>"""
    assert lab.lines(html)[0].startswith("textbox 'Code' multiline: true")


def test_control_characters_break_no_record(lab: Lab) -> None:
    html = "<input placeholder='a&#x1e;b&#x1f;c&#x1d;d' value='1&#x1b;0&#x1b;'><h1>x&#x1e;y</h1>"
    assert lab.lines(html) == ["textbox 'a b c d' value: 1 0", "heading 'x y' level: 1"]


def test_titles_inside_a_button_are_hints(lab: Lab) -> None:
    html = "<button><i class=icon title=Edit></i></button>"
    assert lab.lines(html) == ["button '' hint: Edit"]


def test_a_label_as_long_as_a_page_is_told_in_full(lab: Lab) -> None:
    words = [f"word{i}" for i in range(80)]
    html = f"<input type=checkbox id=c><label for=c>{' '.join(words)}</label>"
    text = "\n".join(lab.lines(html))
    assert all(word in text for word in words)


def test_a_value_that_a_field_does_not_take_is_told(lab: Lab) -> None:
    html = "<input type=email value=x aria-label=m><input required aria-label=r>"
    assert lab.lines(html) == ["textbox 'm' value: x invalid: true", "textbox 'r' required: true"]


def test_hidden_labels_name_their_fields(lab: Lab) -> None:
    html = """<label for=a style="display: none">One</label><input id=a>
        <label for=b style="visibility: hidden">Two</label><input id=b>"""
    assert lab.lines(html) == ["textbox 'One'", "textbox 'Two'"]


def test_controls_with_the_role_of_a_text_can_be_acted_on(lab: Lab) -> None:
    html = """<button role=time><img width=9 height=9 src=cal.png></button>
        <a href=# role=article>More</a>"""
    assert lab.lines(html) == [
        "time '' clickable: true hint: cal.png",
        "article '' clickable: true",
        "StaticText 'More'",
    ]


def test_a_text_that_begins_in_view_is_told_with_all_its_parts(lab: Lab) -> None:
    code = "".join(f"<span>a<span>=</span><span>{i}</span>;\n</span>" for i in range(60))
    lab.show(f"<pre><code style='display: block'>{code}</code></pre>")
    cut = lab.look()
    assert "a=0; a=1; a=2;" in cut.yaml_body
    assert "a=59;" in cut.yaml_body
    assert lab.look(fulltree=True).yaml_body == cut.yaml_body


def test_what_has_no_size_is_where_its_parent_is(lab: Lab) -> None:
    html = """<div style="height: 900px"></div><div style="height: 20px"><div
        style="display: contents"><b
        style="display: contents"><a href="#" style="display: inline-block; width: 0; height: 0">
        Below</a></b></div><div style="height: 0"><button>Under it</button></div></div>"""
    lab.show(html)
    alone = lab.look().yaml_body
    assert bare(alone) == []
    assert lab.look(fulltree=True).yaml_body == alone


def test_icons_tell_nameless_buttons_apart(lab: Lab) -> None:
    html = """<button class=tool><svg class=icon width=9 height=9><use href="/s.svg#trash"></use>
        </svg></button><button class=tool><i class="fa fa-bars"></i></button><button class=tool>
        </button><button class=tool id=own><i class="fa fa-bars"></i></button>"""
    hints = [line.split("hint: ")[1] for line in lab.lines(html)]
    assert hints == ["trash", "fa fa-bars", "tool", "own"]


def test_pictures_made_of_text_keep_what_they_show(lab: Lab) -> None:
    html = """<div role=img>AB</div><div role=img aria-label=Chart>bars <a href=#>Zoom</a></div>
        <div role=progressbar aria-valuenow=60>60%</div>
        <div role=progressbar aria-valuenow=3>Step 3 of 9</div>"""
    assert lab.lines(html) == [
        "StaticText 'AB'",
        "image 'Chart'",
        "link 'Zoom'",
        "progressbar '' value: 60",
        "progressbar '' value: 3",
        "StaticText 'Step 3 of 9'",
    ]


INNER = """<x-e kind=checkbox>Agree</x-e><x-e kind=tab>News</x-e><x-e>Send</x-e><div id=h></div>
    <script>customElements.define('x-e', class extends HTMLElement {
        #inner = this.attachInternals();
        connectedCallback() {
            this.#inner.role = this.getAttribute('kind') || 'button';
            this.#inner.ariaChecked = 'false';
            if (this.matches('[kind=tab]')) this.#inner.ariaSelected = 'true';
            this.#inner.ariaLabel = this.getAttribute('name');
            this.onclick = () => { this.#inner.ariaChecked = 'true'; };
        }
    });
    h.attachShadow({mode: 'closed'}).innerHTML = '<x-e kind=radio name=Deep>x</x-e>';
    Object.defineProperty(ElementInternals.prototype, 'role', {get: () => 'link'});</script>"""


def test_what_custom_elements_tell_the_browser_alone_is_seen(lab: Lab) -> None:
    lab.fresh()
    lab.open("/inner", INNER)
    seen = bare(lab.look().yaml_body)
    assert seen == [
        "checkbox 'Agree' checked: false",
        "tab 'News' selected: true",
        "button 'Send'",
        "radio 'Deep' checked: false",
    ]
    lab.run(lab.page.evaluate("document.querySelector('x-e').click()"))
    assert bare(lab.look().yaml_body)[0] == "checkbox 'Agree' checked: true"
    told = lab.run(lab.page.evaluate("HTMLElement.prototype.attachInternals.toString()"))
    assert told == "function attachInternals() { [native code] }"


def test_items_of_what_listens_for_all_of_them_are_told_apart(lab: Lab) -> None:
    html = """<div onclick="1"><div class="item on">Oak</div><div class=item>Elm</div></div>
        <div onclick="1"><p>One</p><p>Two</p><p>Three</p></div>
        <div onclick="1"><div class=title>Card</div><div class=text>Words</div></div>"""
    assert lab.lines(html) == [
        "generic '' clickable: true",
        "StaticText 'Oak'",
        "StaticText 'Elm'",
        "generic '' clickable: true",
        "StaticText 'One'",
        "StaticText 'Two'",
        "StaticText 'Three'",
        "generic 'Card Words' clickable: true",
    ]


def test_cells_that_take_the_focus_or_are_named_unseen(lab: Lab) -> None:
    html = """<table role=grid><tr><td role=gridcell tabindex=-1>a1<td role=gridcell tabindex=-1>b1
        </table><div role=grid><div role=row><div role=gridcell aria-label="March 1">
        <span aria-hidden=true>1</span></div><div role=gridcell>2</div></div></div>"""
    assert [line for line in lab.lines(html) if not line.startswith("grid ")] == [
        "row ''",
        "gridcell 'a1' focusable: true",
        "gridcell 'b1' focusable: true",
        "row 'March 1 | 2'",
    ]


def test_a_switch_without_a_size_is_told_by_what_is_drawn_in_its_place(lab: Lab) -> None:
    html = """<div style="width: 40px; height: 20px; background: grey" onclick="1">
        <input type=checkbox role=switch checked style="width: 0; height: 0; margin: 0"></div>"""
    assert lab.lines(html) == ["switch '' checked: true clickable: true"]


def test_what_grows_upwards_or_leftwards_is_scrolled_from_its_end(lab: Lab) -> None:
    box = "overflow: auto; height: 100px; width: 200px"
    html = f"""<div style="{box}; display: flex; flex-direction: column-reverse" id=chat>
        {"<p>message</p>" * 30}</div><div dir=rtl style="{box}" id=arabic>
        <div style="width: 1000px; height: 20px">words</div></div>"""
    lab.open("/ends", html)
    lab.run(lab.page.evaluate("arabic.scrollLeft = -300"))
    lines = lab.look().yaml_body.split("\n")
    chat, arabic = [line.split("scroll", 1)[1] for line in lines if "generic ''" in line]
    assert chat.startswith(": ") and chat.endswith(" px above, 0 px below")
    assert arabic == " across: 500 px left, 300 px right"


def test_named_shapes_of_a_drawing_that_listens_are_told_apart(lab: Lab) -> None:
    html = """<svg width=200 height=90><g id=seats>
        <rect width=30 height=30><title>Seat A1</title></rect>
        <rect x=50 width=30 height=30><title>Seat A2</title></rect></g></svg>
        <script>seats.addEventListener('click', () => {})</script>"""
    lab.open("/seats", html)
    seen = bare(lab.look().yaml_body)
    assert seen[1:] == ["generic 'Seat A1' clickable: true", "generic 'Seat A2' clickable: true"]


def test_annotated_characters_stay_in_their_line(lab: Lab) -> None:
    html = "<p>x <ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby> y</p>"
    assert lab.lines(html) == ["StaticText 'x 漢かん字じ y'"]


def test_signs_are_told_with_the_title_that_says_what_they_mean(lab: Lab) -> None:
    html = """<button title=Delete>🗑</button><button title="Go on">Next</button>
        <label title="2 stars"><input type=radio hidden>★</label>"""
    assert lab.lines(html) == [
        "button '🗑' hint: Delete",
        "button 'Next'",
        "LabelText '★' checked: false hint: 2 stars",
    ]


def test_an_empty_box_to_click_is_told_by_its_id(lab: Lab) -> None:
    html = """<div id=hue onclick="1" style="width: 50px; height: 50px"><i></i></div>
        <div id=card onclick="1"><img alt=Photo width=50 height=50></div>"""
    assert lab.lines(html) == [
        "generic '' clickable: true hint: hue",
        "generic 'Photo' clickable: true",
    ]


def test_what_is_scaled_to_nothing_is_not_told(lab: Lab) -> None:
    html = """<div style="transform: scaleY(0)"><p>Unseen</p><button>Unseen</button></div>
        <div style="height: 0"><p>Seen</p></div>"""
    assert lab.lines(html) == ["StaticText 'Seen'"]


def test_days_of_a_calendar_that_listens_as_a_whole_are_told_apart(lab: Lab) -> None:
    week = "".join(f"<td>{day}</td>" for day in ("", 31, 1, 2, 3, 4, 5))
    html = f"<table onclick='1'><tr>{week}</tr></table><table border=1><tr>{week}</tr></table>"
    lines = lab.lines(html)
    assert [line for line in lines if "StaticText" in line] == [
        f"StaticText '{day}'" for day in (31, 1, 2, 3, 4, 5)
    ]
    assert "row '| 31 | 1 | 2 | 3 | 4 | 5'" in lines


def test_what_an_editor_with_an_unseen_field_shows_is_told(lab: Lab) -> None:
    html = """<div style="position: relative; height: 60px"><textarea aria-label=Code
        style="position: absolute; width: 1px; height: 1px"></textarea>
        <div aria-hidden=true><div>let a = 1;</div></div></div>
        <div><textarea aria-label=Plain></textarea><div aria-hidden=true>Hidden words</div></div>"""
    assert lab.lines(html) == [
        "textbox 'Code' multiline: true",
        "StaticText 'let a = 1;'",
        "textbox 'Plain' multiline: true",
    ]


def test_labels_of_custom_elements_that_take_part_in_forms(lab: Lab) -> None:
    html = """<label for=a>Agree</label><x-f id=a role=checkbox tabindex=0>.</x-f>
        <label for=b>Signature</label><x-f id=b>drawn</x-f><script>
        customElements.define('x-f', class extends HTMLElement {
            static formAssociated = true;
            #inner = this.attachInternals();
        })</script>"""
    lab.open("/labels", html)
    assert bare(lab.look().yaml_body) == [
        "checkbox 'Agree' checked: false",
        "StaticText 'Signaturedrawn'",
    ]


def test_the_picture_of_a_view_transition_covers_nothing(lab: Lab) -> None:
    html = """<style>::view-transition-group(*) { animation-duration: 30s }</style>
        <button>Go</button>"""
    lab.open("/passing", html)
    begin = "new Promise((done) => document.startViewTransition(() => {}).ready.then(done))"
    lab.run(lab.page.evaluate(begin))
    assert bare(lab.look().yaml_body) == ["button 'Go'"]
    lab.fresh()


def test_a_title_of_which_nothing_more_is_in_view_is_told(lab: Lab) -> None:
    html = """<div style="height: 690px"></div><fieldset style="border: 0; margin: 0; padding: 0">
        <legend>Payment</legend><p style="height: 60px"></p><input aria-label=Card></fieldset>"""
    assert lab.lines(html) == ["group 'Payment'"]
    table = "<table><caption>Prices</caption><tr><td>1<td>2</table>"
    assert lab.lines(f"<div style='height: 695px'></div>{table}") == ["table 'Prices'"]
    assert lab.lines(f"<div style='height: 900px'></div>{table}") == []


def test_a_list_whose_items_are_off_screen_has_the_same_line_everywhere(lab: Lab) -> None:
    html = """<div role=combobox aria-label=Size aria-haspopup=menu aria-expanded=true
        aria-controls=items tabindex=0>S</div><div style="height: 900px"></div>
        <div role=menu id=items><div role=menuitem tabindex=0>L</div></div>"""
    lab.show(html)
    seen = lab.look(fulltree=True)
    line = "combobox 'Size' hasPopup: menu open: true value: S"
    assert bare(seen.yaml_body) == [line]
    assert bare(seen.fulltree_body) == [line, "menu ''", "menuitem 'L'"]
