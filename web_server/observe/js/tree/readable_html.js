// Part of the walker: the displayed content as plain HTML, in the order of the composed tree, with the
// frames of the same origin in place.
/* global bodyOf, tagOf, typeOf -- safe.js */
/* global composedChildren, composedParent -- dom.js */
/* global escaped, fieldHtml -- readable_fields.js */
/* global isStruck, marksAround, struckText -- typography.js */
/* exported readableHtml */

const OMITTED_TAGS = new Set(('script style noscript template head meta link title base svg object embed '
  + 'datalist').split(' '));
const KEPT_ATTRIBUTES = ['href', 'alt', 'title', 'colspan', 'rowspan', 'start'];
const TAGS_AS_SPAN = /^(sup|sub|s|del|strike)$/; // marksAround writes them
const VOID = new Set('area br col hr img wbr'.split(' '));

let readText = ''; // the last text that was read

function readableHtml() {
  const out = [];
  readText = '';
  const root = bodyOf(document);
  if (root) readNode(root, out, 0, false);
  return out.join('');
}

function readNode(node, out, depth, struck) {
  const type = typeOf(node);
  if (type === 3) {
    const parent = composedParent(node);
    if (parent && getComputedStyle(parent).visibility === 'visible') {
      readPiece(struck ? struckText(node.data) : node.data, out);
    }
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
  readElement(node, tag, out, depth, struck || isStruck(style));
  if (close) readPiece(close, out);
}

function readPiece(text, out) {
  readText = text || readText;
  out.push(escaped(text));
}

function readElement(node, tag, out, depth, struck) {
  const known = TAGS_AS_SPAN.test(tag) ? 'span'
    : tag.includes('-') || /^(slot|body|details|summary|field)$/.test(tag) ? 'div' : tag;
  const field = fieldHtml(node, tag);
  if (field) out.push(field.html);
  if (field && field.whole) return;
  out.push('<', known);
  for (const name of KEPT_ATTRIBUTES) {
    const value = Element.prototype.getAttribute.call(node, name);
    if (value) out.push(' ', name, '="', escaped(value), '"');
  }
  out.push('>');
  if (VOID.has(tag)) return;
  for (const child of composedChildren(node)) readNode(child, out, depth + 1, struck);
  out.push('</', known, '>');
}
