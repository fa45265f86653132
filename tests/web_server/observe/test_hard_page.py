"""A page with everything that web observers often miss."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from observe_lab import Lab, bare

from web_server.observe.target import ElementGone

pytestmark = pytest.mark.browser

HARD = """<!doctype html><title>Hard</title>
<style>
  .menu ul { display: none } .menu:hover ul { display: block }
  .shine::after { content: "!" }
</style>
<iframe title="same" srcdoc="<button>same origin</button>
  <iframe title='deeper' srcdoc='&lt;button&gt;nested&lt;/button&gt;'></iframe>"
  height="120"></iframe>
<iframe title="other port" src="http://127.0.0.1:OTHER/inner" height="60"></iframe>
<iframe title="other site" src="http://localhost:PORT/outer" height="120"></iframe>
<div><template shadowrootmode="closed"><button>declared shadow</button></template></div>
<open-box></open-box><div id="shut"></div><div id="slots"><button>slotted</button></div>
<div contenteditable>write here</div>
<div id="own">own listener</div>
<div id="property">property listener</div>
<div onclick="1">attribute listener</div>
<ul id="delegated"><li style="cursor: pointer">delegated by cursor</li><li>plain item</li></ul>
<div draggable="true">draggable</div><div id="mouse-drag" style="cursor: grab">grab me</div>
<button><svg class="icon-trash" width="16" height="16"><path d="M0 0h16v16z"/></svg></button>
<div class="menu" id="hover">Products<ul><li><a href="/p">Phones</a></li></ul></div>
<div role="tablist"><div role="tab" aria-selected="true"><a href="#t">tab link</a></div></div>
<div style="position: relative; width: 200px; height: 40px"><button>under</button>
  <div role="dialog" aria-label="Cookies" style="position: absolute; inset: 0"></div></div>
<button disabled class="shine">off</button>
<label>Styled <input type="checkbox" hidden></label>
<canvas width="40" height="20"></canvas>
<svg width="40" height="40"><circle id="dot" cx="20" cy="20" r="15" fill="red"/></svg>
<div style="height: 50px; overflow: auto"><p>first</p><p>second</p><button>deep</button></div>
<img src="x" alt="a cat"><a href="/no-name"><img src="/img/arrow.png" width="20" height="20"></a>
<script>
  customElements.define('open-box', class extends HTMLElement {
    constructor() {
      super();
      this.attachShadow({ mode: 'open' }).innerHTML = '<button>open shadow</button><b>in open</b>';
      this.shadowRoot.querySelector('b').addEventListener('click', () => 0);
    }
  });
  const root = shut.attachShadow({ mode: 'closed' });
  root.innerHTML = '<button>closed shadow</button><i>in closed</i>';
  root.querySelector('i').addEventListener('mousedown', () => 0);
  slots.attachShadow({ mode: 'closed' }).innerHTML = '<section><slot></slot></section>';
  own.addEventListener('click', () => 0);
  property.onclick = () => 0;
  delegated.addEventListener('click', () => 0);
  hover.addEventListener('mouseenter', () => 0);
  dot.addEventListener('click', () => 0);
