// Isolated world: why an element is worth a line, what covers it, what tells it from its like.

// Why an element without an interactive role is worth a line: it listens, it looks clickable where
// what is around it does not, it can be dragged, edited or focused.
function hintsOf(element, role, inner, c, attributes) {
  let hints = null;
  const known = INTERACTIVE_ROLES.has(role);
  if (!known && (noted.click.has(element) || attributes && element.hasAttribute('onclick')
      || inner.pointer && !c.pointer && !c.interactive
      || attributes && element.hasAttribute('role') && INTERACTIVE_ROLES.has(nativeRole(element))
      || SHAPES.has(element.localName) && !c.interactive && isPartOfChart(element))) hints = ['clickable: true'];
  if (hints && (role === 'generic' || CONTAINERS.has(role)) && holdsThePage(element)) hints = null;
  if (attributes) {
    if (element.draggable === true && element.getAttribute('draggable') === 'true'
        || noted.drag.has(element) && element.draggable) (hints = hints || []).push('draggable: true');
    if (element.hasAttribute('contenteditable') && isEditableRoot(element)) {
      hints = hints || [];
      if (role !== 'textbox') hints.push('editable: true');
    }
    // of the cells of a grid all take the focus, and one of them is next
    if (!hints && element.hasAttribute('tabindex') && (element.tabIndex >= 0 || role === 'gridcell')
        && (role === 'generic' || role === 'gridcell') && !scrollPairs(element, inner.style).length) hints = ['focusable: true'];
  }
  if (!hints && !known && noted.hover.has(element) && !c.interactive && !holdsThePage(element)) {
    hints = ['hoverable: true'];
  }
  if (element.localName === 'body' && element.ownerDocument.designMode === 'on') {
    (hints = hints || []).push('editable: true');
  }
  const cursor = inner.style.cursor;
  if (/^(move|grab|.+-resize)$/.test(cursor) && c.style.cursor !== cursor
      && !(hints && hints.includes('draggable: true'))) (hints = hints || []).push('draggable: true');
  return hints;
}

// Charts and boards: the drawing listens, for whichever of its like shapes is hit. An icon of a
// button does not count as one.
const SHAPES = new Set('circle ellipse image line path polygon polyline rect use'.split(' '));
const SMALLEST_CHART = 40;
const MOST_SHAPES = 100;
let charts = new WeakMap(); // answers of one walk
function isPartOfChart(shape) {
  if (!('ownerSVGElement' in shape) || !shape.ownerSVGElement) return false;
  for (let e = parentOf(shape); e && 'ownerSVGElement' in e; e = parentOf(e)) {
    if (!noted.click.has(e) && !e.hasAttribute('onclick')) continue;
    let answer = charts.get(e);
    if (!answer) charts.set(e, (answer = new Map()));
    if (!answer.has(shape.localName)) {
      const rect = e.getBoundingClientRect();
      const count = e.querySelectorAll(shape.localName).length;
      answer.set(shape.localName, Math.max(rect.width, rect.height) >= SMALLEST_CHART
        && count > 1 && count <= MOST_SHAPES);
    }
    if (answer.get(shape.localName)) return true;
  }
  return false;
}

// The root of an application listens for everything inside it: not a thing to click on.
function holdsThePage(element) {
  if (element.localName === 'body' || element.localName === 'html') return true;
  return element.offsetWidth * element.offsetHeight > innerWidth * innerHeight * 0.5
    && element.childElementCount > 0;
}

// Does the mouse go through something that is there to be acted on?
function letsThrough(element, role) {
  return (INTERACTIVE_ROLES.has(role) || noted.click.has(element))
    && getComputedStyle(element).pointerEvents === 'none'
    && !(element.labels && [...element.labels].some(
      (label) => getComputedStyle(label).pointerEvents !== 'none'));
}

// What covers an element, '' when the pointer reaches it. A part of a frame may be covered in the
// documents around it as well.
function coveredBy(element, inner) {
  const found = pointOf(element, inner.clip);
  if (!found) return '';
  // While a view passes over to the next, its picture lies over everything.
  if (found.hit && found.hit.matches(':root:active-view-transition')) return '';
  if (found.hit) return describeCover(found.hit, element);
  let { x, y } = found;
  for (let frame = inner.frame; frame.owner; frame = frame.parent) {
    x += frame.x - frame.parent.x;
    y += frame.y - frame.parent.y;
    const hit = deepElementFromPoint(frame.owner.ownerDocument, x, y);
    if (hit && hit !== frame.owner) return describeCover(hit, frame.owner);
  }
  return '';
}

// What is to be closed or moved: the dialog, rather than what is in it at that very place.
function describeCover(cover, covered) {
  for (let e = cover; e && e.nodeType === 1; e = composedParent(e)) {
    if (e.localName !== 'dialog' && !/^(alert)?dialog$/.test(attribute(e, 'role'))) continue;
    return describe(contains(e, covered) ? cover : e);
  }
  return describe(cover);
}

