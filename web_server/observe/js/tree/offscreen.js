// Part of the walker: skips content outside of the viewport, except what may be displayed elsewhere.
/* global nextElementOf, parentOf -- safe.js */
/* global shadowOf -- dom.js */
/* global isUnseen, unseenText -- visibility.js */
/* global recorded -- page_records.js */
/* global transformed -- names.js */
/* global visit -- walk.js */
/* exported ancestorsOfOutOfFlow, isPlainCell, visitOffScreen, visitRows */

// Rows of a long table: finds the first visible one by bisection and stops after the last.
function visitRows(body, context) {
  const rows = [...body.rows];
  let next = firstRowBelow(rows, context.clip.y1);
  for (const row of rows.slice(0, next)) if (context.frame.outOfFlow.has(row)) visit(row, context);
  for (; next < rows.length; next++) {
    visit(rows[next], context);
    if (rows[next].getBoundingClientRect().top >= context.clip.y2) break;
  }
  for (const row of rows.slice(next + 1)) if (context.frame.outOfFlow.has(row)) visit(row, context);
}

function firstRowBelow(rows, y) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    let probe = middle; // rows that are not rendered have no position
    let rect = rows[probe].getBoundingClientRect();
    while (rect.height === 0 && probe + 1 < high) rect = rows[++probe].getBoundingClientRect();
    if (rect.height > 0 && rect.bottom <= y) low = probe + 1;
    else high = middle;
  }
  return low;
}

// Blocks of text. Their content is inside their box, unless it is positioned elsewhere; `outOfFlow`
// of the frame contains the ancestors of such content.
const TEXT_BLOCKS = new Set('blockquote dd dt h1 h2 h3 h4 h5 h6 li p pre td tr'.split(' '));
// The first attribute of each group excludes most elements quickly.
const OUT_OF_FLOW = '[style]:is([style*="fixed"],[style*="absolute"],[style*="sticky"]),dialog,[popover],'
  + '[role]:is([role=dialog],[role=alertdialog],[role=menu],[role=tooltip]),'
  + '[class]:is([class*="modal" i],[class*="popup" i],[class*="popover" i],[class*="dropdown" i],'
  + '[class*="fixed" i],[class*="sticky" i]),thead th,thead td,tr:first-child th';

function ancestorsOfOutOfFlow(doc) {
  const found = new Set();
  const list = Document.prototype.querySelectorAll.call(doc, OUT_OF_FLOW);
  for (let i = 0; i < list.length; i++) {
    for (let e = list[i]; e && !found.has(e); e = parentOf(e)) found.add(e);
  }
  return found;
}

// An element out of view gets no line, but its content may be positioned in view.
function visitOffScreen(element, tag, context) {
  if (TEXT_BLOCKS.has(tag) && !context.frame.outOfFlow.has(element)) return;
  const shadow = shadowOf(element);
  const inner = context.inView || context.phrase ? { ...context, inView: false, phrase: false } : context;
  for (let e = (shadow || element).firstElementChild; e; e = nextElementOf(e)) visit(e, inner);
  if (element.localName === 'slot') {
    for (const e of element.assignedNodes()) if (e.nodeType === 1) visit(e, inner);
  }
}

// A cell with nothing but text, out of view. Its text is added without measuring its position.
function isPlainCell(element, tag, context) {
  if (tag !== 'td' || element.firstElementChild !== null || element.attributes.length > 0
      || recorded.click.has(element) || recorded.hover.has(element)
      || !element.checkVisibility({ visibilityProperty: true })) return false;
  const style = getComputedStyle(element);
  if (style.cursor === 'pointer' && !context.pointer || style.position !== 'static') return false;
  context.row.addCell();
  const text = transformed(element.textContent, style);
  context.row.addText(isUnseen(element, style) ? unseenText(text) : text);
  return true;
}
