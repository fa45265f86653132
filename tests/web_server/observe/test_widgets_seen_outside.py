"""Cases from real sites, each as a small page."""

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


def test_names_that_refer_to_each_other_are_computed(lab: Lab) -> None:
    html = """<fieldset id=f aria-labelledby=g><legend><b aria-labelledby=f>Legend</b></legend>
        <button>Inside</button></fieldset><p id=g><b aria-labelledby=f>Other</b></p>
        <label for=a>First <input id=b></label><label for=b>Second <input id=a></label>"""
    lines = lab.lines(html)
    assert "button 'Inside'" in lines
    assert "textbox 'Second First'" in lines


def test_lists_nested_deeper_than_the_stack_do_not_hide_their_surroundings(lab: Lab) -> None:
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


def test_a_cover_is_named_with_its_id(lab: Lab) -> None:
    html = """<div style="position: relative"><button>Under</button>
        <a href="#" style="position: absolute; inset: 0; background: red">Over</a></div>"""
    lab.new_page()
    lab.show(html)
    first = lab.observe()
    over = lab.id_of("Over'")
    assert f"covered by: link Over (id {over})" in first.yaml_body
    assert lab.observe().yaml_body == first.yaml_body


def test_texts_of_pseudo_elements_around_a_block_have_their_own_lines(lab: Lab) -> None:
    html = """<style>p::before { content: "say" } p::after { content: "said" }</style>
        <p><span style="display: block">words</span></p>"""
    lab.show(html)
    body = lab.observe().yaml_body
    assert bare(body) == ["StaticText 'say'", "StaticText 'words'", "StaticText 'said'"]
    ids = [line.split("]")[0] for line in body.split("\n")]
    assert len(set(ids)) == len(ids)


def test_collapsed_content_counts_as_out_of_view(lab: Lab) -> None:
    html = """<div style="max-height: 0; overflow: hidden"><a href="#">Folded</a>
        <b style="position: fixed; top: 50px">Fixed</b></div><button>Next</button>"""
    assert lab.lines(html) == ["StaticText 'Fixed'", "button 'Next'"]
    assert "link 'Folded'" in bare(lab.observe(scope="page").yaml_body)


def test_the_hidden_field_of_an_editor_is_listed(lab: Lab) -> None:
    html = """<div style="overflow: hidden; width: 3px; height: 0; position: absolute">
        <textarea aria-label=Code style="width: 900px; height: 1em"></textarea></div>"""
    assert lab.lines(html)[0].startswith("textbox 'Code' multiline: true")


def test_control_characters_do_not_break_records(lab: Lab) -> None:
    html = "<input placeholder='a&#x1e;b&#x1f;c&#x1d;d' value='1&#x1b;0&#x1b;'><h1>x&#x1e;y</h1>"
    assert lab.lines(html) == ["textbox 'a b c d' value: 1 0", "heading 'x y' level: 1"]


def test_titles_inside_a_button_are_hints(lab: Lab) -> None:
    html = "<button><i class=icon title=Edit></i></button>"
    assert lab.lines(html) == ["button '' hint: Edit"]


def test_a_very_long_label_is_shown_in_full(lab: Lab) -> None:
    words = [f"word{i}" for i in range(80)]
    html = f"<input type=checkbox id=c><label for=c>{' '.join(words)}</label>"
    text = "\n".join(lab.lines(html))
    assert all(word in text for word in words)


def test_a_field_with_an_invalid_value_is_marked(lab: Lab) -> None:
    html = "<input type=email value=x aria-label=m><input required aria-label=r>"
    assert lab.lines(html) == ["textbox 'm' value: x invalid: true", "textbox 'r' required: true"]


def test_hidden_labels_name_their_fields(lab: Lab) -> None:
    html = """<label for=a style="display: none">One</label><input id=a>
        <label for=b style="visibility: hidden">Two</label><input id=b>"""
    assert lab.lines(html) == ["textbox 'One'", "textbox 'Two'"]


def test_clickable_elements_with_the_role_of_a_text_are_interactive(lab: Lab) -> None:
    html = """<button role=time><img width=9 height=9 src=cal.png></button>
        <a href=# role=article>More</a>"""
    assert lab.lines(html) == [
        "time '' clickable: true hint: cal.png",
        "article '' clickable: true",
        "StaticText 'More'",
    ]


def test_a_text_that_begins_in_view_is_shown_with_all_its_parts(lab: Lab) -> None:
    code = "".join(f"<span>a<span>=</span><span>{i}</span>;\n</span>" for i in range(60))
    lab.show(f"<pre><code style='display: block'>{code}</code></pre>")
    cut = lab.observe()
    assert "a=0; a=1; a=2;" in cut.yaml_body
    assert "a=59;" in cut.yaml_body
    assert lab.observe(fulltree=True).yaml_body == cut.yaml_body


