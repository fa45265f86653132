// The prompt of a waiting call: what is new first, the rest folded; page lines that make calls.
import { html, useEffect, useRef, useState } from '/static/ui.js';
import { CopyButton, InertText, size, visible } from '/static/inert.js';
import { highlight } from '/static/python.js';
import { callOf, contentOf, elementOf, functionsFor, segments } from './calls.js';

const PARTS_OF_PAGE = new Set(['RootWebArea', 'scrollbar']);
const WIDGETS = new Set(('button checkbox combobox gridcell link listbox menuitem menuitemcheckbox menuitemradio '
  + 'option radio searchbox slider spinbutton switch tab textbox treeitem').split(' '));
const SAME_SHOWN = 400; // an unchanged start of a message with more characters is folded

/** The calls for one element, as buttons in a row; Escape closes it. */
function ElementCalls({ element, functions, insert, close }) {
  const row = useRef(null);
  useEffect(() => row.current.querySelector('button').focus(), []);
  const leave = () => {
    row.current.closest('.line').querySelector('.element').focus();
    close();
  };
  const keys = (event) => { if (event.key === 'Escape') leave(); };
  return html`<div class="calls" role="group" aria-label=${`Calls for [${element.id}] ${element.role}`} ref=${row}
    onKeyDown=${keys}>
    ${functions.map((one) => {
    const call = callOf(one, element.id);
    return html`<button type="button" class="quiet mono" onClick=${() => { leave(); insert(call); }}
      title=${one.help}>${call.text}</button>`;
  })}
    <button type="button" class="quiet" onClick=${leave}>close</button></div>`;
}

/** The functions that a line of a page can write; none for parts of the page itself. */
function functionsOf(element, functions) {
  return element && !PARTS_OF_PAGE.has(element.role) ? functionsFor(element.role, functions) : [];
}

function PageLine({ line, functions, insert, open, setOpen, first }) {
  const element = elementOf(line);
  const fitting = functionsOf(element, functions);
  if (!fitting.length) return html`<div class="line">${visible(line) || ' '}</div>`;
  const call = callOf(fitting[0], element.id);
  const isOpen = open === element.id;
  const usual = WIDGETS.has(element.role) || !fitting[0].element_roles.includes('*');
  return html`<div class="line"><div class="row"><span class="indent">${element.indent}</span><button type="button"
      class=${`element ${usual ? '' : 'other'}`} tabindex=${first ? 0 : -1} data-element=${element.id}
      title=${`writes ${call.text}`} onClick=${() => insert(call)}>${`[${element.id}] ${element.role}`}${
    visible(element.rest)}</button>${
    fitting.length > 1 && html`<button type="button" class="more-calls quiet" tabindex="-1"
      aria-label=${`More calls for ${element.id}`} aria-expanded=${isOpen}
      onClick=${() => setOpen(isOpen ? null : element.id)}>▾</button>`}</div>${
    isOpen && html`<${ElementCalls} element=${element} functions=${fitting} insert=${insert}
      close=${() => setOpen(null)} />`}</div>`;
}

function neighbour(area, from, step) {
  const all = [...area.querySelectorAll('.element')];
  const at = all.indexOf(from) + step;
  return all[Math.max(0, Math.min(all.length - 1, at))];
}

/** Page text. Arrow keys move between elements, Enter writes a call, the menu key or Shift+Enter lists all calls. */
export function PageText({ text, functions, insert }) {
  const [open, setOpen] = useState(null);
  const area = useRef(null);
  const lines = text.split('\n');
  const first = lines.findIndex((line) => functionsOf(elementOf(line), functions).length > 0);
  const press = (event) => {
    if (!event.target.classList.contains('element')) return;
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -1e6, End: 1e6 }[event.key];
    if (step) neighbour(area.current, event.target, step).focus();
    else if (event.key === 'ContextMenu' || (event.key === 'Enter' && event.shiftKey)) {
      setOpen(Number(event.target.dataset.element));
    } else return;
    event.preventDefault();
  };
  return html`<div class="page-text" role="group" aria-label="Page: elements write calls" ref=${area}
    onKeyDown=${press}>${lines.map((line, n) => html`<${PageLine} key=${n} line=${line} functions=${functions}
      insert=${insert} open=${open} setOpen=${setOpen} first=${n === first} />`)}</div>`;
}

