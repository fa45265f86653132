// Part of the walker: ids of nodes, closed shadow roots, the composed tree.
/* global parentOf, slotOf, typeOf, viewOf -- safe.js */
/* global hasBoxInside -- geometry.js */
/* exported adopt, checkedHosts, composedChildren, composedParent, contains, idOf, isLive, mayHideShadow */
/* exported nextId, nodeIds, nodesById, pieceId, prune, shadowOf */

const nodeIds = new WeakMap();

const nodesById = new Map();
const closedRoots = new WeakMap();

let nextId = 3; // 1 is the page, 2 the scroll position
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

// A long text is shown in pieces, each with its own id. `start` is the offset of a piece.
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

// Forgets nodes that left the page. The map holds nodes strongly, because a weak reference to a node
// may be cleared while the page still shows it.
function prune() {
  if (nodesById.size < prunedSize * 2) return;
  for (const [id, node] of nodesById) if (!isLive(node)) nodesById.delete(id);
  prunedSize = Math.max(2000, nodesById.size);
}

// Whether an element may have a closed shadow root that page_recorder.js could not record, because the
// parser attached it (declarative shadow DOM). Such an element has a size but no content. Each is
// reported once; the server then asks the browser's debugging protocol.
const SHADOW_HOSTS = new Set(('article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main '
  + 'nav p section span').split(' '));

const checkedHosts = new WeakSet();

function mayHideShadow(element, tag, rect, style) {
  const custom = tag.includes('-');
  if (!custom && (element.firstChild !== null || !SHADOW_HOSTS.has(tag))) return false;
  if (rect.width * rect.height === 0 || checkedHosts.has(element) || element.ownerDocument !== document
      || shadowOf(element) || hasBoxInside(element)) return false;
  checkedHosts.add(element);
  if (style.display === 'inline') return true;
  const padding = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  return element.clientHeight > padding && !(parseFloat(style.minHeight) > 0)
    && element.computedStyleMap().get('height').value === 'auto';
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

// Children in the composed tree: those of the shadow root, or those assigned to a slot.
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