def test_an_element_without_a_size_has_the_view_of_its_parent(lab: Lab) -> None:
    html = """<div style="height: 900px"></div><div style="height: 20px"><div
        style="display: contents"><b
        style="display: contents"><a href="#" style="display: inline-block; width: 0; height: 0">
        Below</a></b></div><div style="height: 0"><button>Under it</button></div></div>"""
    lab.show(html)
    alone = lab.observe().yaml_body
    assert bare(alone) == []
    assert lab.observe(fulltree=True).yaml_body == alone


def test_icons_identify_buttons_without_a_name(lab: Lab) -> None:
    html = """<button class=tool><svg class=icon width=9 height=9><use href="/s.svg#trash"></use>
        </svg></button><button class=tool><i class="fa fa-bars"></i></button><button class=tool>
        </button><button class=tool id=own><i class="fa fa-bars"></i></button>"""
    hints = [line.split("hint: ")[1] for line in lab.lines(html)]
    assert hints == ["trash", "fa fa-bars", "tool", "own"]


def test_images_that_contain_text_show_it(lab: Lab) -> None:
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


def test_roles_and_states_set_by_element_internals_are_shown(lab: Lab) -> None:
    lab.new_page()
    lab.open("/inner", INNER)
    seen = bare(lab.observe().yaml_body)
    assert seen == [
        "checkbox 'Agree' checked: false",
        "tab 'News' selected: true",
        "button 'Send'",
        "radio 'Deep' checked: false",
    ]
    lab.run(lab.page.evaluate("document.querySelector('x-e').click()"))
    assert bare(lab.observe().yaml_body)[0] == "checkbox 'Agree' checked: true"
    source = lab.run(lab.page.evaluate("HTMLElement.prototype.attachInternals.toString()"))
    assert source == "function attachInternals() { [native code] }"


def test_items_of_a_listening_container_have_their_own_lines(lab: Lab) -> None:
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


def test_focusable_cells_and_cells_with_a_hidden_name_are_shown(lab: Lab) -> None:
    html = """<table role=grid><tr><td role=gridcell tabindex=-1>a1<td role=gridcell tabindex=-1>b1
        </table><div role=grid><div role=row><div role=gridcell aria-label="March 1">
        <span aria-hidden=true>1</span></div><div role=gridcell>2</div></div></div>"""
    assert [line for line in lab.lines(html) if not line.startswith("grid ")] == [
        "row ''",
        "gridcell 'a1' focusable: true",
        "gridcell 'b1' focusable: true",
        "row 'March 1 | 2'",
    ]


def test_a_switch_without_a_size_is_shown_by_its_replacement(lab: Lab) -> None:
    html = """<div style="width: 40px; height: 20px; background: grey" onclick="1">
        <input type=checkbox role=switch checked style="width: 0; height: 0; margin: 0"></div>"""
    assert lab.lines(html) == ["switch '' checked: true clickable: true"]


def test_boxes_that_grow_up_or_left_scroll_from_their_end(lab: Lab) -> None:
    box = "overflow: auto; height: 100px; width: 200px"
    html = f"""<div style="{box}; display: flex; flex-direction: column-reverse" id=chat>
        {"<p>message</p>" * 30}</div><div dir=rtl style="{box}" id=arabic>
        <div style="width: 1000px; height: 20px">words</div></div>"""
    lab.open("/ends", html)
    lab.run(lab.page.evaluate("arabic.scrollLeft = -300"))
    lines = lab.observe().yaml_body.split("\n")
    chat, arabic = [line.split("scroll", 1)[1] for line in lines if "generic ''" in line]
    assert chat.startswith(": ") and chat.endswith(" px above, 0 px below")
    assert arabic == " across: 500 px left, 300 px right"


def test_named_shapes_of_a_listening_drawing_have_their_own_lines(lab: Lab) -> None:
    html = """<svg width=200 height=90><g id=seats>
        <rect width=30 height=30><title>Seat A1</title></rect>
        <rect x=50 width=30 height=30><title>Seat A2</title></rect></g></svg>
        <script>seats.addEventListener('click', () => {})</script>"""
    lab.open("/seats", html)
    seen = bare(lab.observe().yaml_body)
    assert seen == ["generic 'Seat A1' clickable: true", "generic 'Seat A2' clickable: true"]


def test_annotated_characters_stay_in_their_line(lab: Lab) -> None:
    html = "<p>x <ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby> y</p>"
    assert lab.lines(html) == ["StaticText 'x 漢かん字じ y'"]