</script>"""

EXPECTED = [
    r"button 'same origin'",
    r"button 'nested'",
    r"button 'another origin'",
    r"button 'another site'",
    r"button 'nested in another site'",
    r"button 'open shadow'",
    r"generic 'in open' clickable: true",
    r"button 'closed shadow'",
    r"generic 'in closed' clickable: true",
    r"button 'slotted'",
    r"button 'declared shadow'",
    r"generic '' value: write here editable: true",
    r"generic 'own listener' clickable: true",
    r"generic 'property listener' clickable: true",
    r"generic 'attribute listener' clickable: true",
    r"listitem 'delegated by cursor' clickable: true",
    r"StaticText 'plain item'",
    r"group 'draggable' draggable: true",
    r"generic 'grab me' draggable: true",
    r"button '' hint: icon-trash.*",
    r"generic 'Products' hoverable: true",
    r"tab 'tab link' selected: true",
    r"link 'tab link'",
    r"button 'under' covered by: dialog Cookies.*",
    r"button 'off ?!' disabled: true",
    r"LabelText 'Styled' checked: false",
    r"Canvas '' .*box: \d+,\d+,40,20",
    r"generic '' .*color: rgb\(255,0,0\) size: 30x30 clickable: true",
    r"generic '' scroll: 0 px above, \d+ px below",
    r"image 'a cat'",
    r"link '' hint: .*",
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


@pytest.fixture(scope="module")
def hard(lab: Lab) -> str:
    lab.site.pages["/inner"] = "<button>another origin</button>"
    lab.site.pages["/outer"] = (
        "<button>another site</button>"
        f"<iframe height=50 src='http://127.0.0.1:{lab.site.port}/leaf'></iframe>"
    )
    lab.site.pages["/leaf"] = "<button>nested in another site</button>"
    lab.site.pages["/p"] = ""
    page = HARD.replace("OTHER", str(lab.site.other_port)).replace("PORT", str(lab.site.port))
    lab.open("/hard", page)
    return lab.observe(scope="page").yaml_body


@pytest.mark.parametrize("expected", EXPECTED)
def test_every_element_of_the_hard_page_is_listed(hard: str, expected: str) -> None:
    assert any(re.fullmatch(expected, line) for line in bare(hard)), hard


def test_every_id_resolves_to_its_element(lab: Lab, hard: str) -> None:
    for line in hard.split("\n")[2:]:
        number, role, name = re.match(r"\t*\[(\d+)\] ([A-Za-z]+) '(.*?)'", line).groups()
        target = lab.run(lab.observer.resolve(int(number)))
        assert target.role == role, line
        if name and role not in ("StaticText", "row"):
            assert target.name == name, line


@pytest.mark.parametrize(
    "name",
    ["same origin", "nested", "another origin", "another site", "nested in another site"],
)
def test_the_point_inside_frames_is_hit(lab: Lab, hard: str, name: str) -> None:
    number = lab.id_of(f"button '{name}'")

    async def click() -> str:
        target = await lab.observer.resolve(number)
        if not target.in_viewport:
            target = await target.scroll_into_view()
        assert target.in_viewport and target.covered_by is None
        world, local_id = target.place()
        await world.run(
            "(id) => ckObserver.elementOf(id).addEventListener('click', (event) => {"
            " event.currentTarget.dataset.hit = 'yes'; })",
            local_id,
        )
        await lab.page.mouse.click(target.x, target.y)
        return str(await world.run("(id) => ckObserver.elementOf(id).dataset.hit", local_id))

    assert lab.run(click()) == "yes"


@pytest.mark.parametrize("name", ["nested in another site", "closed shadow", "slotted", "under"])
def test_a_target_has_a_playwright_handle(lab: Lab, hard: str, name: str) -> None:
    number = lab.id_of(f"button '{name}'")

    async def text() -> str:
        target = await lab.observer.resolve(number)
        handle = await target.handle()
        owner = await handle.owner_frame()
        assert owner == target.frame
        return await handle.inner_text()

    assert lab.run(text()) == name


def test_a_covered_element_names_its_cover(lab: Lab, hard: str) -> None:
    target = lab.run(lab.observer.resolve(lab.id_of("button 'under'")))
    target = lab.run(target.scroll_into_view())
    assert target.covered_by is not None and target.covered_by.startswith("dialog Cookies")


def test_unknown_and_removed_ids_raise_element_gone(lab: Lab, hard: str) -> None:
    with pytest.raises(ElementGone, match=r"\[98765\]"):
        lab.run(lab.observer.resolve(98765))
    number = lab.id_of("attribute listener")
    lab.run(lab.page.evaluate("document.querySelector('[onclick]').remove()"))
    with pytest.raises(ElementGone):
        lab.run(lab.observer.resolve(number))
