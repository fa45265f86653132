// Isolated world: the walk from the root of a document, and what is told of the page as a whole.
function walkDocument(doc, frame, depth) {
  const root = rootElementOf(doc);
  const style = getComputedStyle(root);
  const clip = frame.clip;
  frame.escaping = ancestorsOfEscapes(doc);
  const context = {
    depth, clip, outer: clip, frame, style, on: true, whole: false, phrase: false, mute: false, row: null,
    ariaHidden: false, invisible: false, pointer: false, inert: false, faded: false,
    interactive: false,
  };
  visit(root, context);
  flushText();
}

// The element that has the focus, inside shadow trees and frames of the same origin as well.
function focusedElement(doc) {
  let active = activeElementOf(doc);
  while (active) {
    const shadow = shadowOf(active);
    const inner = shadow ? shadow.activeElement
      : active.localName === 'iframe' && active.contentDocument ? activeElementOf(active.contentDocument)
        : null;
    if (!inner) break;
    active = inner;
  }
  return active && active.localName !== 'body' ? active : null;
}

// The same at the moment when an event of that name comes, which says that the page is at rest; the
// event is told by `preventDefault` that it was heard. null: something else was asked for before.
let awaited = null;
function observeWhen(type, options) {
  forgetAwaited();
  return new Promise((resolve, reject) => {
    const heard = (event) => {
      awaited = null;
      unlisten(document, type, heard);
      event.preventDefault();
      try {
        resolve(observe(options));
      } catch (error) {
        reject(error);
      }
    };
    awaited = () => {
      awaited = null;
      unlisten(document, type, heard);
      resolve(null);
    };
    listen(document, type, heard);
  });
}

function forgetAwaited() {
  if (awaited) awaited();
}

// How far the page is scrolled, and how much of it lies beyond each side of the viewport.
function scrollOf(scroller) {
  const scroll = { x: Math.round(scrollX), y: Math.round(scrollY), above: 0, below: 0, left: 0, right: 0 };
  if (!scroller) return scroll;
  scroll.above = Math.round(scroller.scrollTop);
  scroll.below = Math.max(0, Math.round(scroller.scrollHeight - scroller.scrollTop - innerHeight));
  const body = bodyOf(document);
  const fixed = [rootElementOf(document), body].some(
    (e) => e && /hidden|clip/.test(getComputedStyle(e).overflowX));
  const across = scroller.scrollWidth - scroller.clientWidth;
  if (fixed || across < 5) return scroll;
  const backwards = getComputedStyle(scroller).direction === 'rtl';
  scroll.left = Math.max(0, Math.round(backwards ? across + scroller.scrollLeft : scroller.scrollLeft));
  scroll.right = Math.max(0, Math.round(across - scroll.left));
  return scroll;
}

// options: next (first free id), full (off-screen content too), every (all options of all lists), clip (of a frame walked alone),
// focus (whether this document may claim the focus).
function observe(options) {
  forgetAwaited();
  nextId = Math.max(nextId, options.next);
  prune();
  pullNotes(document);
  tableKinds = new WeakMap();
  charts = new WeakMap();
  const root = rootElementOf(document);
  const scroller = scrollerOf(document) || root;
  walk = {
    out: [], run: null, full: options.full, every: options.every, frames: [], suspects: [], faults: [],
    later: [],
    focus: options.focus ? focusedElement(document) : null, active: null,
  };
  // The item of a list that a field with the focus has under its own cursor.
  if (walk.focus) walk.active = referenced(walk.focus, 'aria-activedescendant')[0] || null;
  const clip = options.clip || { x1: 0, y1: 0, x2: innerWidth, y2: innerHeight };
  if (root) walkDocument(document, { x: 0, y: 0, clip, owner: null, parent: null }, 1);
  const result = {
    records: withIds(walk.out.join('\x1e'), walk.later), next: nextId, frames: walk.frames,
    suspects: walk.suspects, faults: walk.faults,
    title: clean(titleOf(document)).slice(0, LONG_NAME), url: location.href,
    scroll: scrollOf(scroller),
    viewport: { width: innerWidth, height: innerHeight },
  };
  walk = null;
  return result;
}
