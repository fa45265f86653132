// A small highlighter for Python: a list of [class, text] that joins to the source, and its nodes.
import { html } from './ui.js';
import { visible } from './inert.js';

const KEYWORDS = new Set(('False None True and as assert async await break class continue def del elif else except '
  + 'finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield case')
  .split(' '));
const BUILTINS = new Set(('abs all any bool bytes dict enumerate filter float format int isinstance len list map max '
  + 'min next open print range repr reversed round set sorted str sum tuple type zip Exception ValueError KeyError')
  .split(' '));
const RULES = [
  ['comment', /#[^\n]*/y],
  ['string', /[rbfuRBFU]{0,2}("""|''')(?:\\[^]|(?!\1)[^])*(?:\1|$)/y],
  ['string', /[rbfuRBFU]{0,2}(["'])(?:\\[^]|(?!\1)[^\\\n])*(?:\1|(?=\n)|$)/y],
  ['number', /(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?j?)/y],
  ['decorator', /@[A-Za-z_][\w.]*/y],
  ['word', /[\p{L}_][\p{L}\p{N}_]*/uy],
  ['space', /\s+/y],
];
const LIMIT = 100000; // longer sources are shown without colours

function kindOf(kind, text, source, end) {
  if (kind !== 'word') return kind;
  if (KEYWORDS.has(text)) return 'keyword';
  if (/\s*\(/y.test(source.slice(end, end + 20))) return BUILTINS.has(text) ? 'builtin' : 'call';
  return BUILTINS.has(text) ? 'builtin' : '';
}

/** Split Python source into [class, text]; any text is accepted, and no character is lost. */
export function tokens(source) {
  const found = [];
  let at = 0;
  let plain = '';
  const push = (kind, text) => {
    if (plain) found.push(['', plain]);
    plain = '';
    if (text) found.push([kind, text]);
  };
  while (at < source.length) {
    let text = '';
    for (const [kind, rule] of RULES) {
      rule.lastIndex = at;
      const match = rule.exec(source);
      if (!match || !match[0]) continue;
      [text] = match;
      const name = kindOf(kind, text, source, at + text.length);
      if (name && name !== 'space') push(name, text);
      else plain += text;
      break;
    }
    if (!text) {
      text = source[at];
      plain += text;
    }
    at += text.length;
  }
  push('', '');
  return found;
}

/** Nodes for highlighted Python. */
export function highlight(source) {
  if (source.length > LIMIT) return visible(source);
  return tokens(source).map(([kind, text]) => (
    kind ? html`<span class=${`py-${kind}`}>${visible(text)}</span>` : visible(text)));
}

/** Nodes for a model's reply: blocks between ``` fences are highlighted, the rest is plain. */
export function highlightReply(text) {
  return text.split(/(^```[^\n]*\n[^]*?(?:^```[ \t]*$|$(?![^])))/m).map((part) => {
    const found = part.match(/^(```[^\n]*\n)([^]*?)(```[ \t]*)?$/);
    if (!found || !part.startsWith('```')) return visible(part);
    const [, open, code, close = ''] = found;
    return [html`<span class="py-comment">${visible(open)}</span>`, highlight(code),
      html`<span class="py-comment">${close}</span>`];
  });
}
