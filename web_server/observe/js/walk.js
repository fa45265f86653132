// Isolated world: the one walk over a page. It writes one record per line of the observation:
// depth, id, role, flags, box, name, pairs (fields split by \x1f, pairs by \x1d, records by \x1e).
const IN_VIEW = 1;
const INTERACTIVE = 2;
const REMOTE_FRAME = 4;
const SKIPPED = new Set(('script style template noscript head meta link title base param source '
  + 'track datalist option optgroup noframes').split(' '));
const INLINE_TAGS = new Set(('a abbr b bdi bdo big br cite code data del dfn em font i ins kbd label '
  + 'mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr').split(' '));
const CONTAINERS = new Set(('alert alertdialog article banner complementary contentinfo dialog feed '
  + 'form grid group list listitem log main menu menubar navigation radiogroup region row '
  + 'search status table tablist tabpanel timer toolbar tooltip tree treegrid DescriptionList '
  + 'listbox').split(' '));
const LONG_NAME = 300;
const MAX_OPTIONS = 30;
// Where in its element a text of the style sheet starts.
const BESIDE = { '::before': -1, '::after': -2 };
const MAX_SUSPECTS = 10;

let walk = null; // the state of the walk under way

function record(depth, id, role, flags, box, name, pairs) {
  return depth + '\x1f' + id + '\x1f' + role + '\x1f' + flags + '\x1f' + box + '\x1f' + name + '\x1f'
    + pairs.join('\x1d');
}

function clean(text) {
  // eslint-disable-next-line no-control-regex
  return collapse(text.replace(/[\u0000-\u0008\u000e-\u001f\ue000-\uf8ff]/g, ' '));
}

function boxOf(rect, frame) {
  return Math.round(rect.left + frame.x) + ',' + Math.round(rect.top + frame.y) + ','
    + Math.round(rect.width) + ',' + Math.round(rect.height);
}

function put(c, node, role, flags, rect, name, pairs) {
  flushText();
  walk.out.push(record(c.depth, idOf(node), role, flags, rect ? boxOf(rect, c.frame) : '',
    clean(name), pairs));
}

// -- elements ------------------------------------------------------------------------------------

function overlaps(rect, clip) {
  return rect.right > clip.x1 && rect.left < clip.x2 && rect.bottom > clip.y1 && rect.top < clip.y2;
}

function visitChildren(element, c) {
  if (element.firstChild === null && element.localName !== 'slot' && !shadowOf(element)) return;
  if (element.localName === 'tbody' && !walk.full && element.rows.length > 40) {
    visitRows(element, c);
    return;
  }
  const children = composedChildren(element);
  if (Array.isArray(children)) {
    for (const child of children) visitNode(child, c);
    return;
  }
  for (let child = children[0] || null; child; child = nextOf(child)) visitNode(child, c);
}

function visitNode(node, c) {
  const type = typeOf(node);
  if (type === 3) {
    visitText(node, c);
  } else if (type === 1) {
    const index = walk.out.length;
    try {
      visit(node, c);
    } catch (error) {
      // What was kept a place for stays without a line.
      walk.out = walk.out.filter((line, i) => i < index || line !== '');
      // Pages can make any property lie, or nest beyond the stack: one element that cannot be read
      // must not hide the others.
      if (walk.faults.length < 3) walk.faults.push(`${tagOf(node)}: ${error}`);
    }
  }
}

function visit(element, c) {
  const tag = tagOf(element);
  if (SKIPPED.has(tag)) return;
  if (tag === 'form') {
    visitForm(element, c);
    return;
  }
  if (c.row && !c.on && isPlainCell(element, tag, c)) return;
  const rect = element.getBoundingClientRect();
  const sized = rect.width > 0 && rect.height > 0;
  let on = sized && overlaps(rect, c.clip);
  let style = null;
  if (!on) {
    if (!sized) {
      if (!element.checkVisibility()) {
        if (getComputedStyle(element).display !== 'contents') return;
      }
      on = c.on;
    } else if (overlaps(rect, c.frame.clip)) {
      const position = getComputedStyle(element).position;
      on = position === 'fixed' || position === 'absolute' && overlaps(rect, c.outer);
    }
    if (!on && !walk.full && !c.row && !((c.on || c.phrase) && INLINE_TAGS.has(tag))) {
      visitOffScreen(element, tag, c);
      return;
    }
  }
  style = getComputedStyle(element);
  visitShown(element, tag, rect, sized, on, style, c);
}

