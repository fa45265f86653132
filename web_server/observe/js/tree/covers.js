// Part of the walker: what covers an element, described in a line.
/* global composedParent, contains, nodeIds -- dom.js */
/* global deepElementFromPoint, pointOf -- hit_test.js */
/* global recorded -- page_records.js */
/* global INTERACTIVE_ROLES, attribute, collapse, roleOf -- roles.js */
/* global nameOf, textOf -- names.js */
/* global plain -- states.js */
/* global hintName -- hints.js */
/* global walk -- walk.js */
/* exported LONG_HINT, coveredBy, describe, describeCover, fillIds, ignoresPointer, shorten */

// Whether an interactive element ignores the pointer.
function ignoresPointer(element, role) {
  return (INTERACTIVE_ROLES.has(role) || recorded.click.has(element))
    && getComputedStyle(element).pointerEvents === 'none'
    && !(element.labels && [...element.labels].some(
      (label) => getComputedStyle(label).pointerEvents !== 'none'));
}

// Describes what covers an element; '' if the pointer reaches it. An element in a frame may be covered
// in the documents around the frame.
function coveredBy(element, inner) {
  const found = pointOf(element, inner.clip);
  if (!found) return '';
  // During a view transition its snapshot covers the page.
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

// Describes a covering element: by its dialog, which can be closed, rather than by a part of it.
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
      // The server adds `(id N)`; a name must not imitate it.
      const name = (shorten(nameOf(e, role)) || hintName(e)).replace(/\(id\b/gi, '(');
      const id = nodeIds.get(e);
      return collapse(`${role} ${name}`) + (id ? ` (id ${id})` : walk ? idPlaceholder(e) : '');
    }
  }
  return collapse(`${element.localName} ${hintName(element)} ${shorten(textOf(element, 'generic'))}`);
}

const LONG_HINT = 40;

// The beginning of a text, as a hint.
function shorten(text) {
  const line = plain(text, 1000);
  return line.length > LONG_HINT ? line.slice(0, LONG_HINT) + '\u2026' : line;
}

// A placeholder for the id of an element that the walk may reach later; `fillIds` replaces it.
function idPlaceholder(element) {
  walk.unnumbered.push(element);
  return `\x1b${walk.unnumbered.length - 1}\x1b`;
}

function fillIds(records, elements) {
  // eslint-disable-next-line no-control-regex
  return elements.length === 0 ? records : records.replace(/\x1b(\d+)\x1b/g, (all, index) => {
    const id = nodeIds.get(elements[index]);
    return id ? ` (id ${id})` : '';
  });
}
