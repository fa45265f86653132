"""The less frequent actions, cookie banners and screenshots in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import ElementActions, Page, browser_settings, serve

from ck_web import WebEnv
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser

HANDS = """<title>ElementActions</title><h1>ElementActions</h1><p id=said>nothing yet</p>
<script>const say = (text) => { document.getElementById('said').textContent = text; };</script>
<button onmouseenter="say('hovered')">Menu</button>
<label><input type=checkbox> Oil</label> <label>Name <input id=name value=old></label>
<label>Sizes <select multiple size=3><option>S<option>M<option>L</select></label>
<label>File <input type=file multiple
 onchange="say([...this.files].map((f) => f.name + ' ' + f.size).join(', '))"></label>
<div draggable=true id=a role=button aria-label=Card>Card</div>
<div id=b role=button aria-label=Box ondragover="event.preventDefault()"
 ondrop="say('dropped')">Box</div>
<canvas width=300 height=100 style="background: #eee; display: block"></canvas>
<div id=list tabindex=0 role=group aria-label=List style="height: 60px; overflow: auto">
<div style="height: 400px">start</div><button>Deep</button></div>
<button onclick="say('Hello ' + prompt('Who?'))">Greet</button>
<button onclick="setTimeout(() => say('late news'), 300)">Later</button>
<a href="/more" target=_blank>More</a>
<div style="height: 3000px"></div><p>The <b>end</b></p>
<script>
const canvas = document.querySelector('canvas');
const at = (event) => `${event.type} ${event.offsetX},${event.offsetY}`;
for (const kind of ['click', 'dblclick', 'contextmenu'])
  canvas.addEventListener(kind, (event) => { event.preventDefault(); say(at(event)); });
let path = 0;
canvas.addEventListener('mousedown', () => { path = 0; });
canvas.addEventListener('mousemove', (event) => { path += event.buttons; });
canvas.addEventListener('mouseup', () => { if (path > 2) setTimeout(() => say('drawn'), 0); });
canvas.addEventListener('wheel', (event) => say('turned ' + event.deltaY));
document.getElementById('name').addEventListener('keydown', (event) => {
  if (event.key === 'F2') say('key F2');
});
</script>"""

BANNER = """<title>News</title><h1>News</h1><p>An article about cookies that one bakes.</p>
<div role=dialog aria-label="Your privacy" style="position: fixed; inset: 40px; background: #fff">
<p>We and our partners use cookies.</p><button onclick="location = '/wrong'">Accept all</button>
<button>Manage options</button>
<button onclick="this.parentNode.remove()">Reject all</button></div>"""

PICTURE = """<title>Map</title><canvas width=1200 height=700></canvas>
<script>document.querySelector('canvas').getContext('2d').fillRect(10, 10, 500, 500);</script>"""

FINE = """<title>Fine</title><p id=prose>The quick brown fox jumps.</p><p id=said>nothing yet</p>
<label>Volume <input type=range min=0 max=100 value=0 style="width: 200px"></label>
<canvas aria-label=Pad width=300 height=100 style="background: #eee; display: block"></canvas>
<script>
const say = (text) => { document.getElementById('said').textContent = text; };
document.onselectionchange = () => { if (String(getSelection())) say('marked ' + getSelection()); };
const pad = document.querySelector('canvas');
pad.onclick = (event) => say(`clicked ${event.offsetX},${event.offsetY}`);
pad.ondblclick = (event) => say(`twice ${event.offsetX},${event.offsetY}`);
let from = '';
pad.onmousedown = (event) => { from = `${event.offsetX},${event.offsetY}`; };
pad.onmouseup = (event) => {
  const to = `${event.offsetX},${event.offsetY}`;
  if (to !== from) setTimeout(() => say(`drawn ${from} ${to}`), 0);
};
</script>"""

MORE = "<title>More</title><h1>More</h1>"
PAGES = {"/banner": BANNER, "/picture": PICTURE, "/more": MORE, "/hands": HANDS, "/fine": FINE}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of a small web site."""
    with serve(PAGES) as url:
        yield url
        shared_servers.stop_servers()


def _env(site: str, workdir: Path, path: str, **settings: Any) -> WebEnv:
    pictures = settings.pop("pictures", "asked")
    settings = browser_settings(**settings, target_url=site + path)
    return WebEnv(settings, workdir=workdir, pictures=pictures)