// A form is a place for things, never a thing itself; see safeForm.
function visitForm(form, c) {
  const rect = Element.prototype.getBoundingClientRect.call(form);
  const style = getComputedStyle(form);
  if (style.display === 'none') return;
  const sized = rect.width > 0 && rect.height > 0;
  const view = safeForm(form);
  const inner = contextInside(view, rect, sized, sized ? overlaps(rect, c.clip) : c.on, style, c);
  flushText();
  const index = walk.out.length;
  const named = hasAuthorName(view) && !c.mute && !inner.ariaHidden && !c.row;
  if (named) walk.out.push('');
  for (let child = view.childNodes[0] || null; child; child = nextOf(child)) {
    visitNode(child, named ? { ...inner, depth: c.depth + 1 } : inner);
  }
  flushText();
  if (!named) return;
  if (walk.out.length === index + 1) walk.out.length = index;
  else {
    const role = view.getAttribute('role') === 'search' ? 'search' : 'form';
    walk.out[index] = record(c.depth, idOf(form), role, 0, '', clean(nameOf(view, role)), []);
  }
}

// What holds for the inside of an element: a changed copy of what holds outside.
function contextInside(element, rect, sized, on, style, c) {
  const position = style.position;
  const inner = { ...c, on, style };
  inner.invisible = style.visibility !== 'visible';
  inner.pointer = style.cursor === 'pointer';
  inner.ariaHidden = c.ariaHidden
    || element.getAttribute('aria-hidden') === 'true' && !drawsText(element, rect);
  inner.inert = c.inert || element.inert === true;
  inner.faded = c.faded || style.opacity === '0';
  if (position === 'fixed') inner.clip = c.frame.clip;
  else if (position === 'absolute') inner.clip = c.outer;
  const display = style.display;
  // Folded away: nothing of its height is left. What is tiny both ways holds the field of an editor.
  const folded = !sized && (rect.width > 20 || rect.height > 20) && style.overflowX !== 'visible';
  if (display !== 'inline' && (sized || folded)) {
    const clip = inner.clip;
    inner.whole = sized && rect.left >= clip.x1 && rect.right <= clip.x2 && rect.top >= clip.y1
      && rect.bottom <= clip.y2;
    if (style.overflowX !== 'visible' && element !== rootElementOf(element.ownerDocument)
        && element.localName !== 'body') {
      inner.clip = intersect(rect, clip) || { x1: 0, y1: 0, x2: -1, y2: -1 };
      inner.whole = inner.whole && element.scrollHeight <= element.clientHeight + 1;
    }
  } else if (!sized && display !== 'inline' && display !== 'contents') {
    inner.whole = false; // what is scaled to nothing shows nothing
  }
  if (inner.outer !== inner.clip && (position !== 'static' || style.transform !== 'none')) {
    inner.outer = inner.clip; // asked for last: a transform is dear to compute
  }
  return inner;
}

function visitShown(element, tag, rect, sized, on, style, c) {
  const display = style.display;
  const inline = display === 'inline' || display === 'contents' || display.startsWith('ruby');
  const inner = contextInside(element, rect, sized, on, style, c);
  inner.phrase = !on && (c.on || c.phrase) && INLINE_TAGS.has(tag);
  const blocky = !inline && display[0] !== 'i';
  if (blocky) flushText();
  else if (!inline) addSpace(c);
  if (tag === 'br') {
    if (walk.run && walk.run.size > 200) flushText();
    else addSpace(c);
    return;
  }
  const handler = TAG_HANDLERS[tag];
  if (handler) {
    if (handler(element, inner, rect, c) !== true) visitPlain(element, tag, rect, inner, c);
  } else {
    visitPlain(element, tag, rect, inner, c);
  }
  if (blocky) flushText();
  else if (!inline) addSpace(c);
}

function addSpace(c) {
  if (c.row) c.row.text(' ');
  else if (walk.run) walk.run.parts[walk.run.parts.length - 1].text += ' ';
}

