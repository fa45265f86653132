// Runs in every frame, in the page's own world, before the page's scripts. Records which elements get
// listeners for clicks, hovering and dragging, which closed shadow roots are attached, and which roles
// and states custom elements set by ElementInternals. page_records.js asks for them by events whose
// names contain the secret `SECRET`. The functions that this file replaces print as native code.
/* global SECRET */
/* exported apply, listen, replaceMethod */

const apply = Reflect.apply;
const kinds = Object.assign(Object.create(null), {
  click: 'click', mousedown: 'click', mouseup: 'click', pointerdown: 'click', pointerup: 'click',
  dblclick: 'click', touchstart: 'click', touchend: 'click', contextmenu: 'click',
  mouseenter: 'hover', mouseover: 'hover', pointerenter: 'hover', pointerover: 'hover',
  dragstart: 'drag',
});
// The page may replace the methods and iterators of arrays, so lists have no prototype.
const list = () => ({ __proto__: null, length: 0 });
const pending = { __proto__: null, click: list(), hover: list(), drag: list(), closed: list() };
const kindNames = ['click', 'hover', 'drag', 'closed'];
const define = Object.defineProperty;
const iterator = Symbol.iterator;
const { WeakRef: Ref, WeakMap: Weak, StaticRange: Span } = globalThis;
const { InputEvent: Carrier, SubmitEvent: Submit, ShadowRoot: Shadow } = globalThis;
const rootOf = Node.prototype.getRootNode;
const queryAll = DocumentFragment.prototype.querySelectorAll;
const deref = Ref.prototype.deref;
const listen = EventTarget.prototype.addEventListener;
const dispatch = EventTarget.prototype.dispatchEvent;
const nodeType = Object.getOwnPropertyDescriptor(Node.prototype, 'nodeType').get;
const weakGet = Weak.prototype.get;
const weakSet = Weak.prototype.set;
const doc = document;
const natives = new Weak();

const send = (event) => apply(dispatch, doc, [event]);

// A range cannot start inside a shadow tree, so such nodes are sent as the submitter of a submit event.
// A closed root is represented by an element inside it; an empty one is sent later.
const sendShadowed = (node, kind) => {
  const nodes = kind === 'closed' ? apply(queryAll, node, ['*']) : [node];
  for (let i = 0; i < nodes.length && i < 20; i++) {
    try {
      send(new Submit(SECRET + kind, { submitter: nodes[i] }));
      return true;
    } catch {
      // Only HTML elements can be submitters: try the next.
    }
  }
  return false;
};

// An event reads its ranges by their iterator, which the page may have replaced.
const iterable = (items) => define(items, iterator, {
  value: () => {
    let i = 0;
    return {
      __proto__: null,
      next: () => ({ __proto__: null, done: i >= items.length, value: items[i++] }),
    };
  },
});

// Roles and states of an element are sent in two events: first the pairs as text, then the element.
const inner = { __proto__: null, elements: list(), of: new Weak() };
const properties = list();
const internals = globalThis.ElementInternals ? ElementInternals.prototype : {};
for (const name of Object.getOwnPropertyNames(internals)) {
  const get = Object.getOwnPropertyDescriptor(internals, name).get;
  if (get && (name === 'role' || name.startsWith('aria') && !/Elements?$/.test(name))) {
    properties[properties.length++] = { __proto__: null, name, get };
  }
}
const sendInternals = () => {
  const live = list();
  for (let i = 0; i < inner.elements.length; i++) {
    const entry = inner.elements[i];
    const node = apply(deref, entry.reference, []);
    if (!node) continue;
    live[live.length++] = entry;
    let text = '';
    for (let k = 0; k < properties.length; k++) {
      const value = apply(properties[k].get, apply(weakGet, inner.of, [node]), []);
      if (value !== null) text += `${properties[k].name}\x1f${value}\x1e`;
    }
    if (text === '' && entry.text === '') continue;
    entry.text = text;
    send(new Carrier(SECRET + 'inner', { data: text }));
    send(new Submit(SECRET + 'inner', { submitter: node }));
  }
  inner.elements = live;
};

