// Isolated world: elements that are shown in a way of their own. A handler that returns true has
// shown its element; otherwise the element is treated like any other.

// Text of a table row, cell by cell: one line tells it all.
class RowText {
  constructor() {
    this.cells = [];
    this.own = false;
  }

  cell() {
    this.cells.push('');
  }

  text(piece) {
    if (!this.cells.length) this.cells.push('');
    this.cells[this.cells.length - 1] += piece;
    this.own = this.own || /\S/.test(piece);
  }

  // What has a line of its own is only hinted at.
  stub(name) {
    if (!this.cells.length) this.cells.push('');
    const short = name.length > 24 ? name.slice(0, 23) + '\u2026' : name;
    this.cells[this.cells.length - 1] += ` ${short} `;
  }

  toString() {
    return this.own ? this.cells.map(collapse).join(' | ').replace(/(\s*\|\s*)+$/, '') : '';
  }

  // Of a table that only lays things out: where the empty cells stand does not matter.
  toText() {
    return this.own ? this.cells.map(collapse).filter(Boolean).join(' | ') : '';
  }
}

function isReadableRow(element) {
  return element.textContent.length < 800
    && !element.querySelector('table,ul,ol,h1,h2,h3,h4,p+p,iframe,canvas,form,[role=row]')
    && !isWeek(element);
}

// A week of a calendar that listens as a whole for clicks on its days.
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
  return !row.querySelector('[aria-hidden=true]') && listensAround(row, 5);
}

function listensAround(element, levels) {
  for (let e = element; e && e.nodeType === 1 && levels >= 0; e = composedParent(e), levels--) {
    if (e.localName === 'body') return false;
    if (noted.click.has(e) || e.hasAttribute('onclick')) return true;
  }
  return false;
}

function visitRow(element, role, rect, inner, c, hints) {
  if (c.mute || inner.invisible || inner.ariaHidden || !isReadableRow(element)) {
    visitContainer(element, hints ? role : 'generic', rect, inner, c);
    return;
  }
  flushText();
  const row = new RowText();
  const index = walk.out.length;
  idOf(element);
  walk.out.push('');
  visitInside(element, { ...inner, depth: c.depth + 1, row, interactive: hints !== null });
  flushText();
  const layout = role !== 'row' && !hints;
  const name = clean(layout ? row.toText() : row.toString());
  const nothing = !name && walk.out.length === index + 1 && !hints;
  if (nothing || !(inner.on || walk.full) && walk.out.length === index + 1) {
    walk.out.length = index;
    return;
  }
  const pairs = statesOf(element, 'row', name, element === walk.focus);
  if (layout && !name) {
    walk.out[index] = record(c.depth, idOf(element), 'group', 0, '', '', []);
    return;
  }
  walk.out[index] = record(c.depth, idOf(element), layout ? 'StaticText' : role, flagsFor(inner, hints !== null),
    boxOf(rect, c.frame), name, pairs.concat(hints || []));
}

// Gauges: told by their value.
function visitGauge(element, role, rect, inner, c) {
  const labelled = element.labels && element.labels.length > 0;
  if (c.mute && !labelled || inner.ariaHidden || inner.invisible || !(inner.on || walk.full)) return;
  const name = nameOf(element, role);
  const value = valueOf(element, role);
  if (c.row) c.row.text(` ${name} ${value} `);
  else put(c, element, role, flagsFor(inner, false), rect, name, statesOf(element, role, name, false));
  if (element.firstChild === null || element.localName === role || element.localName === 'progress') return;
  const text = textOf(element, role); // of what is drawn by a style sheet
  if (text && !`${name} ${value}%`.includes(text)) visitChildren(element, { ...inner, depth: c.depth + 1 });
}