function describe(element) {
  let e = element;
  for (let i = 0; e && e.nodeType === 1 && i < 8; i++, e = composedParent(e)) {
    if (e.localName === 'body' || e.localName === 'html') break;
    const role = roleOf(e);
    if (role !== 'generic' && role !== 'none' && role !== 'paragraph') {
      // The id at the end is ours: no name may seem to give one.
      const name = (briefly(nameOf(e, role)) || hintName(e)).replace(/\(id\b/gi, '(');
      const id = nodeIds.get(e);
      return collapse(`${role} ${name}`) + (id ? ` (id ${id})` : walk ? laterId(e) : '');
    }
  }
  return collapse(`${element.localName} ${hintName(element)} ${briefly(textOf(element, 'generic'))}`);
}

// A text that is only to be recognised.
function briefly(text) {
  const line = plain(text, 1000);
  return line.length > LONG_HINT ? line.slice(0, LONG_HINT) + '\u2026' : line;
}

// A place for the id of an element that the walk may come to later; see withIds.
function laterId(element) {
  walk.later.push(element);
  return `\x1b${walk.later.length - 1}\x1b`;
}

function withIds(records, later) {
  // eslint-disable-next-line no-control-regex
  return later.length === 0 ? records : records.replace(/\x1b(\d+)\x1b/g, (all, index) => {
    const id = nodeIds.get(later[index]);
    return id ? ` (id ${id})` : '';
  });
}

// Something to tell nameless elements apart by.
const LONG_HINT = 40;
const GIVEN = ['data-testid', 'id', 'name'];
function hintName(element, keys = [...GIVEN, 'class', 'href', 'src']) {
  for (const key of keys) {
    let value = element.getAttribute(key);
    if (!value) continue;
    if (key === 'href' || key === 'src') value = fileOf(value);
    if (key === 'class') value = ownWords(element, collapse(value));
    value = briefly(value);
    if (value) return value;
  }
  return '';
}

// Of a picture from a collection: which one.
function symbolOf(element) {
  const use = element.querySelector('use');
  const url = use && (use.getAttribute('href') || use.getAttribute('xlink:href'));
  return url && url.includes('#') ? plain(url.slice(url.indexOf('#') + 1), LONG_HINT) : '';
}

// The last part of the path of a URL.
function fileOf(url) {
  return url.startsWith('data:') ? '' : url.replace(/[?#].*$/, '').replace(/\/+$/, '').split('/').pop();
}

// Of a long list of classes those that the elements beside do not have, if there are any.
function ownWords(element, classes) {
  const parent = parentOf(element);
  if (classes.length <= LONG_HINT || !parent) return classes;
  const others = new Set();
  for (const other of [...parent.children].slice(0, 30)) {
    if (other !== element && other.localName === element.localName) {
      for (const word of other.classList) others.add(word);
    }
  }
  return classes.split(' ').filter((word) => !others.has(word)).join(' ') || classes;
}

function namelessPairs(element, role, style) {
  const pairs = [];
  const titled = element.querySelector('[title]');
  const inside = element.querySelector('svg[class],i[class],img[src]');
  const drawn = 'ownerSVGElement' in element && element.localName !== 'svg';
  const picture = role === 'image' && fileOf(pictureOf(element));
  const told = titled && plain(attribute(titled, 'title'), LONG_HINT);
  // What is drawn in it says more than the class of a button, which it shares with others.
  const hint = told || hintName(element, GIVEN) || symbolOf(element)
    || inside && inside.localName !== 'img' && hintName(inside) || hintName(element)
    || inside && hintName(inside) || drawn && element.localName;
  if (hint || picture) pairs.push('hint: ' + collapse(`${hint || ''} ${plain(picture || '', LONG_HINT)}`));
  if (drawn) return pairs.concat(drawnPairs(element, style));
  const color = 'ownerSVGElement' in element ? style.fill : style.backgroundColor;
  if (!('value' in element)) pairs.push(...colorPairs(color));
  return pairs;
}

// A name that is a sign, such as a star or an arrow, is told with the title that says what it means.
function symbolPairs(element, name) {
  const title = name && !/[\p{L}\p{N}]/u.test(name) ? plain(attribute(element, 'title'), LONG_HINT) : '';
  return title && title !== name ? ['hint: ' + title] : [];
}

function colorPairs(color) {
  return color && color !== 'none' && !/^rgba\(.*, 0\)$/.test(color)
    ? ['color: ' + color.replace(/, /g, ',')] : [];
}

// What tells the shapes and letters of a drawing apart.
function drawnPairs(element, style) {
  const rect = element.getBoundingClientRect();
  return [...colorPairs(style.fill), `size: ${Math.round(rect.width)}x${Math.round(rect.height)}`];
}

// How far a box is scrolled on one axis: what lies before and behind, in pixels. Where content grows
// up or to the left (Arabic, chats), the place at rest is the end and positions are negative.
function beyond(position, more, backwards) {
  const before = Math.min(more, Math.max(0, Math.round(backwards ? more + position : position)));
  return [before, Math.round(more - before)];
}

const scrolls = (overflow) => overflow !== 'visible' && overflow !== 'hidden' && overflow !== 'clip';

function scrollPairs(element, style) {
  const pairs = [];
  if (!scrolls(style.overflowY) && !scrolls(style.overflowX)) return pairs;
  if (element === scrollerOf(element.ownerDocument)) return pairs;
  const flow = style.display.endsWith('flex') ? style.flexDirection : '';
  const down = element.scrollHeight - element.clientHeight;
  if (scrolls(style.overflowY) && down > 4 && element.clientHeight > 20) {
    const [above, below] = beyond(element.scrollTop, down, flow === 'column-reverse');
    pairs.push(`scroll: ${above} px above, ${below} px below`);
  }
  const across = element.scrollWidth - element.clientWidth;
  if (scrolls(style.overflowX) && across > 4 && element.clientWidth > 20) {
    const leftwards = style.writingMode === 'vertical-rl'
      || (style.direction === 'rtl') !== (flow === 'row-reverse');
    const [left, right] = beyond(element.scrollLeft, across, leftwards);
    pairs.push(`scroll across: ${left} px left, ${right} px right`);
  }
  return pairs;
}
