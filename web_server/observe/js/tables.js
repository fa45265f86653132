// Isolated world: which tables hold data.

// Tables that only lay things out are told apart as Chromium does it: by their markup, by their
// size, by the borders and backgrounds of their first cells. The answer is kept for a walk.
let tableKinds = new WeakMap();
function isDataTable(table) {
  if (!table) return false;
  let known = tableKinds.get(table);
  if (known === undefined) tableKinds.set(table, (known = looksLikeData(table)));
  return known;
}

function looksLikeData(table) {
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
  return cellsLookLikeData(table, rows);
}

function cellsLookLikeData(table, rows) {
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
      const color = isClear(own) ? rowColor : own;
      if (color !== background && !isClear(color)) colored++;
    }
  }
  const striped = rows.length > 3 && rowColors[0] !== rowColors[1]
    && rowColors.every((color, i) => color === rowColors[i % 2]);
  return striped || bordered >= count / 2
    || colored >= count / 2 && parseFloat(tableStyle.borderSpacing) > 0;
}

function isClear(color) {
  return color.startsWith('rgba') && color.endsWith(', 0)');
}
