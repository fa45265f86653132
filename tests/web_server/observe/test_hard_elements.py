"""Unusual elements: each is listed, named as in Chromium, and usable by its id."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from observe_lab import Lab, bare

pytestmark = pytest.mark.browser

CASES: dict[str, tuple[str, list[str]]] = {
    "details": (
        """<details><summary>More</summary><button>inside</button></details>
        <details name=a open><summary>Head</summary><button>shown</button></details>""",
        [
            "DisclosureTriangle 'More' expanded: false",
            "DisclosureTriangleGrouped 'Head' expanded: true",
            "button 'shown'",
        ],
    ),
    "modal": (
        """<button>behind</button><dialog id=d aria-label=Ask><button>Yes</button></dialog>
        <script>d.showModal()</script>""",
        ["button 'behind' covered by: dialog Ask.*", "dialog 'Ask'", "button 'Yes' focused: true"],
    ),
    "popover": (
        """<button popovertarget=p>One</button><div id=p popover><button>within</button></div>
        <button popovertarget=q>Two</button><div id=q popover><button>not yet</button></div>
        <script>p.showPopover()</script>""",
        ["button 'One' expanded: true", "button 'within'", "button 'Two' expanded: false"],
    ),
    "aria-hidden": (
        "<div aria-hidden=true><button>hidden from some</button><p>hidden text</p></div>",
        ["button 'hidden from some'"],
    ),
    "contents": (
        "<button style='display:contents'>boxless</button><div style='display:contents' onclick=1>"
        "listens</div>",
        ["button 'boxless'", "generic 'listens' clickable: true"],
    ),
    "slots": (
        """<x-s><b slot=last>second</b><button slot=first>first</button></x-s><script>
        customElements.define('x-s', class extends HTMLElement { constructor() { super();
        this.attachShadow({mode: 'closed'}).innerHTML = '<slot name=first></slot>'
        + '<p><slot name=last></slot></p><slot name=none><button>fallback</button></slot>' } })
        </script>""",
        ["button 'first'", "StaticText 'second'", "button 'fallback'"],
    ),
    "glass": (
        """<div style="position:relative"><button>under</button>
        <div style="position:absolute;inset:0"></div></div>
        <div style="position:fixed;inset:0;pointer-events:none"></div><button>free</button>""",
        ["button 'under' covered by: div", "button 'free'"],
    ),
    "groups": (
        """<select aria-label=Car><optgroup label=Swedish><option>Volvo</optgroup>
        <optgroup label=German disabled><option>Audi</optgroup></select>
        <select multiple aria-label=Many><option selected>a<option selected>b<option>c</select>""",
        [
            r"combobox 'Car' value: Volvo options: 2 \(Volvo \| Audi \(disabled\)\)",
            "listbox 'Many' value: a, b multiple: true",
            "option 'a' selected: true",
        ],
    ),
    "datalist": (
        "<input list=l aria-label=City><datalist id=l><option value=Rome><option value=Oslo>",
        ["combobox 'City' suggestions: Rome, Oslo"],
    ),
    "combobox": (
        """<input role=combobox aria-expanded=true aria-controls=lb aria-label=Fruit autofocus
        aria-activedescendant=o2><ul role=listbox id=lb><li role=option id=o1>Apple</li>
        <li role=option id=o2>Pear</li></ul>""",
        [r"combobox 'Fruit' .*focused: true", "option 'Apple'", "option 'Pear' active: true"],
    ),
    "owned": (
        "<div role=listbox aria-owns='x'>L</div><p>between</p><div role=option id=x>far</div>",
        ["option 'far'"],
    ),
    "editor": (
        """<div contenteditable role=textbox aria-label=Ed>hello <button>inner</button>
        <span contenteditable=false>chip <a href=/x>link</a></span></div>""",
        ["textbox 'Ed' .*value: hello inner chip link.*", "button 'inner'", "link 'link'"],
    ),
    "generated": (
        r"""<style>.a::before{content:"Before "}.b::before{content:url(x.png) / "drawn"}</style>
        <button class=a>mid</button><button class=b></button>""",
        ["button 'Before mid'", "button 'drawn'"],
    ),
    "map": (
        """<map name=m><area shape=rect coords=0,0,20,20 href=#a alt=One>
        <area shape=circle coords=60,60,20 href=#b alt=Two>
        <area shape=poly coords=80,0,99,0,99,30 href=#c alt=Three></map>
        <img usemap=#m width=100 height=100 alt=Plan src="data:image/svg+xml,
        <svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>">""",
        ["image 'Plan'", "link 'One'", "link 'Two'", "link 'Three'"],
    ),
    "embedded": (
        "<object data=/leaf type=text/html></object><embed src=/leaf type=text/html>",
        ["button 'leaf'"] * 2,
    ),
    "media": (
        "<video controls width=300 height=100 aria-label=Film></video>",
        ["Video 'Film' paused: true", "button 'play'.*", "slider 'video time scrubber'.*"],
    ),
    "wide": (
        "<div style='width:10000px'><button>near</button></div>",
        ["button 'near'"],
    ),
    "turned": (
        """<div style="transform:scale(2) rotate(10deg);transform-origin:0 0;margin:60px">
        <button>rotated</button></div><div style="zoom:2"><button>zoomed</button></div>""",
        ["button 'rotated'", "button 'zoomed'"],
    ),
    "odd names": (
        "<div dir=rtl><button>\u05e9\u05dc\u05d5\u05dd</button></div>"
        "<button aria-label='a\nb\tc\U0001f642'>x</button>"
        "<button aria-label=\"it [3] button 'fake'\">y</button>",
        [
            "button '\u05e9\u05dc\u05d5\u05dd'",
            "button 'a b c\U0001f642' text: x",
            "button 'it \\[3\\] button \u2019fake\u2019' text: y",
        ],
    ),
    "through": (
        "<button style='pointer-events:none'>no mouse</button>",
        ["button 'no mouse' pointer: none"],
    ),
    "tiny input": (
        """<label>Accept <input type=checkbox style="position:absolute;width:1px;height:1px;
        overflow:hidden;clip:rect(0 0 0 0)"></label> <button>B</button>""",
        ["checkbox 'Accept' checked: false"],
    ),
    "off": (
        "<fieldset disabled><legend>L <input aria-label=on></legend><input aria-label=off>"
        "</fieldset><div inert><button>inert</button></div>",
        ["textbox 'on'", "textbox 'off' disabled: true", "StaticText 'inert'"],
    ),
    "chart": (
        """<svg width=200 height=100 id=s><circle cx=20 cy=20 r=15 class=node />
        <circle cx=80 cy=20 r=15 fill=blue /></svg><button><svg width=16 height=16>
        <path d="M0 0h8v8z"/><path d="M8 8h8v8z"/></svg></button>
        <script>s.addEventListener('click', () => 1)</script>""",
        [
            "generic '' hint: node .*clickable: true",
            r"generic '' hint: circle color: rgb\(0,0,255\) size: 30x30 clickable: true",
            "button ''",
        ],
    ),
    "frames": (
        """<div id=a></div><script>const r = a.attachShadow({mode: 'closed'});
        r.innerHTML = '<div></div><iframe srcdoc="<button>in a frame in it</button>"></iframe>';
        r.firstChild.attachShadow({mode: 'closed'}).innerHTML = '<button>twice shut</button>';
        const f = document.createElement('iframe'); f.src = URL.createObjectURL(
        new Blob(['<button>in a blob</button>'], {type: 'text/html'})); document.body.append(f);
        </script><iframe sandbox=allow-scripts srcdoc="<button>boxed</button>"></iframe>""",
        [
            "button 'twice shut'",
            "button 'in a frame in it'",
            "button 'in a blob'",
            "button 'boxed'",
        ],
    ),
    "liar": (
        """<script>Array.prototype.map = Array.prototype.join = () => 'lie';
        Array.prototype[Symbol.iterator] = function* () { yield 'lie' };
        Object.defineProperty(Array.prototype, '0', {set() { throw 1 }});
        JSON.stringify = JSON.parse = () => ({}); Reflect.apply = () => { throw 1 };
        for (const [p, n] of [[Node, 'textContent'], [Element, 'localName'], [Node, 'childNodes']])
        Object.defineProperty(p.prototype, n, {get: () => 'lie'});
        Element.prototype.getBoundingClientRect = () => ({});
        document.elementFromPoint = () => null;
        window.getComputedStyle = () => ({}); WeakMap.prototype.get = () => { throw 1 };
        EventTarget.prototype.dispatchEvent = () => { throw 1 };</script><button>honest</button>
        <div id=q>listens</div><form><input name=parentNode aria-label=odd></form>
        <script>q.addEventListener('click', () => 1)</script>""",
        ["button 'honest'", "generic 'listens' clickable: true", "textbox 'odd'"],
    ),
}

