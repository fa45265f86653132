// Part of the walker: rectangles of nodes, and the area where they are visible.
/* global rootElementOf, viewOf -- safe.js */
/* global composedChildren, composedParent -- dom.js */
/* exported areaRect, clipOf, hasBoxInside, intersect, pictureOfArea, rangeOf, rectsOf */

function hasBoxInside(element) {
  const range = new Range();
  range.selectNodeContents(element);
  const rect = range.getBoundingClientRect();
  return rect.width > 0 && rect.height > 0;
}

function intersect(rect, clip) {
  const x1 = Math.max(rect.left, clip.x1);
  const y1 = Math.max(rect.top, clip.y1);
  const x2 = Math.min(rect.right, clip.x2);
  const y2 = Math.min(rect.bottom, clip.y2);
  return x2 > x1 && y2 > y1 ? { x1, y1, x2, y2 } : null;
}

// The image whose map contains an area element.
function pictureOfArea(area) {
  if (area.localName !== 'area') return null;
  const map = area.closest('map');
  return map && map.name
    ? map.getRootNode().querySelector(`img[usemap="#${CSS.escape(map.name)}"]`) : null;
}

// The rectangle of an area element, in the document of its image.
function areaRect(area, picture) {
  const whole = picture.getBoundingClientRect();
  const left = whole.left + picture.clientLeft + parseFloat(getComputedStyle(picture).paddingLeft);
  const top = whole.top + picture.clientTop + parseFloat(getComputedStyle(picture).paddingTop);
  const numbers = (area.coords || '').split(',').map(Number);
  if (area.shape === 'default' || numbers.length < 3) return whole;
  if (/^circ/.test(area.shape)) {
    const [x, y, r] = numbers;
    return new DOMRect(left + x - r, top + y - r, 2 * r, 2 * r);
  }
  const across = numbers.filter((_, i) => i % 2 === 0);
  const down = numbers.filter((_, i) => i % 2 === 1);
  const x = Math.min(...across);
  const y = Math.min(...down);
  return new DOMRect(left + x, top + y, Math.max(...across) - x, Math.max(...down) - y);
}

const hasArea = (rect) => rect.width > 0 && rect.height > 0;

// Up to three rectangles of content that overflows an element without a size.
function boxesInside(element, found = []) {
  const style = getComputedStyle(element);
  if (style.overflowX !== 'visible' && style.display !== 'contents') return found;
  for (const child of composedChildren(element)) {
    if (found.length >= 3) break;
    const rects = child.nodeType === 1 ? child.getClientRects()
      : child.nodeType === 3 ? rangeOf(child).getClientRects() : [];
    const shown = [...rects].filter(hasArea);
    if (shown.length) found.push(...shown);
    else if (child.nodeType === 1) boxesInside(child, found);
  }
  return found;
}

function rectsOf(node) {
  if (node.nodeType === 1) {
    const picture = pictureOfArea(node);
    if (picture) return [areaRect(node, picture)];
    const rects = node.getClientRects();
    if (!rects.length || rects.length === 1 && !hasArea(rects[0])) {
      const inner = boxesInside(node);
      if (inner.length) return inner;
    }
    if (rects.length) return rects;
  }
  const range = new Range();
  range.selectNodeContents(node);
  return range.getClientRects();
}

// The part of the frame's viewport where a node can be visible: clipped by its ancestors.
function clipOf(node) {
  const root = rootElementOf(node.ownerDocument);
  const view = viewOf(node);
  let clip = { x1: 0, y1: 0, x2: view.innerWidth, y2: view.innerHeight };
  let position = node.nodeType === 1 ? getComputedStyle(node).position : 'static';
  for (let e = composedParent(node); e && e.nodeType === 1; e = composedParent(e)) {
    if (position === 'fixed') break;
    if (e === root || e.localName === 'body') continue;
    const style = getComputedStyle(e);
    const holds = style.position !== 'static' || style.transform !== 'none';
    if (style.overflowX !== 'visible' && style.display !== 'inline'
        && (position !== 'absolute' || holds)) {
      const cut = intersect(e.getBoundingClientRect(), clip);
      if (!cut) return null;
      clip = cut;
    }
    if (position !== 'absolute' || holds) position = style.position;
  }
  return clip;
}

function rangeOf(node) {
  const range = new Range();
  range.selectNodeContents(node);
  return range;
}
