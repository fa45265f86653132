// Part of the walker: the displayed content as plain HTML, in the order of the composed tree, with the
// frames of the same origin in place.
/* global bodyOf, tagOf, typeOf -- safe.js */
/* global composedChildren, composedParent -- dom.js */
/* global forgetVisibility, isUnseen, unseenText -- visibility.js */
/* global isStruck, marksAround, struckText -- typography.js */
/* global pseudoText, transformed -- names.js */
/* global escaped, fieldHtml -- readable_fields.js */
/* global ICON_LETTERS, pictureText -- shown_text.js */
/* exported readableHtml */

const OMITTED_TAGS = new Set(('script style noscript template head meta link title base object embed '
  + 'datalist defs desc metadata symbol').split(' '));
const KEPT_ATTRIBUTES = ['href', 'title', 'colspan', 'rowspan', 'start'];
const TAGS_AS_SPAN = /^(sup|sub|s|del|strike|svg|g|text|tspan)$/;
const TAGS_AS_DIV = /^(slot|body|details|summary|field|foreignObject)$/;
const VOID = new Set('area br col hr wbr'.split(' '));

let readText = ''; // the last text that was read
let inCode = false;

function readableHtml() {
  const out = [];
  readText = '';
  inCode = false;
  forgetVisibility();
  const root = bodyOf(document);
  if (root) readNode(root, out, 0, false);
  return out.join('');
}

function readNode(node, out, depth, struck) {
  const type = typeOf(node);
  if (type === 3) {
    readTextNode(node, out, struck);
    return;
  }
  if (type !== 1 || depth > 400) return;
  const tag = tagOf(node);
  if (OMITTED_TAGS.has(tag)) return;
  const style = getComputedStyle(node);
  if (style.display === 'none') return;
  if (style.display !== 'inline') readText = '';
  if (tag === 'iframe' || tag === 'frame') {
    const inner = node.contentDocument && bodyOf(node.contentDocument);
    if (inner) readNode(inner, out, depth + 1, false);
    return;
  }
  const [open, close] = marksAround(node, tag, style, readText);
  if (open) readPiece(open, out);
  readElement(node, tag, style, out, depth, struck || isStruck(style));
  if (close) readPiece(close, out);
}

function readTextNode(node, out, struck) {
  const parent = composedParent(node);
  const style = parent && getComputedStyle(parent);
  if (!style || style.visibility !== 'visible') return;
  readPiece(shownAs(node.data, parent, style, struck), out);
}

// A text as `element` shows it.
function shownAs(text, element, style, struck) {
  const written = struck ? struckText(transformed(text, style)) : transformed(text, style);
  return /\S/.test(text) && isUnseen(element, style) ? unseenText(written) : written;
}

function readPiece(text, out) {
  readText = text || readText;
  out.push(escaped(text));
}

function readElement(node, tag, style, out, depth, struck) {
  const known = TAGS_AS_SPAN.test(tag) ? 'span' : tag.includes('-') || TAGS_AS_DIV.test(tag) ? 'div' : tag;
  const field = fieldHtml(node, tag);
  if (field) out.push(field.html);
  if (field && field.whole) return;
  const picture = pictureText(node, tag);
  if (picture) {
    readPiece(`[${tag === 'button' ? 'button' : 'image'}: ${shownAs(picture, node, style, struck)}]`, out);
  }
  if (tag === 'img') return;
  out.push('<', known);
  for (const name of KEPT_ATTRIBUTES) {
    const value = Element.prototype.getAttribute.call(node, name);
    if (value) out.push(' ', name, '="', escaped(value), '"');
  }
  out.push('>');
  if (VOID.has(tag)) return;
  const outer = inCode;
  inCode = outer || tag === 'pre';
  readPseudo(node, '::before', style, out, struck);
  for (const child of composedChildren(node)) readNode(child, out, depth + 1, struck);
  readPseudo(node, '::after', style, out, struck);
  inCode = outer;
  out.push('</', known, '>');
}

// The text of a pseudo-element. Code is verbatim, without it.
function readPseudo(element, which, style, out, struck) {
  if (style.visibility !== 'visible' || inCode) return;
  const text = pseudoText(element, which).replace(ICON_LETTERS, '');
  if (!/\S/.test(text)) return;
  const apart = getComputedStyle(element, which).display === 'inline' ? '' : ' ';
  readPiece(apart + shownAs(text, element, style, struck) + apart, out);
}