// Generic elements are shown only for what can be done with them.
function visitPlain(element, tag, rect, inner, c) {
  const attributes = element.attributes.length > 0;
  if (attributes && inner.style.contentVisibility === 'hidden') return;
  const role = attributes || anyUntold ? roleOf(element) : nativeRole(element);
  const hints = hintsOf(element, role, inner, c, attributes);
  const cell = /^(cell|gridcell|columnheader|rowheader|LayoutTableCell)$/.test(role);
  if (c.row && cell) {
    c.row.cell();
    if (attributes && !hints && !inner.ariaHidden && hasAuthorName(element) && !textOf(element, role)) {
      c.row.text(nameOf(element, role)); // all that it shows is hidden from those who read
    }
  }
  if (role === 'row' || role === 'LayoutTableRow') {
    visitRow(element, role, rect, inner, c, hints);
  } else if ((INTERACTIVE_ROLES.has(role) || hints) && !inner.invisible && !inner.inert
      && (rect.width > 0 && rect.height > 0 || hasBoxInside(element))) {
    const phrase = inner.style.display === 'inline' && !c.mute && !c.row && !inner.ariaHidden;
    (phrase ? visitInPhrase : visitInteractive)(element, role, rect, inner, c, hints || []);
  } else if (role === 'heading') {
    visitHeading(element, rect, inner, c);
  } else if (role === 'meter' || role === 'progressbar') {
    visitGauge(element, role, rect, inner, c);
  } else if (role === 'image') {
    visitImage(element, rect, inner, c);
  } else {
    visitContainer(element, role, rect, inner, c);
  }
}

function flagsFor(inner, interactive) {
  return (inner.on ? IN_VIEW : 0) | (interactive ? INTERACTIVE : 0);
}

function visitHeading(element, rect, inner, c) {
  if (inner.mute || inner.invisible || inner.ariaHidden) {
    visitChildren(element, inner);
    return;
  }
  const name = nameOf(element, 'heading');
  if (name) {
    if (c.row) c.row.stub(name);
    if (inner.on || walk.full) {
      put(c, element, 'heading', flagsFor(inner, false), rect, name,
        statesOf(element, 'heading', name, false));
    }
  }
  if (element.firstElementChild || shadowOf(element)) {
    visitChildren(element, { ...inner, depth: c.depth + 1, mute: name !== '', row: null });
    flushText();
  }
}

// Landmarks, lists, groups: shown when something inside them is.
function visitContainer(element, role, rect, inner, c) {
  if (inner.on && walk.suspects.length < MAX_SUSPECTS
      && mayHideShadow(element, tagOf(element), rect, inner.style)) walk.suspects.push(idOf(element));
  const scroll = inner.on && inner.style.overflowX !== 'visible' ? scrollPairs(element, inner.style) : [];
  const shown = CONTAINERS.has(role) && !c.mute && !inner.ariaHidden && !c.row;
  if (!shown && !scroll.length) {
    visitInside(element, inner);
    return;
  }
  flushText();
  const index = walk.out.length;
  walk.out.push('');
  if (role !== 'listitem' && role !== 'group') idOf(element); // numbers run down the page
  visitInside(element, { ...inner, depth: c.depth + 1 });
  flushText();
  const empty = walk.out.length === index + 1 && !scroll.length;
  const titled = empty && shown && titleInView(element, inner);
  if (empty && !titled) {
    walk.out.length = index;
    return;
  }
  const name = shown ? nameOf(element, role) : '';
  const pairs = shown ? statesOf(element, role, name, element === walk.focus) : [];
  walk.out[index] = record(c.depth, idOf(element), shown ? role : 'generic', scroll.length || titled ? IN_VIEW : 0,
    '', clean(name), pairs.concat(scroll));
}

// Is a legend or a caption, which its box is told by, all that is seen of that?
function titleInView(element, inner) {
  const tag = { fieldset: 'legend', table: 'caption' }[element.localName];
  const title = tag && [...element.children].find((child) => child.localName === tag);
  return Boolean(title) && intersect(title.getBoundingClientRect(), inner.clip) !== null;
}

// Children with the text that the style sheet puts before and after them.
function visitInside(element, c) {
  const silent = c.mute || c.ariaHidden || c.invisible || !c.on;
  if (!silent) addPseudo(element, c, '::before');
  visitChildren(element, c);
  if (!silent) addPseudo(element, c, '::after');
}

function addPseudo(element, c, which) {
  const text = pseudoText(element, which);
  if (!text) return;
  if (c.row) c.row.text(text);
  else addText(c, element, BESIDE[which], text, true);
}
