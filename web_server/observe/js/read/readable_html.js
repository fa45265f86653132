// Part of the walker: the displayed content as plain HTML, in the order of the composed tree, with the
// frames of the same origin in place.
/* global bodyOf, parentOf, tagOf, typeOf -- safe.js */
/* global composedChildren, composedParent -- dom.js */
/* global forgetVisibility, isUnseen, unseenText -- visibility.js */
/* global INLINE_TAGS -- walk.js */
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
const ENOUGH = 20; // elements of a kind
const NO_TEXTS = ['', ''];
const VOID = new Set('area br col hr wbr'.split(' '));

let readText = ''; // the last text that was read
let inCode = false;
let seenKinds; // kind of element -> how many of them had no text of pseudo-elements

function readableHtml() {
  const out = [];
  readText = '';
  inCode = false;
  seenKinds = new Map();
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
  const [before, after] = separators(tag, style.display);
  if (open) readPiece(open, out);
  out.push(before);
  readElement(node, tag, style, out, depth, struck || isStruck(style));
  out.push(after);
  if (close) readPiece(close, out);
}

// What separates an element from the text around it, where a style sheet does so and not the tag.
function separators(tag, display) {
  if (display === 'inline' || display === 'contents') return tag === 'svg' ? [' ', ' '] : ['', ''];
  if (display.startsWith('inline') || display.startsWith('ruby')) return [' ', ' '];
  return INLINE_TAGS.has(tag) ? ['<div>', '</div>'] : ['', ''];
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
  const [first, last] = pseudoTexts(node, style);
  if (first) readPiece(shownAs(first, node, style, struck), out);
  for (const child of composedChildren(node)) readNode(child, out, depth + 1, struck);
  if (last) readPiece(shownAs(last, node, style, struck), out);
  inCode = outer;
  out.push('</', known, '>');
}

// The texts of `::before` and `::after`. Code is verbatim, without them.
function pseudoTexts(element, style) {
  if (inCode || style.visibility !== 'visible') return NO_TEXTS;
  const kind = kindOf(element);
  const count = seenKinds.get(kind) || 0;
  if (count >= ENOUGH) return NO_TEXTS;
  const texts = [pseudoPart(element, '::before'), pseudoPart(element, '::after')];
  if (kind) seenKinds.set(kind, texts.some(Boolean) ? -Infinity : count + 1);
  return texts;
}

function pseudoPart(element, which) {
  const text = pseudoText(element, which).replace(ICON_LETTERS, '');
  if (!/\S/.test(text)) return '';
  return getComputedStyle(element, which).display === 'inline' ? text : ` ${text} `;
}

// Tag, class and place of an element without other attributes; else ''. If many elements of a kind have no
// text of pseudo-elements, the others have none: to look at each would take longer than all else.
function kindOf(element) {
  const attributes = Element.prototype.getAttributeNames.call(element);
  if (attributes.length > 1 || attributes.length === 1 && attributes[0] !== 'class') return '';
    let kind = '';
  for (let e = element, i = 0; e && typeOf(e) === 1 && i < 3; e = parentOf(e), i++) {
    kind += `${tagOf(e)} ${Element.prototype.getAttribute.call(e, 'class')}|`;
  }
  return kind;
}
