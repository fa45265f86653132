// Part of the walker: finds a displayed text by its words and selects it. White space is ignored.
/* global bodyOf, documentOf, parentOf, tagOf, typeOf, viewOf -- safe.js */
/* global composedParent, contains, isLive, shadowOf -- dom.js */
/* global deepElementFromPoint -- hit_test.js */
/* global recorded -- page_records.js */
/* global describe -- covers.js */
/* global elementOf, frameOffset, throughFrames -- target.js */
/* exported ensureSelected, locateText */

const NOT_SEARCHED = 'script,style,noscript,template,textarea,option,title';
// Elements where dragging the mouse does not select text.
const NOT_SELECTABLE = 'a[href],button,label,summary,[draggable=true],[onclick],[role=button],[role=link]';

let located = null; // the range of the text that was found last

// The displayed characters of a tree without white space, and their positions. Adds shadow trees and
// frames to `trees`: a selection cannot cross their boundaries.
function charactersOf(root, trees) {
  const found = { text: '', nodes: [], starts: [], places: [] };
  const walker = documentOf(root).createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (typeOf(node) === 1) {
      const inner = shadowOf(node) || tagOf(node) === 'iframe' && node.contentDocument
        && bodyOf(node.contentDocument);
      if (inner) trees.push(inner);
    } else if (typeOf(node) === 3) {
      addCharacters(found, node);
    }
  }
  return found;
}

function addCharacters(found, node) {
  const data = node.data;
  const parent = parentOf(node);
  const element = parent && (typeOf(parent) === 1 ? parent : parent.host);
  if (!/\S/.test(data) || !element || element.closest(NOT_SEARCHED)
      || !element.checkVisibility({ visibilityProperty: true })) return;
  found.nodes.push(node);
  found.starts.push(found.text.length);
  const places = [];
  let text = '';
  for (let i = 0; i < data.length; i++) {
    if (!/\s/.test(data[i])) {
      text += data[i];
      places.push(i);
    }
  }
  found.text += text;
  found.places.push(places);
}

function withoutSpace(text) {
  return text.replace(/\s+/g, '');
}

// Lower case of the same length in all languages, so that positions stay valid.
function lowerCased(text) {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    const low = text[i].toLowerCase();
    out += low.length === 1 ? low : text[i];
  }
  return out;
}

function positionsOf(text, sought) {
  const found = [];
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) found.push(at);
  return found;
}

function rangeIn(found, from, length) {
  const range = new Range();
  const point = (at) => {
    let i = found.starts.length - 1;
    while (found.starts[i] > at) i--;
    return [found.nodes[i], found.places[i][at - found.starts[i]]];
  };
  const [first, start] = point(from);
  const [last, end] = point(from + length - 1);
  range.setStart(first, start);
  range.setEnd(last, end + 1);
  return range;
}

// Finds a text inside an element, exactly or in another case, and scrolls it into view. Returns null,
// or where it starts and ends, how often it occurs, what covers it, and whether it was selected here
// (`silent`) because a mouse cannot select it.
function locateText(id, text) {
  const element = elementOf(id);
  if (!element) return null;
  const sought = withoutSpace(text);
  const trees = [element];
  const all = [];
  for (let i = 0; i < trees.length && i < 500; i++) all.push(charactersOf(trees[i], trees));
  for (const plainly of [(t) => t, lowerCased]) {
    const hits = [];
    for (const found of all) {
      const needle = plainly(sought || found.text);
      if (needle) for (const at of positionsOf(plainly(found.text), needle)) hits.push([found, at, needle.length]);
    }
    if (hits.length) {
      located = rangeIn(...hits[0]);
      return { ...showLocated(), count: sought ? hits.length : 1 };
    }
  }
  return null;
}

function showLocated() {
  const element = composedParent(located.startContainer);
  const view = viewOf(element);
  let rects = [...located.getClientRects()].filter((rect) => rect.width > 0);
  const isInside = (rect) => rect.top >= 0 && rect.left >= 0 && rect.bottom <= view.innerHeight
    && rect.right <= view.innerWidth;
  const seen = () => rects.length && isInside(rects[0]) && isInside(rects[rects.length - 1])
    && throughFrames(view, rects[0].left, rects[0].top).inView;
  if (!seen()) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    rects = [...located.getClientRects()].filter((rect) => rect.width > 0);
  }
  const offset = frameOffset(element);
  const first = rects[0];
  const last = rects[rects.length - 1];
  if (!first) return { x1: 0, y1: 0, x2: 0, y2: 0, covered_by: null, silent: selectLocated() };
  const hit = deepElementFromPoint(element.ownerDocument, first.left + 1, (first.top + first.bottom) / 2);
  const covered = hit && !contains(element, hit) && !contains(hit, element);
  const quiet = !seen() || covered === null || preventsSelection(element);
  return {
    x1: first.left + offset.x, y1: (first.top + first.bottom) / 2 + offset.y,
    x2: last.right + offset.x, y2: (last.top + last.bottom) / 2 + offset.y,
    covered_by: covered ? describe(hit) : null, silent: quiet && !covered ? selectLocated() : false,
  };
}

function preventsSelection(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) {
    if (e.localName === 'body') return false;
    if (e.matches(NOT_SELECTABLE) || recorded.click.has(e) || recorded.drag.has(e)) return true;
  }
  return false;
}

function selectionOf(node) {
  const root = node.getRootNode();
  return root.getSelection ? root.getSelection() : documentOf(node).getSelection();
}

function selectLocated() {
  selectionOf(located.startContainer).setBaseAndExtent(
    located.startContainer, located.startOffset, located.endContainer, located.endOffset);
  return true;
}

// Selects the located text unless it is selected. Returns whether it is now; null if it left the page.
function ensureSelected() {
  if (!located || !isLive(located.startContainer) || !isLive(located.endContainer)) return null;
  const same = () => {
    const selection = selectionOf(located.startContainer);
    return withoutSpace(selection.toString()) !== '' && lowerCased(withoutSpace(selection.toString()))
      === lowerCased(withoutSpace(located.toString()));
  };
  if (!same()) selectLocated();
  return same();
}
