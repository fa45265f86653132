// Isolated world: what the script in the page's own world has noted; see notes.js.
const noted = { click: new WeakSet(), hover: new WeakSet(), drag: new WeakSet() };

// What custom elements tell the browser alone, by the names of the attributes that would say it.
const untold = new WeakMap();
let anyUntold = false;
function innerAttributes(text) {
  const found = { __proto__: null };
  for (const pair of text.split('\x1e')) {
    const [name, value] = pair.split('\x1f');
    if (value) found[name.replace(/^aria/, 'aria-').toLowerCase()] = value;
  }
  return found;
}

// Ask the page's own world which elements got listeners, for its closed shadow roots, and for what
// its custom elements tell of themselves.
function pullNotes(doc) {
  let text = '';
  const hear = (event) => {
    if (!event.submitter) text = event.data || '';
    else {
      untold.set(event.submitter, innerAttributes(text));
      anyUntold = true;
    }
  };
  const take = (event) => {
    const kind = event.type.slice(SECRET.length);
    const nodes = event.submitter ? [event.submitter]
      : event.getTargetRanges().map((range) => range.startContainer);
    for (const node of nodes) {
      if (kind !== 'closed') {
        noted[kind].add(node);
        continue;
      }
      const root = node.getRootNode();
      if (root.host) adopt(root);
    }
  };
  const kinds = ['click', 'hover', 'drag', 'closed'];
  for (const kind of kinds) listen(doc, SECRET + kind, take);
  listen(doc, SECRET + 'inner', hear);
  dispatch(doc, new Event(SECRET + 'q'));
  unlisten(doc, SECRET + 'inner', hear);
  for (const kind of kinds) unlisten(doc, SECRET + kind, take);
}
