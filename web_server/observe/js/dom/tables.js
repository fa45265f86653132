// Part of the walker: distinguishes data tables from layout tables, like Chromium does: by markup,
// size, borders and backgrounds of the first cells.
/* global attribute -- roles.js */
/* exported forgetTables, isDataTable */

// Answers are cached for one walk.
let tableKinds = new WeakMap();

function forgetTables() {
  tableKinds = new WeakMap();
}

function isDataTable(table) {
  if (!table) return false;
  let known = tableKinds.get(table);
  if (known === undefined) tableKinds.set(table, (known = hasDataMarkup(table)));
  return known;
}

function hasDataMarkup(table) {
  const first = table.rows[0];
  if (!first || table.rows.length === 1 && first.cells.length < 2) return table.hasAttribute('role');
  if (table.isContentEditable || table.hasAttribute('role') || table.hasAttribute('summary')) return true;
  if (table.tHead || table.tFoot || table.caption || table.querySelector(':scope > colgroup, :scope > col')) {
    return true;
  }
  if (attribute(table, 'rules') || parseInt(attribute(table, 'border'), 10) > 0) return true;
  const rows = table.rows;
  for (let i = 0; i < Math.min(rows.length, 20); i++) {
    for (const cell of rows[i].cells) {
      if (cell.localName === 'th' || cell.headers || cell.abbr || cell.scope) return true;
    }
  }
  if (rows.length >= 20) return true;
  return hasDataStyle(table, rows);
}

function hasDataStyle(table, rows) {
  const tableStyle = getComputedStyle(table);
  const background = tableStyle.backgroundColor;
  let count = 0;
  let bordered = 0;
  let colored = 0;
  const rowColors = [];
  for (const row of rows) {
    const rowColor = getComputedStyle(row).backgroundColor;
    rowColors.push(rowColor);
    for (const cell of row.cells) {
      const style = getComputedStyle(cell);
      count++;
      if (parseFloat(style.borderTopWidth) + parseFloat(style.borderBottomWidth)
          + parseFloat(style.borderLeftWidth) + parseFloat(style.borderRightWidth) > 0) bordered++;
      const own = style.backgroundColor;
      const color = isTransparent(own) ? rowColor : own;
      if (color !== background && !isTransparent(color)) colored++;
    }
  }
  const striped = rows.length > 3 && rowColors[0] !== rowColors[1]
    && rowColors.every((color, i) => color === rowColors[i % 2]);
  return striped || bordered >= count / 2
    || colored >= count / 2 && parseFloat(tableStyle.borderSpacing) > 0;
}

function isTransparent(color) {
  return color.startsWith('rgba') && color.endsWith(', 0)');
}
