// Part of settling: changes of the documents in the main frame and of the open shadow trees in them.
// A node that changes in many frames (a ticker, an animation by script) is ignored from then on.
/* global listenForActions -- user_events.js */
/* exported changes, countChange, documents, restlessCount, stopWatching, takeDirty, trees, watch */

const RESTLESS_FRAMES = 40;
const MOST_TREES = 3000;
const restless = new WeakSet();
let restlessCount = 0;
let framesOf = new Map();   // node -> number of frames in which it changed since `watch`
let changes = 0;            // number of changes since `watch`
let dirty = false;          // whether anything changed since the last frame
let trees = new Set();      // the watched documents and shadow trees
const observer = new MutationObserver(countChanges);

// A mutation observer does not report changes inside shadow trees, so each tree is observed.
function watchShadowTrees(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
  for (let node = root; node && trees.size < MOST_TREES; node = walker.nextNode()) {
    const inner = node.shadowRoot;
    if (inner && !trees.has(inner)) {
      observeTree(inner);
      watchShadowTrees(inner);
    }
  }
}

function observeTree(tree) {
  trees.add(tree);
  observer.observe(
    tree, { subtree: true, childList: true, attributes: true, characterData: true });
}

function countChanges(records) {
  const targets = new Set();
  for (const record of records) {
    targets.add(record.target);
    for (const added of record.addedNodes) if (added.nodeType === 1) watchShadowTrees(added);
  }
  for (const node of targets) {
    if (restless.has(node)) continue;
    countChange();
    dirty = true;
    const frames = (framesOf.get(node) || 0) + 1;
    framesOf.set(node, frames);
    if (frames >= RESTLESS_FRAMES) {
      restless.add(node);
      restlessCount += 1;
    }
  }
}

function countChange() {
  changes += 1;
}

// Counts the changes that were not delivered yet.
function readChanges() {
  countChanges(observer.takeRecords());
}

// Whether a node changed since the last call.
function takeDirty() {
  readChanges();
  const found = dirty;
  dirty = false;
  return found;
}

// The document of this frame and those of the same origin inside it.
function documents() {
  const found = [document];
  for (let i = 0; i < found.length && found.length < 20; i += 1) {
    for (const frame of found[i].querySelectorAll('iframe, frame')) {
      const inner = frame.contentDocument;
      if (inner && inner.documentElement) found.push(inner);
    }
  }
  return found;
}

// Starts to watch, with all counts at zero.
function watch() {
  stopWatching();
  trees = new Set();
  for (const inner of documents()) {
    observeTree(inner);
    watchShadowTrees(inner);
    listenForActions(inner);
  }
  changes = 0;
  dirty = false;
}

function stopWatching() {
  observer.disconnect();
  framesOf = new Map();
}