// Pictures with a name; without one only when they are large enough to matter.
function visitImage(element, rect, inner, c) {
  const skip = c.mute || inner.ariaHidden || inner.invisible || rect.width * rect.height === 0;
  const drawing = 'viewBox' in element;
  const name = skip ? '' : nameOf(element, 'image');
  if (c.row && name) {
    c.row.text(` ${name} `);
  } else if (!skip && (inner.on || walk.full)) {
    const large = rect.width >= 100 && rect.height >= 60 && !drawing;
    if (name) put(c, element, 'image', flagsFor(inner, false), rect, name, []);
    else if (large) {
      const hint = hintName(element);
      put(c, element, 'image', flagsFor(inner, false), rect, '', hint ? ['hint: ' + hint] : []);
    }
  }
  if (element.firstChild) visitChildren(element, { ...inner, mute: c.mute || name !== '' });
  else if (!skip && element.useMap) visitAreas(element, inner, c);
}

function visitSelect(element, inner, rect, c) {
  if (inner.invisible || inner.inert) return true;
  const role = roleOf(element);
  const name = nameOf(element, role);
  const pairs = statesOf(element, role, name, element === walk.focus);
  const count = element.options.length;
  const most = walk.every ? count : Math.min(count, MAX_OPTIONS);
  if (count > most) pairs.push(`options: ${count} (the first ${MAX_OPTIONS} are listed)`);
  const cover = inner.on ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  if (!name) pairs.push(...namelessPairs(element, role, inner.style));
  if (c.row) c.row.stub(name);
  if (!(inner.on || walk.full)) return true;
  const flags = flagsFor(inner, true);
  put(c, element, role, flags, rect, name, pairs);
  let group = null;
  for (let i = 0; i < most; i++) {
    const option = element.options[i];
    const above = option.parentElement.localName === 'optgroup' ? option.parentElement : null;
    if (above && above !== group) {
      put({ ...c, depth: c.depth + 1 }, above, 'group', flags & IN_VIEW, null, above.label,
        above.disabled ? ['disabled: true'] : []);
    }
    group = above;
    const states = [];
    if (option.selected) states.push('selected: true');
    if (option.matches(':disabled')) states.push('disabled: true');
    put({ ...c, depth: c.depth + (above ? 2 : 1) }, option, 'option', flags & IN_VIEW, null,
      option.label, states);
  }
  return true;
}

function isRendered(element) {
  const rect = element.getBoundingClientRect();
  return rect.width > 0 && rect.height > 0
    && element.checkVisibility({ visibilityProperty: true });
}

// The label of a control that is shown says the control's name once more. The label of a control
// that is not rendered (a styled switch or upload) is what one clicks on.
function visitLabel(element, inner, rect, c) {
  const control = element.control;
  if (!control || inner.mute || inner.invisible) return false;
  if (control.localName.includes('-') && !INTERACTIVE_ROLES.has(roleOf(control))) return false;
  if (isRendered(control)) {
    const named = !control.hasAttribute('aria-label') && !control.hasAttribute('aria-labelledby')
      && !(TOGGLES.test(roleOf(control)) && element.textContent.length > LONG_NAME);
    visitChildren(element, { ...inner, mute: named, interactive: true });
    return true;
  }
  const name = labelText(element);
  const role = roleOf(control);
  const pairs = statesOf(control, role, name, control === walk.focus);
  if (!(inner.on || walk.full)) return true;
  if (inner.on) {
    const cover = coveredBy(element, inner);
    if (cover) pairs.push('covered by: ' + cover);
  }
  pairs.push(...symbolPairs(element, name));
  if (c.row) c.row.stub(name);
  put(c, element, 'LabelText', flagsFor(inner, true), rect, name, pairs);
  visitChildren(element, { ...inner, depth: c.depth + 1, mute: true, row: null, interactive: true });
  return true;
}

function visitNamedBy(owner) {
  return (element, inner) => {
    const above = element.parentElement;
    if (!above || above.localName !== owner) return false;
    visitChildren(element, { ...inner, mute: true });
    return true;
  };
}

function visitDetails(element, inner, rect, c) {
  if (element.open) return false;
  for (const child of element.children) if (child.localName === 'summary') visit(child, { ...inner, depth: c.depth });
  return true;
}

function visitInput(element) {
  return element.type === 'hidden';
}

