// Isolated world: what every other part needs of the DOM. Composed tree, ids, geometry, hit tests.
const nodeIds = new WeakMap();
const nodesById = new Map();
const closedRoots = new WeakMap();
let nextId = 3; // 1 is the page, 2 its scroll position
let closedCount = 0;
let prunedSize = 2000;

function idOf(node) {
  let id = nodeIds.get(node);
  if (id === undefined) {
    id = nextId++;
    nodeIds.set(node, id);
    nodesById.set(id, node);
  } else if (!nodesById.has(id)) {
    nodesById.set(id, node);
  }
  return id;
}

// A long text is shown in pieces; each piece is an entry of its own that points to the text.
const pieceIds = new WeakMap();
function pieceId(text, start) {
  if (start === 0) return idOf(text);
  let pieces = pieceIds.get(text);
  if (!pieces) pieceIds.set(text, (pieces = new Map()));
  let id = pieces.get(start);
  if (id === undefined) {
    id = nextId++;
    pieces.set(start, id);
    nodesById.set(id, text);
  }
  return id;
}

function isLive(node) {
  if (!node.isConnected) return false;
  let view = viewOf(node);
  while (view && view !== window) {
    const owner = view.frameElement;
    if (!owner || !owner.isConnected) return false;
    view = viewOf(owner);
  }
  return view === window;
}

// The map holds nodes strongly (a weak reference may lose a node that only the page still shows),
// so nodes that left the page are let go from time to time.
function prune() {
  if (nodesById.size < prunedSize * 2) return;
  for (const [id, node] of nodesById) if (!isLive(node)) nodesById.delete(id);
  prunedSize = Math.max(2000, nodesById.size);
}

// Closed roots that the parser attached (declarative shadow DOM) pass no function that a script
// could watch. They betray themselves by taking room without having anything inside; the browser is
// asked about such elements once, from outside.
const SHADOW_HOSTS = new Set(('article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main '
  + 'nav p section span').split(' '));
const asked = new WeakSet();
function mayHideShadow(element, tag, rect, style) {
  const custom = tag.includes('-');
  if (!custom && (element.firstChild !== null || !SHADOW_HOSTS.has(tag))) return false;
  if (rect.width * rect.height === 0 || asked.has(element) || element.ownerDocument !== document
      || shadowOf(element) || hasBoxInside(element)) return false;
  asked.add(element);
  if (style.display === 'inline') return true;
  const padding = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  return element.clientHeight > padding && !(parseFloat(style.minHeight) > 0)
    && element.computedStyleMap().get('height').value === 'auto';
}

function hasBoxInside(element) {
  const range = new Range();
  range.selectNodeContents(element);
  const rect = range.getBoundingClientRect();
  return rect.width > 0 && rect.height > 0;
}

function adopt(root) {
  closedRoots.set(root.host, root);
  closedCount++;
}

function shadowOf(element) {
  return element.shadowRoot || (closedCount ? closedRoots.get(element) : undefined) || null;
}

function composedParent(node) {
  const slot = typeOf(node) === 1 ? slotOf(node) : node.assignedSlot;
  if (slot) return slot;
  const parent = parentOf(node);
  if (parent && typeOf(parent) === 11 && parent.host) return parent.host;
  return parent;
}

// Children as they are shown: the shadow tree in place of the host's, what is slotted in the slot.
function composedChildren(element) {
  const shadow = shadowOf(element);
  if (shadow) return shadow.childNodes;
  if (element.localName === 'slot') {
    const assigned = element.assignedNodes();
    if (assigned.length) return assigned;
  }
  return element.childNodes;
}

function contains(ancestor, node) {
  for (let n = node; n; n = composedParent(n)) if (n === ancestor) return true;
  return false;
}

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

function intersect(rect, clip) {
  const x1 = Math.max(rect.left, clip.x1);
  const y1 = Math.max(rect.top, clip.y1);
  const x2 = Math.min(rect.right, clip.x2);
  const y2 = Math.min(rect.bottom, clip.y2);
  return x2 > x1 && y2 > y1 ? { x1, y1, x2, y2 } : null;
}

// The picture whose map an area belongs to.
function pictureOfArea(area) {
  if (area.localName !== 'area') return null;
  const map = area.closest('map');
  return map && map.name
    ? map.getRootNode().querySelector(`img[usemap="#${CSS.escape(map.name)}"]`) : null;
}

// Where an area is, in the document of its picture; `right` and `bottom` as of a DOMRect.
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

// What is seen of an element without a size of its own: what stands out of it.
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
      const inside = boxesInside(node);
      if (inside.length) return inside;
    }
    if (rects.length) return rects;
  }
  const range = new Range();
  range.selectNodeContents(node);
  return range.getClientRects();
}

// The part of the frame's viewport in which a node can be seen: cut by every clipping ancestor.
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

// Does a click that lands on `hit` reach `element`? Itself, what is inside it, its label, or, where
// it lets the pointer through, what it is inside of.
function reaches(element, hit) {
  if (!hit) return false;
  if (contains(element, hit)) return true;
  if (element.labels) for (const label of element.labels) if (labelled(label, element, hit)) return true;
  return contains(hit, element) && getComputedStyle(element).pointerEvents === 'none';
}

// Does a click on this part of a label go to its control, and not to a link in the label?
function labelled(label, control, hit) {
  if (!contains(label, hit)) return false;
  for (let e = hit; e && e !== label; e = composedParent(e)) {
    if (e !== control && e.nodeType === 1 && e.matches('a[href],button,input,select,textarea')) return false;
  }
  return true;
}

// Would a click that lands on `hit`, inside `element`, do what a control in between is for?
const CONTROLS = 'a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=checkbox]';
function isOfControlInside(element, hit) {
  for (let e = hit; e && e !== element; e = composedParent(e)) {
    if (e.nodeType === 1 && e.matches(CONTROLS)) return true;
  }
  return false;
}

// A point of `node` inside `clip` where the pointer reaches it, if there is one beside the controls
// inside. Tries the middle of its first visible box, then points around it. Result: {x, y, hit}
// with hit null when it is reached.
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
      else if (!isOfControlInside(element, hit)) return { x, y, hit: null };
      else onControl = onControl || { x, y, hit: null };
    }
    if (++tried === 3) break;
  }
  if (onControl) return onControl;
  // A control that is cut away or too small is worked by its label.
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
