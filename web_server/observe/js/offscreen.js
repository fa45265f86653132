// Isolated world: what the walk leaves out because it is not in sight, and what it must not.

// Rows stand in order: of a long table only those in sight are looked at.
function visitRows(body, c) {
  const rows = [...body.rows];
  let next = firstRowBelow(rows, c.clip.y1);
  for (const row of rows.slice(0, next)) if (c.frame.escaping.has(row)) visit(row, c);
  for (; next < rows.length; next++) {
    visit(rows[next], c);
    if (rows[next].getBoundingClientRect().top >= c.clip.y2) break;
  }
  for (const row of rows.slice(next + 1)) if (c.frame.escaping.has(row)) visit(row, c);
}

function firstRowBelow(rows, y) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    let probe = middle; // rows that are not rendered have no place of their own
    let rect = rows[probe].getBoundingClientRect();
    while (rect.height === 0 && probe + 1 < high) rect = rows[++probe].getBoundingClientRect();
    if (rect.height > 0 && rect.bottom <= y) low = probe + 1;
    else high = middle;
  }
  return low;
}

// Pieces of long pages. What is inside them stands inside them, unless it is taken out of the flow:
// `walk.escaping` knows the likely cases.
const PIECES = new Set('blockquote dd dt h1 h2 h3 h4 h5 h6 li p pre td tr'.split(' '));
// The first attribute of each group decides quickly for the many elements that have none of them.
const ESCAPES = '[style]:is([style*="fixed"],[style*="absolute"],[style*="sticky"]),dialog,[popover],'
  + '[role]:is([role=dialog],[role=alertdialog],[role=menu],[role=tooltip]),'
  + '[class]:is([class*="modal" i],[class*="popup" i],[class*="popover" i],[class*="dropdown" i],'
  + '[class*="fixed" i],[class*="sticky" i]),thead th,thead td,tr:first-child th';

function ancestorsOfEscapes(doc) {
  const found = new Set();
  const list = Document.prototype.querySelectorAll.call(doc, ESCAPES);
  for (let i = 0; i < list.length; i++) {
    for (let e = list[i]; e && !found.has(e); e = parentOf(e)) found.add(e);
  }
  return found;
}

// Off screen: nothing of the element is shown, but what is inside may stand elsewhere.
function visitOffScreen(element, tag, c) {
  if (PIECES.has(tag) && !c.frame.escaping.has(element)) return;
  const shadow = shadowOf(element);
  const inner = c.on || c.phrase ? { ...c, on: false, phrase: false } : c;
  for (let e = (shadow || element).firstElementChild; e; e = nextElementOf(e)) visit(e, inner);
  if (element.localName === 'slot') {
    for (const e of element.assignedNodes()) if (e.nodeType === 1) visit(e, inner);
  }
}

// Long tables off screen consist of these: cells with nothing but text. Told without asking for
// their place.
function isPlainCell(element, tag, c) {
  if (tag !== 'td' || element.firstElementChild !== null || element.attributes.length > 0
      || noted.click.has(element) || noted.hover.has(element)
      || !element.checkVisibility({ visibilityProperty: true })) return false;
  const style = getComputedStyle(element);
  if (style.cursor === 'pointer' && !c.pointer || style.position !== 'static') return false;
  c.row.cell();
  c.row.text(transformed(element.textContent, style));
  return true;
}
