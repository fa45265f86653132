// Part of the walker: which elements without an interactive role are interactive, and what identifies
// elements without a name.
/* global parentOf -- safe.js */
/* global recorded -- page_records.js */
/* global INTERACTIVE_ROLES, attribute, collapse, nativeRole, pictureOf -- roles.js */
/* global isEditableRoot, plain -- states.js */
/* global LONG_HINT, shorten -- covers.js */
/* global scrollPairs -- scroll_state.js */
/* global CONTAINERS -- walk.js */
/* exported fillsPage, forgetCharts, hintName, hintPairs, hintsOf, isPartOfChart, shapePairs */
/* exported symbolName, symbolPairs */

// Why an element is interactive, as `key: true` pairs; null if it is not. It has listeners, a pointer
// cursor that its parent does not have, or can be dragged, edited or focused.
function hintsOf(element, role, inner, context, attributes) {
  let hints = null;
  const known = INTERACTIVE_ROLES.has(role);
  if (!known && (recorded.click.has(element) || attributes && element.hasAttribute('onclick')
      || inner.pointer && !context.pointer && !context.interactive
      || attributes && element.hasAttribute('role') && INTERACTIVE_ROLES.has(nativeRole(element))
      || SHAPES.has(element.localName) && !context.interactive && isPartOfChart(element))) {
    hints = ['clickable: true'];
  }
  if (hints && (role === 'generic' || CONTAINERS.has(role)) && fillsPage(element)) hints = null;
  if (attributes) {
    if (element.draggable === true && element.getAttribute('draggable') === 'true'
        || recorded.drag.has(element) && element.draggable) (hints = hints || []).push('draggable: true');
    if (element.hasAttribute('contenteditable') && isEditableRoot(element)) {
      hints = hints || [];
      if (role !== 'textbox') hints.push('editable: true');
    }
    // all cells of a grid can have the focus, though only one has a tab index of 0
    if (!hints && element.hasAttribute('tabindex') && (element.tabIndex >= 0 || role === 'gridcell')
        && (role === 'generic' || role === 'gridcell') && !scrollPairs(element, inner.style).length) {
      hints = ['focusable: true'];
    }
  }
  if (!hints && !known && recorded.hover.has(element) && !context.interactive && !fillsPage(element)) {
    hints = ['hoverable: true'];
  }
  if (element.localName === 'body' && element.ownerDocument.designMode === 'on') {
    (hints = hints || []).push('editable: true');
  }
  const cursor = inner.style.cursor;
  if (/^(move|grab|.+-resize)$/.test(cursor) && context.style.cursor !== cursor
      && !(hints && hints.includes('draggable: true'))) (hints = hints || []).push('draggable: true');
  return hints;
}

const SHAPES = new Set('circle ellipse image line path polygon polyline rect use'.split(' '));

const SMALLEST_CHART = 40;
const MOST_SHAPES = 100;

let charts = new WeakMap(); // listening drawing -> {tag: answer}, for one walk

function forgetCharts() {
  charts = new WeakMap();
}

// Whether a shape belongs to a chart: a drawing with a click listener and several shapes of the same
// kind. The icon of a button is too small.
function isPartOfChart(shape) {
  if (!('ownerSVGElement' in shape) || !shape.ownerSVGElement) return false;

  for (let e = parentOf(shape); e && 'ownerSVGElement' in e; e = parentOf(e)) {
    if (!recorded.click.has(e) && !e.hasAttribute('onclick')) continue;
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

// Whether an element fills most of the viewport: the root of an application, whose listeners serve the
// elements inside.
function fillsPage(element) {
  if (element.localName === 'body' || element.localName === 'html') return true;
  return element.offsetWidth * element.offsetHeight > innerWidth * innerHeight * 0.5
    && element.childElementCount > 0;
}

// Attributes that identify an element without a name.
const ID_ATTRIBUTES = ['data-testid', 'id', 'name'];

function hintName(element, keys = [...ID_ATTRIBUTES, 'class', 'href', 'src']) {
  for (const key of keys) {
    let value = element.getAttribute(key);
    if (!value) continue;
    if (key === 'href' || key === 'src') value = fileName(value);
    if (key === 'class') value = distinctClasses(element, collapse(value));
    value = shorten(value);
    if (value) return value;
  }
  return '';
}

// The symbol that an icon shows, from the fragment of its `use` element.
function symbolName(element) {
  const use = element.querySelector('use');
  const url = use && (use.getAttribute('href') || use.getAttribute('xlink:href'));
  return url && url.includes('#') ? plain(url.slice(url.indexOf('#') + 1), LONG_HINT) : '';
}

// The last segment of a URL's path.
function fileName(url) {
  return url.startsWith('data:') ? '' : url.replace(/[?#].*$/, '').replace(/\/+$/, '').split('/').pop();
}

// The classes in a long list that siblings do not have; all of them if none is left.
function distinctClasses(element, classes) {
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

function hintPairs(element, role, style) {
  const pairs = [];
  const titled = element.querySelector('[title]');
  const icon = element.querySelector('svg[class],i[class],img[src]');
  const drawn = 'ownerSVGElement' in element && element.localName !== 'svg';
  const picture = role === 'image' && fileName(pictureOf(element));
  const title = titled && plain(attribute(titled, 'title'), LONG_HINT);
  // An icon identifies a button better than its class, which other buttons share.
  const hint = title || hintName(element, ID_ATTRIBUTES) || symbolName(element)
    || icon && icon.localName !== 'img' && hintName(icon) || hintName(element)
    || icon && hintName(icon) || drawn && element.localName;
  if (hint || picture) pairs.push('hint: ' + collapse(`${hint || ''} ${plain(picture || '', LONG_HINT)}`));
  if (drawn) return pairs.concat(shapePairs(element, style));
  const color = 'ownerSVGElement' in element ? style.fill : style.backgroundColor;
  if (!('value' in element)) pairs.push(...colorPairs(color));
  return pairs;
}

// The title as a hint, if the name is only a symbol such as a star or an arrow.
function symbolPairs(element, name) {
  const title = name && !/[\p{L}\p{N}]/u.test(name) ? plain(attribute(element, 'title'), LONG_HINT) : '';
  return title && title !== name ? ['hint: ' + title] : [];
}

function colorPairs(color) {
  return color && color !== 'none' && !/^rgba\(.*, 0\)$/.test(color)
    ? ['color: ' + color.replace(/, /g, ',')] : [];
}

// Colour and size of a shape in a drawing.
function shapePairs(element, style) {
  const rect = element.getBoundingClientRect();
  return [...colorPairs(style.fill), `size: ${Math.round(rect.width)}x${Math.round(rect.height)}`];
}
