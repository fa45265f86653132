// Part of the walker: the rows of a table as clean text, whether they are in view or not.
/* global typeOf -- safe.js */
/* global composedChildren, composedParent, idOf, nextId:writable -- dom.js */
/* global forgetVisibility -- visibility.js */
/* global forgetTables -- tables.js */
/* global attribute, roleOf -- roles.js */
/* global cellText -- shown_text.js */
/* exported isLayoutTable, isTable, layoutTables, tableAround, tableRows, tablesInside */

const TABLE_ROLES = /^(table|grid|treegrid)$/;
const CELL_ROLES = /^(cell|gridcell|columnheader|rowheader)$/;
const MAX_SPAN = 1000;
const EMPTY_SPACE = 500; // pixels
const SOME_WORDS = 200; // characters
const MAX_CELL = 20000; // characters

// Whether an element is a table of data, as the observation lists them.
function isTable(element) {
  return TABLE_ROLES.test(roleOf(element));
}

function isLayoutTable(element) {
  return element.localName === 'table' && !isTable(element);
}

// The nearest table of a kind at or around an element.
function tableAround(element, isKind) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) if (isKind(e)) return e;
  return null;
}

// The elements inside one that pass a test, without those inside of another that passes, nor those in an
// element that `stops`.
function outermost(element, test, stops = () => false) {
  const found = [];
  const visitInside = (node) => {
    for (const child of composedChildren(node)) {
      if (typeOf(child) !== 1 || stops(child)) continue;
      if (test(child)) found.push(child);
      else visitInside(child);
    }
  };
  visitInside(element);
  return found;
}

function hasBox(element) {
  return element.checkVisibility()
    || getComputedStyle(element).display === 'contents' && hasBox(composedParent(element));
}

// The outermost tables of a kind inside an element.
function tablesInside(element, isKind) {
  return outermost(element, (e) => isKind(e) && hasBox(e));
}

// The tables for layout in the document: their ids in `near`.
function layoutTables(next) {
  nextId = Math.max(nextId, next);
  forgetTables();
  const found = [...document.querySelectorAll('table')].filter((e) => isLayoutTable(e) && hasBox(e));
  return { near: found.map(idOf), next: nextId };
}

// -- rows and cells ------------------------------------------------------------------------------

function rowsOf(table) {
  if (table.localName === 'table' && table.rows.length) return [...table.rows];
  return outermost(table, (e) => e.localName === 'tr' || roleOf(e) === 'row', isTable);
}

function cellsOf(row) {
  if (row.localName === 'tr') return [...row.cells];
  return outermost(row, (e) => CELL_ROLES.test(roleOf(e)), isTable);
}

// Rows as {element, cells}. Parts of a row that have the same `aria-rowindex` are joined: grids place
// fixed columns apart, and recycle rows in any order.
function joinedRows(table) {
  const rows = rowsOf(table).map((element) => (
    { element, cells: cellsOf(element), index: numberIn(element, 'aria-rowindex') }));
  if (!rows.length || table.localName === 'table' || !rows.every((row) => row.index > 0)) return rows;
  const byIndex = new Map();
  for (const row of rows) {
    const known = byIndex.get(row.index);
    if (known) known.cells.push(...row.cells);
    else byIndex.set(row.index, row);
  }
  const joined = [...byIndex.values()].sort((a, b) => a.index - b.index);
  for (const row of joined) {
    const at = new Map(row.cells.map((cell) => [cell, numberIn(cell, 'aria-colindex')]));
    if ([...at.values()].every((column) => column > 0)) row.cells.sort((a, b) => at.get(a) - at.get(b));
  }
  return joined;
}

function numberIn(element, name) {
  return parseInt(attribute(element, name), 10) || 0;
}

const spanOf = (cell, native, aria) => Math.min((cell[native] ?? numberIn(cell, aria)) || 1, MAX_SPAN);