function visitMedia(element, inner, rect, c) {
  if (inner.mute || inner.invisible || !(inner.on || walk.full)) return true;
  const role = TAG_ROLES[element.localName];
  const name = collapse(attribute(element, 'aria-label') || attribute(element, 'title'));
  const pairs = name ? [] : namelessPairs(element, role, inner.style);
  if (role === 'Canvas') pairs.push('box: ' + boxOf(rect, c.frame));
  if ('paused' in element) pairs.push('paused: ' + element.paused);
  const cover = inner.on ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  put(c, element, role, flagsFor(inner, true), rect, name, pairs);
  if (element.controls) {
    // The browser's own controls: a tree that only the browser can hand over.
    if (shadowOf(element)) visitChildren(element, { ...inner, depth: c.depth + 1 });
    else if (!asked.has(element) && element.ownerDocument === document) {
      asked.add(element);
      walk.suspects.push(idOf(element));
    }
  }
  return true;
}

// Documents of the same origin are walked in place; others are reported, to be walked by
// themselves in their own process or context.
function visitFrame(element, inner, rect, c) {
  if (c.mute || inner.invisible || !(inner.on || walk.full)) return true;
  const style = inner.style;
  const left = rect.left + element.clientLeft + parseFloat(style.paddingLeft);
  const top = rect.top + element.clientTop + parseFloat(style.paddingTop);
  const cut = inner.on && intersect(rect, inner.clip);
  const clip = cut ? { x1: cut.x1 - left, y1: cut.y1 - top, x2: cut.x2 - left, y2: cut.y2 - top }
    : { x1: 0, y1: 0, x2: -1, y2: -1 };
  const doc = element.contentDocument;
  flushText();
  const index = walk.out.length;
  const focus = element === walk.focus ? ['focused: true'] : [];
  walk.out.push(record(c.depth, idOf(element), 'Iframe', doc ? 0 : REMOTE_FRAME, '',
    clean(collapse(attribute(element, 'aria-label') || attribute(element, 'title'))), doc ? [] : focus));
  const x = c.frame.x + left;
  const y = c.frame.y + top;
  if (!doc) {
    walk.frames.push({ id: idOf(element), x, y, clip, depth: c.depth + 1, focused: focus.length > 0 });
    return true;
  }
  if (rootElementOf(doc)) {
    pullNotes(doc);
    walkDocument(doc, { x, y, clip, owner: element, parent: c.frame }, c.depth + 1);
  }
  if (walk.out.length === index + 1) walk.out.length = index;
  return true;
}

function visitObject(element, inner, rect, c) {
  return element.contentWindow ? visitFrame(element, inner, rect, c) : false;
}

// A document in an `embed` cannot be asked for from outside: it is walked by itself.
function visitEmbed(element, inner, rect, c) {
  return /html/.test(element.type) ? visitFrame(element, inner, rect, c) : false;
}

// The links of an image map stand where their picture is.
function visitAreas(image, inner, c) {
  const map = image.useMap && image.getRootNode().querySelector(
    `map[name="${CSS.escape(image.useMap.replace(/^#/, ''))}"]`);
  if (!map) return;
  for (const area of map.querySelectorAll('area[href]')) {
    const rect = areaRect(area, image);
    const on = inner.on && intersect(rect, inner.clip) !== null;
    if (!(on || walk.full)) continue;
    const name = nameOf(area, 'link');
    const pairs = statesOf(area, 'link', name, area === walk.focus);
    if (!name) pairs.push(...namelessPairs(area, 'link', inner.style));
    put(c, area, 'link', (on ? IN_VIEW : 0) | INTERACTIVE, rect, name, pairs);
  }
}

const TAG_HANDLERS = {
  __proto__: null,
  input: visitInput, select: visitSelect, label: visitLabel, legend: visitNamedBy('fieldset'),
  caption: visitNamedBy('table'), details: visitDetails, canvas: visitMedia, video: visitMedia,
  audio: visitMedia, iframe: visitFrame, frame: visitFrame, object: visitObject,
  embed: visitEmbed,
};
