// A text field for Python: highlighted, with completion.
import { html, useEffect, useLayoutEffect, useRef, useState } from '/static/ui.js';
import { highlight } from '/static/python.js';
import { visible } from '/static/inert.js';
import { completions } from './calls.js';

const LIST_WIDTH = 340; // the list keeps this distance from the right edge of the field
const NONE = { start: 0, options: [] };

/** Where the cursor is, in pixels of the field, from a copy of its text. */
function caretPlace(mirror, code, cursor) {
  mirror.textContent = code.slice(0, cursor);
  const end = document.createElement('span');
  end.textContent = '\u200b';
  mirror.append(end);
  const left = Math.max(0, Math.min(end.offsetLeft, mirror.offsetWidth - LIST_WIDTH));
  const place = { left, top: end.offsetTop + end.offsetHeight };
  mirror.textContent = '';
  return place;
}

function Options({ found, chosen, place, take }) {
  const style = { left: `${place.left}px`, top: `${place.top}px` };
  return html`<ul class="options" role="listbox" id="options" aria-label="Completions" style=${style}>
    ${found.options.map((one, n) => html`<li role="option" id=${`option-${n}`} aria-selected=${n === chosen}
      onMouseDown=${(event) => { event.preventDefault(); take(one); }}>
      <span class="mono">${visible(one.label)}</span>${one.help && html`<span class="help">${visible(one.help)}</span>`}
    </li>`)}</ul>`;
}

/** Keys of the list of completions; returns whether the key was one. */
function listKey(event, count, chosen, { choose, take, close }) {
  if (event.key === 'ArrowDown') choose((chosen + 1) % count);
  else if (event.key === 'ArrowUp') choose((chosen + count - 1) % count);
  else if (event.key === 'Escape') close();
  else if ((event.key === 'Enter' && !event.ctrlKey && !event.metaKey) || (event.key === 'Tab' && !event.shiftKey)) {
    take(chosen);
  } else return false;
  event.preventDefault();
  return true;
}

/** Enter keeps the indentation, and indents more after a colon. */
function newLine(area) {
  const before = area.value.slice(0, area.selectionStart);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const indent = /^[ \t]*/.exec(line)[0] + (/:\s*(?:#.*)?$/.test(line) ? '    ' : '');
  if (!indent) return false;
  const at = area.selectionStart + 1 + indent.length;
  return { code: `${before}\n${indent}${area.value.slice(area.selectionEnd)}`, cursor: at };
}

export function CodeField({ value, change, label, functions, elements, area, rows }) {
  const [found, setFound] = useState(NONE);
  const [chosen, choose] = useState(0);
  const [place, setPlace] = useState({ left: 0, top: 0 });
  const mirror = useRef(null);
  const cursor = useRef(null);
  useLayoutEffect(() => {
    if (cursor.current === null) return;
    area.current.setSelectionRange(cursor.current, cursor.current);
    cursor.current = null;
  }, [value]);
  useEffect(() => choose(0), [found]);
  const close = () => setFound(NONE);
  const look = (asked) => {
    const { selectionStart: at, value: code } = area.current;
    const next = completions(code, at, functions, elements, asked);
    setFound(next);
    if (next.options.length) setPlace(caretPlace(mirror.current, code, at));
  };
  const put = (code, at) => { cursor.current = at; change(code); };
  const take = (one) => {
    const { selectionStart: at, value: code } = area.current;
    put(code.slice(0, found.start) + one.text + code.slice(at), found.start + one.text.length);
    close();
  };
  const press = (event) => {
    const { options } = found;
    const keys = { choose, close, take: (n) => take(options[n]) };
    if (options.length && listKey(event, options.length, chosen, keys)) return;
    if (event.key === ' ' && event.ctrlKey) { event.preventDefault(); look(true); return; }
    const next = event.key === 'Enter' && !event.ctrlKey && !event.metaKey && newLine(area.current);
    if (next) { event.preventDefault(); put(next.code, next.cursor); }
  };
  const open = found.options.length > 0;
  return html`<div class="code-field"><div class="layers">
    <pre aria-hidden="true">${highlight(`${value}\n`)}</pre><pre class="mirror" aria-hidden="true" ref=${mirror}></pre>
    <textarea ref=${area} class="mono" rows=${rows} spellcheck=${false} autocapitalize="off" aria-label=${label}
      aria-autocomplete="list" aria-haspopup="listbox" aria-controls=${open ? 'options' : undefined}
      aria-activedescendant=${open ? `option-${chosen}` : undefined} value=${value} onKeyDown=${press} onBlur=${close}
      onInput=${(event) => { change(event.target.value); look(false); }}></textarea>
    ${open && html`<${Options} found=${found} chosen=${chosen} place=${place} take=${take} />`}</div></div>`;
}
