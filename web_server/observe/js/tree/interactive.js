// Part of the walker: lines of interactive elements.
/* global tagOf -- safe.js */
/* global shadowOf -- dom.js */
/* global recorded -- page_records.js */
/* global INTERACTIVE_ROLES, NAME_FROM_CONTENT, attribute, collapse, hasAuthorName, roleOf, shownRole -- roles.js */
/* global nameOf, textOf -- names.js */
/* global struckText -- typography.js */
/* global LONG_VALUE, TOGGLES, plain, statesOf, withBreaks -- states.js */
/* global editableText -- editable_text.js */
/* global otherTextPairs -- shown_text.js */
/* global hintPairs, isPartOfChart, shapePairs, symbolPairs -- hints.js */
/* global FIELD_ROLES, nearPairs -- near.js */
/* global coveredBy, ignoresPointer -- covers.js */
/* global scrollPairs -- scroll_state.js */
/* global flushText -- text.js */
/* global CONTAINERS, LONG_NAME, flagsFor, put, record, visitChildren, walk -- walk.js */
/* exported namedByText, phraseText, visitInteractive */

// Adds the line of an element and those of its content. Returns its name.
function visitInteractive(element, role, rect, inner, context, hints) {
  flushText();
  const index = walk.out.length;
  const shown = inner.inView || walk.full;
  const fromContent = namedByText(element, role);
  const editable = hints.includes('editable: true');
  let name = nameOf(element, role);
  let mute = context.mute || NAME_FROM_CONTENT.has(role); // whether the line says the text of its content
  if (!name && fromContent && !editable) {
    name = phraseText(element, role);
    mute = mute || name !== '';
  }
  const hasValue = editable || (role === 'textbox' || role === 'combobox') && !('value' in element);
  const value = !hasValue ? '' : element.isContentEditable ? editableText(element).trim() : textOf(element, role);
  if (hasValue) mute = mute || value.length <= LONG_VALUE;
  const toggle = !name && role === 'generic' ? hiddenToggle(element) : null;
  const pairs = interactivePairs(element, role, name, value, toggle, inner, hints, fromContent);
  if (name.length > LONG_NAME && mute && !context.mute) {
    name = name.slice(0, LONG_NAME / 3) + '\u2026';
    mute = false;
  }
  if (context.row) addToRow(element, role, name, inner, context.row);
  if (shown && !(context.row && role === 'link' && name && !walk.full && context.row.repeats(element))) {
    const lineRole = toggle ? roleOf(toggle) : shownRole(element, role);
    put(context, element, lineRole, flagsFor(inner, true), rect, name, pairs);
  }
  if (element.localName === 'textarea' || mute && !element.firstElementChild && !shadowOf(element)) {
    return name;
  }
  visitChildren(element, { ...inner, depth: context.depth + 1, mute, row: null,
    interactive: INTERACTIVE_ROLES.has(role) || mute || context.interactive });
  flushText();
  if (shown && !name) {
    if (hints.join() === 'hoverable: true') makeGroup(index, context);
    else if (walk.out.length === index + 1 && fromContent && element.firstElementChild && !mute && !toggle) {
      const more = hintPairs(element, role, inner.style);
      if (more.length) walk.out[index] += (pairs.length ? '\x1d' : '') + more.join('\x1d');
    }
  }
  return name;
}

// Adds the text that an element shows to its row.
function addToRow(element, role, name, inner, row) {
  if (TOGGLES.test(role) || FIELD_ROLES.test(role)) return;
  const labelled = hasAuthorName(element) || element.querySelector('[aria-label],input');
  const text = labelled && 'innerText' in element ? collapse(element.innerText) : name;
  row.addOwnLine(inner.struck ? struckText(text) : text);
}

function interactivePairs(element, role, name, value, toggle, inner, hints, fromContent) {
  const pairs = statesOf(element, role, name, element === walk.focus);
  if (name && tagOf(element) === 'text') pairs.push(...shapePairs(element, inner.style));
  if (!name && !TOGGLES.test(role) && (!fromContent || !element.firstElementChild)) {
    pairs.push(...hintPairs(element, role, inner.style));
  }
  if (!name) pairs.push(...nearPairs(element, role));
  pairs.push(...symbolPairs(element, name));
  if (NAME_FROM_CONTENT.has(role)) pairs.push(...otherTextPairs(element, name));
  if (inner.struck && name) pairs.push('struck: true');
  if (value && value.length <= LONG_VALUE) pairs.push('value: ' + plain(withBreaks(value)));
  if (toggle) pairs.push(`checked: ${toggle.checked}`);
  pairs.push(...hints, ...scrollPairs(element, inner.style));
  if (role === 'link' && !name) pairs.push('url: ' + plain(element.getAttribute('href') || '', 60));
  const cover = inner.inView && !(inner.faded && fromContent) ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  if (inner.style.pointerEvents === 'none' && ignoresPointer(element, role)) pairs.push('pointer: none');
  return pairs;
}

// Replaces the line of a container that only listens for hovering by a group, which render.py shows
// only if it structures the page.
function makeGroup(index, context) {
  const id = walk.out[index].split('\x1f', 2)[1];
  walk.out[index] = record(context.depth, id, 'group', 0, '', '', []);
}

// The checkbox or radio button without a size that an element displays by other means.
function hiddenToggle(element) {
  const found = element.querySelectorAll('input[type=checkbox],input[type=radio]');
  if (found.length !== 1 || found[0].disabled) return null;
  const rect = found[0].getBoundingClientRect();
  return rect.width * rect.height === 0 && found[0].checkVisibility() ? found[0] : null;
}

// Whether an interactive element is named by its text although its role is not.
function namedByText(element, role) {
  return role === 'image' ? 'ownerSVGElement' in element : !INTERACTIVE_ROLES.has(role);
}

// The text of an element with only text and inline elements in it; else ''.
function phraseText(element, role) {
  if (CONTAINERS.has(role) && role !== 'group' && role !== 'listitem' || shadowOf(element)) return '';
  let budget = 40;
  if (hasItems(element) || hasNamedShapes(element)) return '';
  for (const child of element.querySelectorAll('*')) {
    if (--budget < 0 || child.firstElementChild && hasItems(child)) return '';
    if ((INTERACTIVE_ROLES.has(roleOf(child)) || recorded.click.has(child)
        || /^(ul|ol|table|h[1-6]|iframe|form|canvas)$/.test(child.localName))
        && child.checkVisibility()) return '';
  }
  const name = textOf(element, role);
  return name.length <= LONG_NAME ? name : '';
}

// Whether a listening drawing contains named shapes: seats of a hall, countries of a map.
function hasNamedShapes(element) {
  if (!('ownerSVGElement' in element)) return false;
  const named = element.querySelectorAll(':is(circle,ellipse,path,polygon,rect) > title');
  return named.length > 1 && isPartOfChart(named[0].parentNode);
}

// Whether an element contains several items of the same kind. Each of them then gets a line, because
// the listener of the container serves each. The parts of a single item differ in class.
function hasItems(element) {
  const counts = new Map();
  for (const child of element.children) {
    const kind = child.localName + ' ' + attribute(child, 'class').split(/\s+/, 1)[0];
    const count = (counts.get(kind) || 0) + 1;
    counts.set(kind, count);
    if (count < (kind.endsWith(' ') ? 3 : 2) || !/\S/.test(child.textContent)) continue;
    const display = getComputedStyle(child).display;
    if (display !== 'none' && !display.startsWith('inline') && display !== 'contents') return true;
  }
  return false;
}
