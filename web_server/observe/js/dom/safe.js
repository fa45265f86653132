// Part of the walker: access to nodes that a page cannot clobber. A form control or a named element
// hides the property of the same name of its form or document (`<input name="parentNode">`), also in
// an isolated world. So forms and documents are read through the getters of the prototypes.
/* exported activeElementOf, bodyOf, dispatch, documentOf, elementAt, getter, listen, nextElementOf, nextOf */
/* exported parentOf, rootElementOf, safeForm, scrollerOf, slotOf, tagOf, titleOf, typeOf, unlisten, viewOf */

function getter(prototype, name) {
  const get = Object.getOwnPropertyDescriptor(prototype, name).get;
  return (node) => get.call(node);
}

const tagOf = getter(Element.prototype, 'localName');
const parentOf = getter(Node.prototype, 'parentNode');
const nextOf = getter(Node.prototype, 'nextSibling');
const nextElementOf = getter(Element.prototype, 'nextElementSibling');
const childNodesOf = getter(Node.prototype, 'childNodes');
const typeOf = getter(Node.prototype, 'nodeType');
const documentOf = getter(Node.prototype, 'ownerDocument');
const viewOfDocument = getter(Document.prototype, 'defaultView');
const rootElementOf = getter(Document.prototype, 'documentElement');
const bodyOf = getter(Document.prototype, 'body');
const scrollerOf = getter(Document.prototype, 'scrollingElement');
const activeElementOf = getter(Document.prototype, 'activeElement');
const titleOf = getter(Document.prototype, 'title');
const slotOf = getter(Element.prototype, 'assignedSlot');

function viewOf(node) {
  return viewOfDocument(documentOf(node));
}

function listen(doc, type, listener) {
  EventTarget.prototype.addEventListener.call(doc, type, listener);
}

function unlisten(doc, type, listener) {
  EventTarget.prototype.removeEventListener.call(doc, type, listener);
}

function dispatch(doc, event) {
  EventTarget.prototype.dispatchEvent.call(doc, event);
}

function elementAt(doc, x, y) {
  return Document.prototype.elementFromPoint.call(doc, x, y);
}

// The properties of a form that the walk reads, in a plain object.
function safeForm(form) {
  const proto = Element.prototype;
  return {
    nodeType: 1, localName: 'form', inert: false, parentElement: parentOf(form), draggable: false,
    tabIndex: -1, labels: null, isContentEditable: false,
    scrollHeight: 0, clientHeight: 0, scrollWidth: 0, clientWidth: 0,
    ownerDocument: documentOf(form), childNodes: childNodesOf(form),
    getAttribute: (name) => proto.getAttribute.call(form, name),
    hasAttribute: (name) => proto.hasAttribute.call(form, name),
    getRootNode: () => Node.prototype.getRootNode.call(form),
  };
}