function Segment({ part, functions, insert }) {
  if (part.kind === 'page' && functions) {
    return html`<${PageText} text=${part.text} functions=${functions} insert=${insert} />`;
  }
  const block = part.kind === 'text' ? '' : 'block';
  const render = part.kind === 'python' ? highlight : visible;
  return html`<div class=${block}><${InertText} value=${part.text} render=${render} lines=${120} characters=${12000} />
  </div>`;
}

function MessageBody({ message, same, functions, insert }) {
  const { text, images, others } = contentOf(message);
  const from = same > SAME_SHOWN ? same : 0;
  const calls = (message.tool_calls || []).map((one) => JSON.stringify(one.function || one));
  return html`<div class="body">
    ${from > 0 && html`<details class="same"><summary>Unchanged start, ${size(from)}</summary>
      <${InertText} value=${text.slice(0, from)} /></details>`}
    ${segments(text.slice(from)).map((part) => html`<${Segment} part=${part} functions=${functions}
      insert=${insert} />`)}
    ${images.map((url, n) => html`<img class="shot" src=${url} alt=${`Image ${n + 1} of the prompt`} />`)}
    ${others > 0 && html`<p class="muted">${others} other part${others > 1 ? 's' : ''} of this message cannot be
      shown.</p>`}
    ${calls.map((one) => html`<pre class="block">${visible(one)}</pre>`)}
  </div>`;
}

function firstLine(message) {
  const text = contentOf(message).text.trim() || (message.tool_calls ? 'calls' : '');
  return text.split('\n')[0].slice(0, 100);
}

function Message({ message, number, unchanged, same }) {
  const { text } = contentOf(message);
  const folded = unchanged || message.role === 'system';
  return html`<details class=${`message ${unchanged ? 'unchanged' : ''}`} open=${!folded}>
    <summary><span class="role">${message.role}</span> <span class="muted">${number}, ${size(text.length)}</span>
      <span class="first">${visible(firstLine(message))}</span></summary>
    <${MessageBody} message=${message} same=${same} /></details>`;
}

/** A whole prompt: its last message, then the new ones, then the unchanged ones. */
export function Prompt({ call, insert }) {
  const { messages, same } = call;
  const last = messages.length - 1;
  const earlier = messages.slice(0, last).map((message, n) => ({ message, n }));
  const fresh = earlier.filter(({ n }) => n >= same.messages);
  const old = earlier.filter(({ n }) => n < same.messages);
  const one = ({ message, n }) => html`<${Message} key=${n} message=${message} number=${n + 1}
    unchanged=${n < same.messages} same=${n === same.messages ? same.characters : 0} />`;
  return html`<div class="prompt">
    ${last >= 0 && html`<section aria-label="Last message of the prompt" class="latest">
      <h3>Now <span class="muted">(${messages[last].role}, message ${last + 1} of ${messages.length})</span>
        <${CopyButton} text=${JSON.stringify(messages, null, 2)} name="all messages as JSON" /></h3>
      <${MessageBody} message=${messages[last]} same=${last === same.messages ? same.characters : 0}
        functions=${call.guide.functions} insert=${insert} /></section>`}
    ${fresh.length > 0 && html`<section aria-label="Earlier messages"><h3>${
      same.messages ? 'New since the last call of this agent' : 'Before'}</h3>${fresh.map(one)}</section>`}
    ${old.length > 0 && html`<details class="old"><summary>Unchanged since the last call: ${old.length}
      message${old.length > 1 ? 's' : ''}</summary>${old.map(one)}</details>`}
  </div>`;
}