def test_keyboard_and_element_actions_reach_the_page(site: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")
    (tmp_path / "b c.csv").write_text("1,2,3")
    do = ElementActions(_env(site, tmp_path, "/hands"))
    assert "hovered" in do("hover {button .Menu}")
    assert "checked: true" in do("check {checkbox .Oil}")
    assert "already" in do("check {checkbox .Oil}")
    assert "checked: true" not in do("uncheck {checkbox .Oil}")
    assert "value: old" not in do("clear {textbox .Name}")
    assert "value: ab" in do("type_text ab")
    assert "key F2" in do("press {textbox .Name} F2")
    do("press Control+a Delete")
    assert "value: ab" not in do.env.observe().text
    assert do('select {listbox .Sizes} ["S", "L"]').count("selected: true") == 2
    assert "a.csv 3, b c.csv 5" in do('upload {button .File} a.csv "b c.csv"')
    assert "dropped" in do("drag {button .Card} to {button .Box}")
    assert "reached the end" not in do("scroll_in {group .List} down")
    assert "failed" not in do("scroll_in {group .List} right")


def test_pointer_and_wait_actions_reach_the_page(site: str, tmp_path: Path) -> None:
    do = ElementActions(_env(site, tmp_path, "/hands"))
    box = re.search(r"Canvas '' .*box: (\d+),(\d+),", do.env.observe().text)
    assert box
    x, y = int(box[1]), int(box[2])
    assert "click 20,30" in do(f"click_at {x + 20} {y + 30}")
    assert "contextmenu 20,30" in do(f"click_at {x + 20} {y + 30} right")
    assert "dblclick 5,6" in do(f"click_at {x + 5} {y + 6} double")
    assert "drawn" in do(f"drag_path {x + 5},{y + 5} {x + 90},{y + 50} {x + 9},{y + 60}")
    assert "turned 40" in do(f"wheel 40 0 at {x + 20},{y + 20}")
    do("move 5 5")
    do("answer_dialog accept Ada")
    assert "Hello Ada" in do("click {button .Greet}")
    do("click {button .Later}")
    assert "late news" in do("wait_for 10s late news") + do.env.observe().text
    assert "'The end'" in do("find the END")
    assert "px above" in do("scroll_to The end")
    assert do("read").startswith("Part 1 of 1\n\n# ElementActions") and "The **end**" in do("read")
    assert do("read 1").startswith("Part 1 of 1")


def test_points_in_elements_distances_and_text_selection(site: str, tmp_path: Path) -> None:
    do = ElementActions(_env(site, tmp_path, "/fine"))
    assert re.search(r"value: [1-9]\d*", do("drag {slider .Volume} by 60,0"))
    assert "clicked 20,30" in do("click_at {Canvas .Pad} 20 30")
    assert "twice 25,35" in do("click_at {Canvas .Pad} 25 35 double")
    assert "drawn 5,6 70,40" in do("drag_path {Canvas .Pad} 5,6 70,40")
    do("move {Canvas .Pad} 1 1")
    assert "marked brown fox" in do("select_text brown  Fox")
    marked = do("select_text {StaticText .The quick} quick")
    assert "marked quick" in marked
    assert " failed: " in do.attempt("select_text a slow snail")
    assert " failed: " in do.attempt("drag {slider .Volume} by 5000,0")


def test_tabs_are_opened_switched_and_closed(site: str, tmp_path: Path) -> None:
    do = ElementActions(_env(site, tmp_path, "/hands"))
    assert "now at" in do("click {link .More}")
    assert "Tab 1 (current): More" in do.env.observe().text
    assert "ElementActions" in do("switch_tab 0")
    do("new_tab " + site + "/more")
    assert "Tab 2 (current): More" in do.env.observe().text
    assert "now at" in do("close_tab")
    do("close_tab 1")
    text = do.env.observe().text
    assert "Tab 0 (current): ElementActions" in text and "Tab 1" not in text
    do("goto " + site + "/more")
    do("goback")
    assert "('More')" in do("goforward")


def test_a_banner_is_answered_with_the_least_consent(site: str, tmp_path: Path) -> None:
    env = _env(site, tmp_path, "/banner")
    text = env.observe().text
    assert "dialog" not in text and "An article about cookies" in text
    assert "Note: a cookie banner was answered with button 'Reject all'" in text
    env.close()
    env = _env(site, tmp_path, "/banner", cookie_banners="off")
    assert "[3] heading 'News'" in env.observe().text
    assert re.search(r"\[\d+\] button 'Reject all'", env.observe().text)
    env.close()


def test_a_page_of_pictures_is_shown_as_jpeg(site: str, tmp_path: Path) -> None:
    env = _env(site, tmp_path, "/picture", pictures="auto")
    assert env.observe().image.startswith("data:image/jpeg;base64,/9j/")
    env.step_state(f"goto {site}/more")
    assert env.observe().image == ""
    env.close()


def test_inline_content_is_saved_from_its_url(tmp_path: Path) -> None:
    data = Page('{"lamps": 3}', headers={"Content-Type": "application/json"})
    with serve({"/": MORE, "/data.json": data}) as url:
        env = WebEnv(browser_settings(), workdir=tmp_path, target_url=f"{url}/")
        said = env.step_state(f"save {url}/data.json out/lamps.json")
        assert "saved data.json (12 bytes, application/json) from" in said
        assert said.endswith("as 'out/lamps.json'")
        assert (tmp_path / "out" / "lamps.json").read_text() == '{"lamps": 3}'
        assert "Downloaded files: out/lamps.json" in env.observe().text
        assert not (tmp_path / "downloads").exists()
        assert "HTTP status 404" in env.step_state(f"save {url}/none.png none.png")
        assert "not a public address" in env.step_state("save http://10.0.0.1/a a.txt")
        assert "outside" in env.step_state(f"save {url}/data.json /etc/x")
        assert not (tmp_path / "a.txt").exists()
        env.close()
