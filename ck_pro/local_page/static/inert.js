// Text of models and pages, shown as text: control characters visible, long texts folded, buttons to copy.
import { html, useState } from './ui.js';

const LINES = 40;
const CHARACTERS = 6000;
const STEP = 200000; // what one press of "show more" adds to a very long text
const C0 = ('NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS '
  + 'GS RS US').split(' ');
const LABELS = {
  0x7f: 'DEL',
  0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM', 0x061c: 'ALM', 0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF',
  0x202d: 'LRO', 0x202e: 'RLO', 0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
  0x00ad: 'SHY', 0x2028: 'LS', 0x2029: 'PS', 0x2060: 'WJ', 0xfff9: 'IAA', 0xfffa: 'IAS', 0xfffb: 'IAT',
};
// C0 without tab and newline, DEL, C1, bidi and zero-width marks, tags (invisible letters), lone surrogates
const CONTROL = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e'
  + '\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\p{Surrogate}]', 'gu');

function mark(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return C0[code];
  return LABELS[code] || `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text whose start is known; the rest is read in pieces.
 *  `load(from)` resolves to {text, chars}, with `from` and `chars` in characters of Unicode. */
export class LongText {
  constructor(text, shown, chars, load) {
    Object.assign(this, { text, shown, chars, load });
  }

  get left() {
    return Math.max(0, this.chars - this.shown);
  }

  async grow() {
    const { text, chars } = await this.load(this.shown);
    this.text += text;
    this.shown = text ? this.shown + [...text].length : this.chars;
    this.chars = chars;
  }

  async whole() {
    while (this.left) await this.grow();
    return this.text;
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return this.text;
  }
}

/** Any value as text: strings as they are, other data as JSON. */
export function asText(value) {
  if (value === null || value === undefined) return '';
  if (value instanceof LongText) return value.text;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** A list of strings and elements: control characters become visible marks. */
export function visible(value) {
  const text = asText(value).replaceAll('\r\n', '\n');
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(CONTROL)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(html`<span class="control">${mark(match[0])}</span>`);
    end = match.index + match[0].length;
  }
  if (end === 0) return text;
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/** The start of a text, at most `lines` lines and `characters` characters; never half a character. */
export function fold(text, lines = LINES, characters = CHARACTERS) {
  let at = -1;
  for (let count = 0; count < lines; count += 1) {
    at = text.indexOf('\n', at + 1);
    if (at < 0 || at > characters) break;
  }
  let end = at < 0 || at > characters ? Math.min(text.length, characters) : at;
  const last = text.charCodeAt(end - 1);
  if (end < text.length && last >= 0xd800 && last < 0xdc00) end -= 1;
  return text.slice(0, end);
}

export function size(count) {
  if (count < 1000) return `${count} characters`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} k characters`;
  return `${(count / 1e6).toFixed(1)} M characters`;
}

/** Put a text on the clipboard; false if the browser refuses. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** Copy a text; the button confirms for a moment. */
export function CopyButton({ text, name = 'text' }) {
  const [state, setState] = useState('');
  const press = async (event) => {
    event.stopPropagation();
    setState('…');
    setState((await copy(text instanceof LongText ? await text.whole() : asText(text))) ? 'copied' : 'not copied');
    setTimeout(() => setState(''), 1500);
  };
  return html`<button class="quiet copy" type="button" onClick=${press} aria-label=${`Copy ${name}`}>
    <span aria-live="polite">${state || 'copy'}</span></button>`;
}

/** A foldable text. `render` turns the shown part into nodes (default: `visible`); `name` names a long text. */
export function InertText({
  value, lines = LINES, characters = CHARACTERS, render = visible, className = 'text', name,
}) {
  const text = asText(value);
  const unread = value instanceof LongText ? value.left : 0;
  const [limit, setLimit] = useState(0);
  const start = fold(text, lines, characters);
  const shown = limit ? fold(text, Infinity, Math.max(limit, start.length)) : start;
  const left = text.length - shown.length + unread;
  const more = Math.min(left, STEP);
  const label = more === left ? `Show all (${size(text.length + unread)})` : `Show ${size(more)} more of ${size(left)}`;
  const show = async () => {
    const wanted = shown.length + more;
    while (value instanceof LongText && value.left && value.text.length < wanted) await value.grow();
    setLimit(wanted);
  };
  const press = (act, title) => html`<p class="more"><button class="quiet" type="button" onClick=${act}>${title}</button></p>`;
  return html`<div class="inert">
    <pre class=${className} dir="auto" role=${name ? 'group' : undefined} aria-label=${name}>${render(shown)}</pre>
    ${left > 0 && press(show, label)}
    ${limit > 0 && press(() => setLimit(0), 'Fold')}
  </div>`;
}