// For each row, the cell at each column. A cell that spans several is at each of them.
function gridOf(rows) {
  const grid = rows.map(() => []);
  rows.forEach((row, at) => {
    let column = 0;
    for (const cell of row.cells) {
      if (getComputedStyle(cell).display === 'none') continue;
      while (grid[at][column] !== undefined) column++;
      const down = cell.rowSpan === 0 ? MAX_SPAN : spanOf(cell, 'rowSpan', 'aria-rowspan');
      const right = spanOf(cell, 'colSpan', 'aria-colspan');
      for (let y = at; y < Math.min(at + down, rows.length); y++) {
        for (let x = column; x < column + right; x++) grid[y][x] = cell;
      }
      column += right;
    }
  });
  return grid;
}

function isHeader(row) {
  const section = row.element.parentElement;
  if (section && section.localName === 'thead') return row.cells.length > 0;
  return row.cells.length > 0 && row.cells.every((cell) => roleOf(cell) === 'columnheader');
}

// The rows of a table that are not hidden. `header`: how many rows are headers, whose texts are `titles`;
// `total`: rows in the document; `width`: columns; `count`: how many rows there are if the page says so;
// `later`: whether there seem to be more; `rows`: the texts from row `start`, within both limits.
function tableRows(table, start, maxRows, maxText) {
  forgetTables();
  forgetVisibility();
  const all = joinedRows(table);
  const grid = gridOf(all);
  const lines = grid.filter((cells, at) => cells.length && hasBox(all[at].element));
  const headers = all.filter((row, at) => lines.includes(grid[at])).findIndex((row) => !isHeader(row));
  const header = headers < 0 ? lines.length : headers;
  const columns = columnsOf(lines);
  const texts = new Map();
  const textsOf = (cells) => columns.map((x) => textOnce(cells[x], texts));
  const rows = [];
  let size = 0;
  for (const cells of lines.slice(start, start + maxRows)) {
    const row = textsOf(cells);
    size += row.reduce((sum, text) => sum + text.length + 4, 2);
    if (size > maxText && rows.length) break;
    rows.push(row);
  }
  const count = Math.max(numberIn(table, 'aria-rowcount'), lines.length);
  const later = count === lines.length && loadsOnScroll(table, all.map((row) => row.element));
  const titles = lines.slice(0, header).map(textsOf);
  return { header, total: lines.length, width: columns.length, count, later, titles, rows };
}

// Whether most of the space for rows is empty, so that the page adds rows when it is scrolled: there is an
// empty row of great height, or a box that scrolls has little more than the rows.
function loadsOnScroll(table, rows) {
  const rects = rows.map((row) => row.getBoundingClientRect()).filter((rect) => rect.height > 0);
  if (!rects.length) return false;
  const filled = Math.max(...rects.map((rect) => rect.bottom)) - Math.min(...rects.map((rect) => rect.top));
  if (rows.some((row) => !/\S/.test(row.textContent) && row.getBoundingClientRect().height > EMPTY_SPACE)) return true;
  const words = table.textContent.length;
  for (let e = rows[0]; e && e.nodeType === 1 && e.localName !== 'body'; e = composedParent(e)) {
    if (e.textContent.length > words + SOME_WORDS) return false;
    if (e.scrollHeight > e.clientHeight && getComputedStyle(e).overflowY !== 'visible'
        && e.scrollHeight - filled > Math.max(filled, EMPTY_SPACE)) return true;
  }
  return false;
}

// The columns in which a cell begins. Others only continue a cell that spans too many.
function columnsOf(lines) {
  const found = new Set();
  for (const cells of lines) cells.forEach((cell, x) => cell !== cells[x - 1] && found.add(x));
  return [...found].sort((a, b) => a - b);
}

function textOnce(cell, texts) {
  if (!cell) return '';
  let text = texts.get(cell);
  if (text === undefined) {
    text = cellText(cell, cell.localName === 'th' || roleOf(cell) === 'columnheader');
    if (text.length > MAX_CELL) text = `${text.slice(0, MAX_CELL)}\u2026 (${text.length} characters)`;
    texts.set(cell, text);
  }
  return text;
}