// Answers page_records.js: one event for each kind, whose ranges start at the nodes, and one event for
// each node inside a shadow tree.
const answer = () => {
  for (let k = 0; k < 4; k++) {
    const kind = kindNames[k];
    const ranges = list();
    const waiting = list();
    for (let i = 0; i < pending[kind].length; i++) {
      const reference = pending[kind][i];
      const node = apply(deref, reference, []);
      if (!node) continue;
      if (apply(rootOf, node, []) instanceof Shadow) {
        if (!sendShadowed(node, kind)) waiting[waiting.length++] = reference;
      } else {
        ranges[ranges.length++] = new Span({
          startContainer: node, startOffset: 0, endContainer: node, endOffset: 0,
        });
      }
    }
    pending[kind] = kind === 'closed' ? waiting : list();
    if (ranges.length) send(new Carrier(SECRET + kind, { targetRanges: iterable(ranges) }));
  }
  sendInternals();
};

const note = (node, kind) => {
  const waiting = pending[kind];
  waiting[waiting.length++] = new Ref(node);
  // document.open() removes the document's listeners, so add this one again.
  apply(listen, doc, [SECRET + 'q', answer]);
};

const noteIfNode = (target, kind) => {
  try {
    if (apply(nodeType, target, []) === 1) note(target, kind);
  } catch {
    // Not a node: a window, a request, a signal.
  }
};

const disguise = (native, handler) => {
  const proxy = new Proxy(native, { apply: handler });
  apply(weakSet, natives, [proxy, native]);
  return proxy;
};

const replaceMethod = (holder, name, handler) => {
  const descriptor = Object.getOwnPropertyDescriptor(holder, name);
  if (!descriptor || !descriptor.value) return;
  descriptor.value = disguise(descriptor.value, handler);
  Object.defineProperty(holder, name, descriptor);
};

replaceMethod(EventTarget.prototype, 'addEventListener', (native, self, args) => {
  const result = apply(native, self, args);
  const kind = typeof args[0] === 'string' ? kinds[args[0]] : undefined;
  if (kind && args[1] && self) noteIfNode(self, kind);
  return result;
});

replaceMethod(Element.prototype, 'attachShadow', (native, self, args) => {
  const root = apply(native, self, args);
  try {
    if (root.mode === 'closed') note(root, 'closed');
  } catch {
    // The page replaced the getter of `mode`: the root is not recorded.
  }
  return root;
});

replaceMethod(HTMLElement.prototype, 'attachInternals', (native, self, args) => {
  const made = apply(native, self, args);
  apply(weakSet, inner.of, [self, made]);
  const entry = { __proto__: null, reference: new Ref(self), text: '' };
  inner.elements[inner.elements.length++] = entry;
  apply(listen, doc, [SECRET + 'q', answer]);
  return made;
});

// The permission for writeText is denied, because a page could then write at any time. Instead, a user
// gesture lets it copy by an event, which settling notices.
const { Clipboard: ClipboardClass, Promise: NativePromise } = globalThis;
if (ClipboardClass) {
  const command = Document.prototype.execCommand;
  const unlisten = EventTarget.prototype.removeEventListener;
  const { preventDefault, stopPropagation } = Event.prototype;
  const dataOf = Object.getOwnPropertyDescriptor(ClipboardEvent.prototype, 'clipboardData').get;
  const setData = DataTransfer.prototype.setData;
  const resolved = NativePromise.resolve;
  replaceMethod(ClipboardClass.prototype, 'writeText', (native, self, args) => {
    if (args.length === 0) return apply(native, self, args);
    const text = `${args[0]}`;
    let done = false;
    const onCopy = (event) => {
      apply(preventDefault, event, []);
      apply(stopPropagation, event, []);
      apply(setData, apply(dataOf, event, []), ['text/plain', text]);
      done = true;
    };
    apply(listen, doc, ['copy', onCopy, true]);
    apply(command, doc, ['copy']);
    apply(unlisten, doc, ['copy', onCopy, true]);
    return done ? apply(resolved, NativePromise, []) : apply(native, self, [text]);
  });
}

for (const prototype of [HTMLElement.prototype, SVGElement.prototype]) {
  for (const type in kinds) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'on' + type);
    if (!descriptor || !descriptor.set) continue;
    descriptor.set = disguise(descriptor.set, (native, self, args) => {
      const result = apply(native, self, args);
      if (args[0]) noteIfNode(self, kinds[type]);
      return result;
    });
    Object.defineProperty(prototype, 'on' + type, descriptor);
  }
}

replaceMethod(Function.prototype, 'toString', (native, self, args) =>
  apply(native, apply(weakGet, natives, [self]) || self, args));

apply(listen, doc, [SECRET + 'q', answer]);
