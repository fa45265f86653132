// Part of the walker: `observe`, the walk over a whole document with facts about the page.
/* global activeElementOf, bodyOf, listen, rootElementOf, scrollerOf, titleOf, unlisten -- safe.js */
/* global nextId:writable, prune, shadowOf -- dom.js */
/* global forgetVisibility -- visibility.js */
/* global pullRecords -- page_records.js */
/* global forgetTables -- tables.js */
/* global referenced -- names.js */
/* global forgetCharts -- hints.js */
/* global forgetColors -- colors.js */
/* global fillIds -- covers.js */
/* global flushText -- text.js */
/* global LONG_NAME, clean, visit, walk:writable -- walk.js */
/* global ancestorsOfOutOfFlow -- offscreen.js */
/* exported focusedElement, observe, observeWhen, walkDocument */

function walkDocument(doc, frame, depth) {
  const root = rootElementOf(doc);
  const style = getComputedStyle(root);
  const clip = frame.clip;
  frame.outOfFlow = ancestorsOfOutOfFlow(doc);
  const context = {
    depth, clip, outer: clip, frame, style, inView: true, entire: false, phrase: false, mute: false, row: null,
    ariaHidden: false, invisible: false, pointer: false, inert: false, faded: false,
    interactive: false, struck: false, message: false,
  };
  visit(root, context);
  flushText();
}

// The focused element, also inside shadow trees and frames of the same origin; null for the body.
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

// Observes when an event of this type arrives, which settle.js dispatches once the page is quiet. It
// cancels the event to confirm that. Resolves with null if another observation starts before.
let cancelAwaited = null;
function observeWhen(type, options) {
  cancelObserveWhen();
  return new Promise((resolve, reject) => {
    const onEvent = (event) => {
      cancelAwaited = null;
      unlisten(document, type, onEvent);
      event.preventDefault();
      try {
        resolve(observe(options));
      } catch (error) {
        reject(error);
      }
    };
    cancelAwaited = () => {
      cancelAwaited = null;
      unlisten(document, type, onEvent);
      resolve(null);
    };
    listen(document, type, onEvent);
  });
}

function cancelObserveWhen() {
  if (cancelAwaited) cancelAwaited();
}

// The scroll position, and how much of the page lies beyond each side of the viewport, in pixels.
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

// Options: `next` (first free id), `full` (include content out of view), `allOptions` (all options of all
// lists), `clip` (visible area of a frame that is walked separately), `focus` (whether the focus may be
// in this document).
function observe(options) {
  cancelObserveWhen();
  nextId = Math.max(nextId, options.next);
  prune();
  pullRecords(document);
  forgetTables();
  forgetCharts();
  forgetColors();
  forgetVisibility();
  const root = rootElementOf(document);
  const scroller = scrollerOf(document) || root;
  walk = {
    out: [], run: null, full: options.full, allOptions: options.allOptions, frames: [], possibleHosts: [], failures: [],
    unnumbered: [], marks: '',
    focus: options.focus ? focusedElement(document) : null, active: null,
  };
  // The list item that the focused field marks as active.
  if (walk.focus) walk.active = referenced(walk.focus, 'aria-activedescendant')[0] || null;
  const clip = options.clip || { x1: 0, y1: 0, x2: innerWidth, y2: innerHeight };
  if (root) walkDocument(document, { x: 0, y: 0, clip, owner: null, parent: null }, 1);
  const result = {
    records: fillIds(walk.out.join('\x1e'), walk.unnumbered), next: nextId, frames: walk.frames,
    possibleHosts: walk.possibleHosts, failures: walk.failures,
    title: clean(titleOf(document)).slice(0, LONG_NAME), url: location.href,
    scroll: scrollOf(scroller),
    viewport: { width: innerWidth, height: innerHeight },
  };
  walk = null;
  return result;
}
