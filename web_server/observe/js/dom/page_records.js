// Part of the walker: what page_recorder.js recorded in the page's own world.
/* global SECRET */
/* global dispatch, listen, unlisten -- safe.js */
/* global adopt -- dom.js */
/* exported anyInternals, internalAttributes, pullRecords, recorded */

const recorded = { click: new WeakSet(), hover: new WeakSet(), drag: new WeakSet() };

// Roles and states that custom elements set by ElementInternals: element -> {attribute name: value}.
const internalAttributes = new WeakMap();
let anyInternals = false;
function parseInternals(text) {
  const found = { __proto__: null };
  for (const pair of text.split('\x1e')) {
    const [name, value] = pair.split('\x1f');
    if (value) found[name.replace(/^aria/, 'aria-').toLowerCase()] = value;
  }
  return found;
}

// Asks page_recorder.js for its records since the last call: elements with listeners, closed shadow
// roots, ElementInternals.
function pullRecords(doc) {
  let text = '';
  const receiveInternals = (event) => {
    if (!event.submitter) text = event.data || '';
    else {
      internalAttributes.set(event.submitter, parseInternals(text));
      anyInternals = true;
    }
  };
  const receiveNodes = (event) => {
    const kind = event.type.slice(SECRET.length);
    const nodes = event.submitter ? [event.submitter]
      : event.getTargetRanges().map((range) => range.startContainer);
    for (const node of nodes) {
      if (kind !== 'closed') {
        recorded[kind].add(node);
        continue;
      }
      const root = node.getRootNode();
      if (root.host) adopt(root);
    }
  };
  const kinds = ['click', 'hover', 'drag', 'closed'];
  for (const kind of kinds) listen(doc, SECRET + kind, receiveNodes);
  listen(doc, SECRET + 'inner', receiveInternals);
  dispatch(doc, new Event(SECRET + 'q'));
  unlisten(doc, SECRET + 'inner', receiveInternals);
  for (const kind of kinds) unlisten(doc, SECRET + kind, receiveNodes);
}
