// The browser of a stopped run: its picture, its elements, and a person's actions in it.
import { html, useEffect, useRef, useState } from '/static/ui.js';
import { InertText, visible } from '/static/inert.js';
import { getJson, invalidate, postJson } from './data.js';

const ELEMENT = /^([ \t]*)\[(\d+)\] ([A-Za-z]+)(.*)$/;
const WIDGETS = new Set(('button checkbox combobox gridcell link listbox menuitem menuitemcheckbox menuitemradio '
  + 'option radio searchbox slider spinbutton switch tab textbox treeitem').split(' '));
const KEYS = new Set(['Enter', 'Backspace', 'Delete', 'Escape', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight',
  'Home', 'End', 'PageUp', 'PageDown']);
const TYPED_AFTER = 500;

/** The lines of a page that a person can click: [{id, label}]. */
export function clickable(text) {
  return text.split('\n').map((line) => ELEMENT.exec(line)).filter((one) => one && WIDGETS.has(one[3]))
    .map((one) => ({ id: one[2], label: `[${one[2]}] ${one[3]}${one[4]}` }));
}

/** Requests to the browsers, one after the other. `views` and `problems` are by session. */
function useBrowsers(path, acted) {
  const [views, setViews] = useState({});
  const [problems, setProblems] = useState({});
  const [busy, setBusy] = useState('');
  const last = useRef(Promise.resolve());
  const put = (set, sid, value) => set((before) => ({ ...before, [sid]: value }));
  const queue = (sid, work) => {
    const mine = last.current.then(() => { setBusy(sid); return work(); })
      .then(() => put(setProblems, sid, ''), (error) => put(setProblems, sid, error.message));
    last.current = mine;
    mine.then(() => { if (last.current === mine) setBusy(''); });
    return mine;
  };
  const look = (sid) => queue(sid, async () => {
    const address = `${path}/look?browser=${encodeURIComponent(sid)}`;
    invalidate(address);
    put(setViews, sid, await getJson(address));
  });
  const act = (sid, action) => queue(sid, async () => {
    put(setViews, sid, await postJson(`${path}/act`, { action, browser: sid }));
    acted();
  });
  return { views, problems, busy, look, act };
}

/** Keys typed on the picture: texts as a whole, other keys one by one; Tab leaves the picture. */
function useTyping(act) {
  const typed = useRef('');
  const timer = useRef(0);
  const flush = (end = '') => {
    clearTimeout(timer.current);
    const text = typed.current;
    typed.current = '';
    if (text) act(`type_text ${text}${end}`);
    return Boolean(text);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return {
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (KEYS.has(event.key)) {
        event.preventDefault();
        if (event.key === 'Enter' && flush('[ENTER]')) return;
        flush();
        act(`press ${event.key}`);
      } else if (event.key.length === 1) {
        event.preventDefault();
        typed.current += event.key;
        clearTimeout(timer.current);
        timer.current = setTimeout(flush, TYPED_AFTER);
      }
    },
    paste(event) {
      event.preventDefault();
      typed.current += event.clipboardData.getData('text/plain');
      flush();
    },
  };
}

function Picture({ view, act, busy }) {
  const typing = useTyping(act);
  const click = (event) => {
    const box = event.currentTarget.querySelector('img').getBoundingClientRect();
    const x = Math.round(((event.clientX - box.left) * view.width) / box.width);
    const y = Math.round(((event.clientY - box.top) * view.height) / box.height);
    act(`click_at ${x},${y}`);
  };
  return html`<div class=${`remote ${busy ? 'busy' : ''}`} tabindex="0" role="application" onClick=${click}
    onKeyDown=${typing.key} onPaste=${typing.paste} aria-busy=${busy}
    aria-label="The page. Click it; typed keys go to it. Tab leaves it.">
    <img src=${`data:image/jpeg;base64,${view.image}`} alt="" draggable="false" /></div>`;
}

/** Type without the picture: on a phone, or with a screen reader. */
function TypeForm({ act }) {
  const [text, setText] = useState('');
  const send = (event) => {
    event.preventDefault();
    if (text) act(`type_text ${text}`);
    setText('');
  };
  return html`<form class="type" onSubmit=${send}>
    <input value=${text} aria-label="Text to type" placeholder="text for the focused field" autocomplete="off"
      onInput=${(event) => setText(event.target.value)} /><button>Type</button>
    <button type="button" onClick=${() => act('press Tab')}>Tab</button>
    <button type="button" onClick=${() => act('press Enter')}>Enter</button></form>`;
}