def test_a_symbol_is_shown_with_its_title_as_a_hint(lab: Lab) -> None:
    html = """<button title=Delete>🗑</button><button title="Continue">Next</button>
        <label title="2 stars"><input type=radio hidden>★</label>"""
    assert lab.lines(html) == [
        "button '🗑' hint: Delete",
        "button 'Next'",
        "LabelText '★' checked: false hint: 2 stars",
    ]


def test_an_empty_clickable_box_has_its_id_as_a_hint(lab: Lab) -> None:
    html = """<div id=hue onclick="1" style="width: 50px; height: 50px"><i></i></div>
        <div id=card onclick="1"><img alt=Photo width=50 height=50></div>"""
    assert lab.lines(html) == [
        "generic '' clickable: true hint: hue",
        "generic 'Photo' clickable: true",
    ]


def test_content_that_is_scaled_to_zero_is_not_shown(lab: Lab) -> None:
    html = """<div style="transform: scaleY(0)"><p>Unseen</p><button>Unseen</button></div>
        <div style="height: 0"><p>Seen</p></div>"""
    assert lab.lines(html) == ["StaticText 'Seen'"]


def test_days_of_a_listening_calendar_have_their_own_lines(lab: Lab) -> None:
    week = "".join(f"<td>{day}</td>" for day in ("", 31, 1, 2, 3, 4, 5))
    html = f"<table onclick='1'><tr>{week}</tr></table><table border=1><tr>{week}</tr></table>"
    lines = lab.lines(html)
    assert [line for line in lines if "StaticText" in line] == [
        f"StaticText '{day}'" for day in (31, 1, 2, 3, 4, 5)
    ]
    assert "row '| 31 | 1 | 2 | 3 | 4 | 5'" in lines


def test_the_text_of_an_editor_with_an_invisible_field_is_shown(lab: Lab) -> None:
    html = """<div style="position: relative; height: 60px"><textarea aria-label=Code
        style="position: absolute; width: 1px; height: 1px"></textarea>
        <div aria-hidden=true><div>let a = 1;</div></div></div>
        <div><textarea aria-label=Plain></textarea><div aria-hidden=true>Hidden words</div></div>"""
    assert lab.lines(html) == [
        "textbox 'Code' multiline: true",
        "StaticText 'let a = 1;'",
        "textbox 'Plain' multiline: true",
    ]


def test_labels_name_form_associated_custom_elements(lab: Lab) -> None:
    html = """<label for=a>Agree</label><x-f id=a role=checkbox tabindex=0>.</x-f>
        <label for=b>Signature</label><x-f id=b>drawn</x-f><script>
        customElements.define('x-f', class extends HTMLElement {
            static formAssociated = true;
            #inner = this.attachInternals();
        })</script>"""
    lab.open("/labels", html)
    assert bare(lab.observe().yaml_body) == [
        "checkbox 'Agree' checked: false",
        "StaticText 'Signaturedrawn'",
    ]


def test_the_snapshot_of_a_view_transition_covers_nothing(lab: Lab) -> None:
    html = """<style>::view-transition-group(*) { animation-duration: 30s }</style>
        <button>Go</button>"""
    lab.open("/passing", html)
    begin = "new Promise((done) => document.startViewTransition(() => {}).ready.then(done))"
    lab.run(lab.page.evaluate(begin))
    assert bare(lab.observe().yaml_body) == ["button 'Go'"]
    lab.new_page()


def test_a_legend_is_shown_if_only_it_is_in_view(lab: Lab) -> None:
    html = """<div style="height: 690px"></div><fieldset style="border: 0; margin: 0; padding: 0">
        <legend>Payment</legend><p style="height: 60px"></p><input aria-label=Card></fieldset>"""
    assert lab.lines(html) == ["group 'Payment'"]
    table = "<table><caption>Prices</caption><tr><td>1<td>2</table>"
    assert lab.lines(f"<div style='height: 695px'></div>{table}") == ["table 'Prices'"]
    assert lab.lines(f"<div style='height: 900px'></div>{table}") == []


def test_a_list_with_items_out_of_view_has_the_same_line_in_both_trees(lab: Lab) -> None:
    html = """<div role=combobox aria-label=Size aria-haspopup=menu aria-expanded=true
        aria-controls=items tabindex=0>S</div><div style="height: 900px"></div>
        <div role=menu id=items><div role=menuitem tabindex=0>L</div></div>"""
    lab.show(html)
    seen = lab.observe(fulltree=True)
    line = "combobox 'Size' hasPopup: menu open: true value: S"
    assert bare(seen.yaml_body) == [line]
    assert bare(seen.fulltree_body) == [line, "menu ''", "menuitem 'L'"]
