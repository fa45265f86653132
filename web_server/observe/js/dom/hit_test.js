// Part of the walker: which element the pointer hits at a point, and where a node can be clicked.
/* global elementAt -- safe.js */
/* global composedParent, contains, shadowOf -- dom.js */
/* global clipOf, intersect, rectsOf -- geometry.js */
/* exported CONTROLS, deepElementFromPoint, pointOf, reaches */

function deepElementFromPoint(doc, x, y) {
  let hit = elementAt(doc, x, y);
  while (hit) {
    const shadow = shadowOf(hit);
    const inner = shadow && shadow.elementFromPoint(x, y);
    if (!inner || inner === hit || !shadow.contains(inner)) break;
    hit = inner;
  }
  return hit;
}

// Whether a click that hits `hit` reaches `element`: `hit` is inside it or in its label, or contains
// it while the element ignores the pointer.
function reaches(element, hit) {
  if (!hit) return false;
  if (contains(element, hit)) return true;
  if (element.labels) for (const label of element.labels) if (labelled(label, element, hit)) return true;
  return contains(hit, element) && getComputedStyle(element).pointerEvents === 'none';
}

// Whether a click on this part of a label activates its control, and not a link in the label.
function labelled(label, control, hit) {
  if (!contains(label, hit)) return false;
  for (let e = hit; e && e !== label; e = composedParent(e)) {
    if (e !== control && e.nodeType === 1 && e.matches('a[href],button,input,select,textarea')) return false;
  }
  return true;
}

const CONTROLS = 'a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=checkbox]';

// Whether a click on `hit`, inside `element`, activates another control in between.
function hitsInnerControl(element, hit) {
  for (let e = hit; e && e !== element; e = composedParent(e)) {
    if (e.nodeType === 1 && e.matches(CONTROLS)) return true;
  }
  return false;
}

// A point {x, y, hit} of `node` inside `clip`. `hit` is null where the pointer reaches the node, else
// the element that covers it. Tries the middle of the first visible boxes, then points around it, and
// prefers points outside of inner controls. Returns null if no box is visible.
function pointOf(node, clip) {
  const element = node.nodeType === 1 ? node : node.parentElement;
  const doc = element.ownerDocument;
  let first = null;
  let onControl = null;
  let tried = 0;
  for (const rect of rectsOf(node)) {
    const box = clip && intersect(rect, clip);
    if (!box) continue;
    for (const [fx, fy] of [[0.5, 0.5], [0.15, 0.5], [0.85, 0.5], [0.5, 0.15], [0.5, 0.85]]) {
      const x = box.x1 + (box.x2 - box.x1) * fx;
      const y = box.y1 + (box.y2 - box.y1) * fy;
      const hit = deepElementFromPoint(doc, x, y);
      if (!reaches(element, hit)) first = first || { x, y, hit };
      else if (!hitsInnerControl(element, hit)) return { x, y, hit: null };
      else onControl = onControl || { x, y, hit: null };
    }
    if (++tried === 3) break;
  }
  if (onControl) return onControl;
  // A clipped or very small control is clicked on its label.
  if (first && element.labels) {
    for (const label of element.labels) {
      const shown = clipOf(label);
      const box = shown && intersect(label.getBoundingClientRect(), shown);
      if (!box) continue;
      for (const share of [0.5, 0.1, 0.9]) {
        const x = box.x1 + (box.x2 - box.x1) * share;
        const y = (box.y1 + box.y2) / 2;
        const hit = deepElementFromPoint(doc, x, y);
        if (hit && labelled(label, element, hit)) return { x, y, hit: null };
      }
    }
  }
  return first;
}