function Elements({ view, act }) {
  const found = clickable(view.text);
  return html`<details class="elements"><summary>Elements (${found.length})</summary>
    <ul>${found.map((one) => html`<li key=${one.id}><button type="button" class="quiet mono"
      onClick=${() => act(`click [${one.id}]`)}>${visible(one.label)}</button></li>`)}</ul>
    <details><summary>Page as the agent reads it</summary><${InertText} value=${view.text} lines=${60} /></details>
  </details>`;
}

function Bar({ view, act, look, busy }) {
  const [url, setUrl] = useState(view.url);
  useEffect(() => setUrl(view.url), [view.url]);
  const button = (action, name) => html`<button type="button" onClick=${() => act(action)}>${name}</button>`;
  return html`<form class="remote-bar" onSubmit=${(event) => { event.preventDefault(); act(`goto ${url}`); }}>
    ${button('goback', 'Back')}${button('goforward', 'Forward')}
    <input type="text" value=${url} aria-label="Address" onInput=${(event) => setUrl(event.target.value)} />
    <button>Go</button>${button('scroll up', 'Scroll up')}${button('scroll down', 'Scroll down')}
    <button type="button" onClick=${look}>Refresh</button>
    <strong class="title">${visible(view.title)}</strong>
    <span class="muted" role="status">${busy ? 'working' : ''}</span></form>`;
}

/** What a person needs to tell the browsers of a run apart. */
function Choice({ browser, view, problem, chosen, choose }) {
  const title = view ? view.title || 'page without a title' : problem ? 'closed' : 'loading';
  return html`<label class=${`browser-choice ${chosen ? 'chosen' : ''}`}>
    <input type="radio" name="browser" checked=${chosen} onChange=${choose} />
    ${view && html`<img src=${`data:image/jpeg;base64,${view.image}`} alt="" />`}
    <span class="facts"><strong>${visible(title)}</strong>
      ${browser.asks && html`<span class="mark warn">asks you</span>`}
      <span class="mono">${visible(view ? view.url : browser.url)}</span>
      <span>${visible(browser.path)}: ${visible(browser.task)}</span></span></label>`;
}

/** Choose one of several browsers; each is looked at once, for its title. */
function Choices({ browsers, state, chosen, choose }) {
  const { views, problems, look } = state;
  useEffect(() => { for (const one of browsers) if (!views[one.sid]) look(one.sid); }, [browsers.length]);
  return html`<fieldset class="browser-choices"><legend>This run has ${browsers.length} browsers. Choose the one to
    act in.</legend>${browsers.map((one) => html`<${Choice} key=${one.sid} browser=${one} view=${views[one.sid]}
      problem=${problems[one.sid]} chosen=${one === chosen} choose=${() => choose(one.sid)} />`)}</fieldset>`;
}

/** The browsers of a run: a choice if there are several, then the page. `acted` is called after each action. */
export function Remote({ path, browsers, acted }) {
  const state = useBrowsers(path, acted);
  const [sid, choose] = useState('');
  const chosen = browsers.find((one) => one.sid === sid) || browsers[0];
  const several = browsers.length > 1;
  const view = state.views[chosen.sid];
  const problem = state.problems[chosen.sid];
  const busy = state.busy === chosen.sid;
  const look = () => state.look(chosen.sid);
  const act = (action) => state.act(chosen.sid, action);
  return html`<div class="browser">
    ${several && html`<${Choices} browsers=${browsers} state=${state} chosen=${chosen} choose=${choose} />`}
    ${!view && (!several || problem) && html`<p><button type="button" onClick=${look} disabled=${busy}>
      Look at the browser of ${visible(chosen.path)}</button></p>`}
    ${view && html`<section aria-label=${`Browser: ${visible(view.title)}`} key=${chosen.sid}>
      <${Bar} view=${view} act=${act} look=${look} busy=${busy} />
      <p class="muted">Click in the picture and type, as in a browser. What you do is recorded, without passwords, and
        the agent reads it.</p>
      <${Picture} view=${view} act=${act} busy=${busy} />
      <${TypeForm} act=${act} />
      <${Elements} view=${view} act=${act} /></section>`}
    ${problem && html`<p class="problem" role="alert">${visible(problem)}</p>`}</div>`;
}
