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

/** Requests to the browser, one after the other. */
function useBrowser(path, acted) {
  const [view, setView] = useState(null);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const last = useRef(Promise.resolve());
  const queue = (work) => {
    setBusy(true);
    const mine = last.current.then(work).then(() => setProblem(''), (error) => setProblem(error.message));
    last.current = mine;
    mine.then(() => { if (last.current === mine) setBusy(false); });
    return mine;
  };
  const look = () => queue(async () => {
    invalidate(`${path}/look`);
    setView(await getJson(`${path}/look`));
  });
  const act = (action) => queue(async () => {
    const found = await postJson(`${path}/act`, { action });
    setView(found);
    acted();
  });
  return { view, problem, busy, look, act };
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

function Elements({ view, act }) {
  const [text, setText] = useState('');
  const found = clickable(view.text);
  return html`<details class="elements"><summary>Elements (${found.length})</summary>
    <form class="type" onSubmit=${(event) => { event.preventDefault(); act(`type_text ${text}`); setText(''); }}>
      <input value=${text} aria-label="Text to type" placeholder="text for the focused field" autocomplete="off"
        onInput=${(event) => setText(event.target.value)} /><button>Type</button>
      <button type="button" onClick=${() => act('press Tab')}>Tab</button>
      <button type="button" onClick=${() => act('press Enter')}>Enter</button></form>
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
    <span class="muted" role="status">${busy ? 'working' : ''}</span></form>`;
}

/** The browser: a button first, then the page. `acted` is called after each action. */
export function Remote({ path, agent, acted }) {
  const { view, problem, busy, look, act } = useBrowser(path, acted);
  return html`<div class="browser">
    ${!view && html`<p><button type="button" onClick=${look} disabled=${busy}>Look at the browser of ${agent}</button></p>`}
    ${view && html`<${Bar} view=${view} act=${act} look=${look} busy=${busy} />
      <${Picture} view=${view} act=${act} busy=${busy} />
      <p class="muted">${visible(view.title)}</p><${Elements} view=${view} act=${act} />`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}</div>`;
}
