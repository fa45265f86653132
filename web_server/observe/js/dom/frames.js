// Part of the walker: frames and image maps.
/* global rootElementOf -- safe.js */
/* global idOf -- dom.js */
/* global areaRect, intersect -- geometry.js */
/* global pullRecords -- page_records.js */
/* global attribute, collapse -- roles.js */
/* global nameOf -- names.js */
/* global statesOf -- states.js */
/* global hintPairs -- hints.js */
/* global flushText -- text.js */
/* global INTERACTIVE, IN_VIEW, REMOTE_FRAME, clean, put, record, walk -- walk.js */
/* global walkDocument -- page.js */
/* exported visitAreas, visitEmbed, visitFrame, visitObject */

// Documents of the same origin are walked in place. Others are reported, and the server walks them
// in their own isolated worlds.
function visitFrame(element, inner, rect, context) {
  if (context.mute || inner.invisible || !(inner.inView || walk.full)) return true;
  const style = inner.style;
  const left = rect.left + element.clientLeft + parseFloat(style.paddingLeft);
  const top = rect.top + element.clientTop + parseFloat(style.paddingTop);
  const visible = inner.inView && intersect(rect, inner.clip);
  const clip = visible
    ? { x1: visible.x1 - left, y1: visible.y1 - top, x2: visible.x2 - left, y2: visible.y2 - top }
    : { x1: 0, y1: 0, x2: -1, y2: -1 };
  const doc = element.contentDocument;
  flushText();
  const index = walk.out.length;
  const focus = element === walk.focus ? ['focused: true'] : [];
  walk.out.push(record(context.depth, idOf(element), 'Iframe', doc ? 0 : REMOTE_FRAME, '',
    clean(collapse(attribute(element, 'aria-label') || attribute(element, 'title'))), doc ? [] : focus));
  const x = context.frame.x + left;
  const y = context.frame.y + top;
  if (!doc) {
    walk.frames.push({ id: idOf(element), x, y, clip, depth: context.depth + 1, focused: focus.length > 0 });
    return true;
  }
  if (rootElementOf(doc)) {
    pullRecords(doc);
    walkDocument(doc, { x, y, clip, owner: element, parent: context.frame }, context.depth + 1);
  }
  if (walk.out.length === index + 1) walk.out.length = index;
  return true;
}

function visitObject(element, inner, rect, context) {
  return element.contentWindow ? visitFrame(element, inner, rect, context) : false;
}

// An embed element does not expose its document, so the server walks it separately.
function visitEmbed(element, inner, rect, context) {
  return /html/.test(element.type) ? visitFrame(element, inner, rect, context) : false;
}

// The links of an image map, at the place of the image.
function visitAreas(image, inner, context) {
  const map = image.useMap && image.getRootNode().querySelector(
    `map[name="${CSS.escape(image.useMap.replace(/^#/, ''))}"]`);
  if (!map) return;
  for (const area of map.querySelectorAll('area[href]')) {
    const rect = areaRect(area, image);
    const inView = inner.inView && intersect(rect, inner.clip) !== null;
    if (!(inView || walk.full)) continue;
    const name = nameOf(area, 'link');
    const pairs = statesOf(area, 'link', name, area === walk.focus);
    if (!name) pairs.push(...hintPairs(area, 'link', inner.style));
    put(context, area, 'link', (inView ? IN_VIEW : 0) | INTERACTIVE, rect, name, pairs);
  }
}
