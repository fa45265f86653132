// Part of the walker: table rows. The text of a row is one line, its interactive content follows below.
/* global composedParent, idOf -- dom.js */
/* global recorded -- page_records.js */
/* global attribute, collapse -- roles.js */
/* global hintName, symbolName -- hints.js */
/* global statesOf -- states.js */
/* global flushText, marked -- text.js */
/* global boxOf, clean, flagsFor, record, walk -- walk.js */
/* global visitContainer, visitInside -- containers.js */
/* exported iconText, visitRow */

const LONG_CELL = 100;
const MAX_ITEMS = 8;

// The text of a table row, cell by cell.
class RowText {
  constructor() {
    this.cells = [];
    this.hasText = false;
    this.links = new Set();
  }

  addCell() {
    this.cells.push('');
  }

  addText(piece) {
    this.append(marked(piece));
    this.hasText = this.hasText || /\S/.test(piece);
  }

  addSpace() {
    if (this.cells.length) this.append(' ');
  }

  append(piece) {
    if (!this.cells.length) this.cells.push('');
    this.cells[this.cells.length - 1] += piece;
  }

  lastText() {
    return this.cells.length ? this.cells[this.cells.length - 1] : '';
  }

  // The text of an element that has its own line below the row.
  addOwnLine(text) {
    this.append(marked(` ${text.length > LONG_CELL ? text.slice(0, LONG_CELL) + '\u2026' : text} `));
  }

  // Whether an earlier link of the row has the same address. A script may treat two such links differently.
  repeats(link) {
    const url = link.href;
    if (typeof url !== 'string' || !url || /^javascript:|#/.test(url) || recorded.click.has(link)) return false;
    if (this.links.has(url)) return true;
    this.links.add(url);
    return false;
  }

  toString() {
    return this.hasText ? this.cells.map(collapse).join(' | ').replace(/(\s*\|\s*)+$/, '') : '';
  }

  // For layout tables, where the positions of empty cells have no meaning.
  toText() {
    return this.hasText ? this.cells.map(collapse).filter(Boolean).join(' | ') : '';
  }
}

function isReadableRow(element) {
  return element.textContent.length < 800
    && !element.querySelector('table,h1,h2,h3,h4,p+p,iframe,canvas,[role=row]')
    && [...element.querySelectorAll('ul,ol')].every((list) => list.childElementCount <= MAX_ITEMS)
    && !isWeek(element);
}

// What an icon shows that is all of a cell, from its title, symbol, class or file.
function iconText(cell) {
  const icon = cell.firstElementChild && cell.querySelector('svg,i,img,[class*=icon i]');
  if (!icon || !icon.checkVisibility({ visibilityProperty: true })
    || cell.querySelector('a,button,input,select,textarea')) return '';
  const titled = cell.querySelector('[title]') || cell;
  return collapse(attribute(titled, 'title')) || symbolName(icon) || hintName(icon, ['class', 'src']);
}

// Whether a row is a week of a calendar that listens for clicks on its days.
function isWeek(row) {
  const cells = row.children;
  if (cells.length < 7 || cells.length > 8) return false;
  let last = 0;
  for (const cell of cells) {
    const text = cell.textContent.trim();
    if (!/^\d{0,2}$/.test(text)) return false;
    if (text && last && cell !== cells[1] && +text !== last + 1 && text !== '1') return false;
    last = +text;
  }
  return !row.querySelector('[aria-hidden=true]') && listensNearby(row, 5);
}

function listensNearby(element, levels) {
  for (let e = element; e && e.nodeType === 1 && levels >= 0; e = composedParent(e), levels--) {
    if (e.localName === 'body') return false;
    if (recorded.click.has(e) || e.hasAttribute('onclick')) return true;
  }
  return false;
}

function visitRow(element, role, rect, inner, context, hints) {
  if (context.mute || inner.invisible || inner.ariaHidden || !isReadableRow(element)) {
    visitContainer(element, hints ? role : 'generic', rect, inner, context);
    return;
  }
  flushText();
  const row = new RowText();
  const index = walk.out.length;
  idOf(element);
  walk.out.push('');
  visitInside(element, { ...inner, depth: context.depth + 1, row, interactive: hints !== null });
  flushText();
  const layout = role !== 'row' && !hints;
  const name = clean(layout ? row.toText() : row.toString());
  const nothing = !name && walk.out.length === index + 1 && !hints;
  if (nothing || !(inner.inView || walk.full) && walk.out.length === index + 1) {
    walk.out.length = index;
    return;
  }
  const pairs = statesOf(element, 'row', name, element === walk.focus);
  if (layout && !name) {
    walk.out[index] = record(context.depth, idOf(element), 'group', 0, '', '', []);
    return;
  }
  walk.out[index] = record(context.depth, idOf(element), layout ? 'StaticText' : role, flagsFor(inner, hints !== null),
    boxOf(rect, context.frame), name, pairs.concat(hints || []));
}