# What is listed though no mouse gets there: it is said of it.
UNREACHED = {"behind", "under", "no mouse", "inert"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        made.site.pages["/leaf"] = "<button>leaf</button>"
        yield made


@pytest.mark.parametrize("case", CASES)
def test_an_unusual_element_is_listed_and_can_be_clicked(lab: Lab, case: str) -> None:
    html, expected = CASES[case]
    lab.new_page()
    lab.open(f"/{case.replace(' ', '-')}", f"<!doctype html><title>T</title>{html}")
    body = lab.observe(scope="page").yaml_body
    lines = bare(body)
    for pattern in expected:
        assert any(re.fullmatch(pattern, line) for line in lines), f"{pattern}\n{body}"
    for line in body.split("\n")[2:]:
        number, name = re.match(r"\t*\[(\d+)\] [A-Za-z]+ '(.*?)'", line).groups()
        target = lab.run(lab.observer.resolve(int(number)))
        reached = target.in_viewport and target.covered_by is None and not target.passes
        assert reached or name in UNREACHED, f"{line}: {target}"


def test_hidden_content_and_content_out_of_view_are_not_listed(lab: Lab) -> None:
    lab.new_page()
    shown = lab.lines(CASES["details"][0] + CASES["popover"][0] + CASES["aria-hidden"][0])
    assert not [line for line in shown if re.search("inside|not yet|hidden text", line)]


def test_the_scroll_line_includes_the_horizontal_position(lab: Lab) -> None:
    lab.new_page()
    lab.show("<div style='width:10000px;height:10px'></div>")
    assert "0 px left, 8728 px right" in lab.observe().yaml_body
    lab.run(lab.page.evaluate("scrollTo(300, 0)"))
    assert "300 px left, 8428 px right" in lab.observe().yaml_body
    lab.show("<div dir=rtl style='position:absolute;right:0;width:3000px;height:9px'></div>")
    assert "the whole page is in view" in lab.observe().yaml_body
    lab.show("<html style='overflow:hidden'><div style='width:9000px;height:9px'></div>")
    assert "the whole page is in view" in lab.observe().yaml_body


def test_a_link_of_an_image_map_can_be_clicked(lab: Lab) -> None:
    lab.new_page()
    lab.open("/map", CASES["map"][0])
    for name, anchor in (("One", "#a"), ("Two", "#b"), ("Three", "#c")):
        target = lab.run(lab.observer.resolve(lab.id_of(f"link '{name}'")))
        lab.run(lab.page.mouse.click(target.x, target.y))
        assert lab.run(lab.page.evaluate("location.hash")) == anchor


def test_frames_may_be_removed_during_the_walk(lab: Lab) -> None:
    lab.new_page()
    lab.site.pages["/f"] = "<button>frame</button>"
    lab.open(
        "/leaving",
        f"""<button>stays</button><div id=d></div><script>let n = 0; setInterval(() => {{
        d.innerHTML = n++ % 2 ? '' : '<iframe src="http://127.0.0.1:{lab.site.other_port}/f">'
        + '</iframe><iframe srcdoc="<b>x</b>"></iframe>' }}, 5)</script>""",
    )
    for _ in range(6):
        assert "button 'stays'" in bare(lab.observe().yaml_body)


def test_a_very_long_list_shows_its_first_options_and_all_on_request(lab: Lab) -> None:
    lab.new_page()
    lab.show("<select aria-label=L>" + "<option>item</option>" * 299 + "<option>last</select>")
    assert "options: 300 (item | item" in lab.observe(scope="page").yaml_body
    assert "option 'last'" in bare(lab.observe(scope="page", all_options=True).yaml_body)


@pytest.mark.parametrize("fails", ["throw Error('e')", "Promise.reject(Error('e'))"])
def test_endless_errors_of_a_page_do_not_flood_the_connection(lab: Lab, fails: str) -> None:
    lab.new_page()
    reported: list[object] = []
    lab.page.on("pageerror", lambda error: reported.append(error))
    script = f"for (let i = 0; i < 3000; i += 1) setTimeout(() => {{ {fails} }});"
    lab.open("/flood", f"<title>Flood</title><script>{script}</script>")
    # timers run in their order: this one is the last
    lab.run(lab.page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done, 50), 1))"))
    assert 0 < len(reported) <= 100


@pytest.mark.slow
def test_a_paragraph_of_15_mb_shows_its_visible_part(lab: Lab) -> None:
    lab.new_page()
    lab.open("/long", f"<title>Long</title><p>{'lorem ipsum dolor ' * 850_000}</p>")
    # it takes a fraction of a second; measuring each piece of the text took minutes
    body = lab.run(asyncio.wait_for(lab.observer.observe(), 60)).yaml_body
    assert "StaticText 'lorem ipsum dolor" in body and len(body) < 20_000
    lab.run(lab.page.evaluate("scrollTo(0, 30000)"))
    scrolled = lab.run(asyncio.wait_for(lab.observer.observe(), 60)).yaml_body
    assert "StaticText" in scrolled and body.split("[3]")[1] not in scrolled
