// Isolated world: from an id back to the element, and where to hit it.
function nodeOf(id) {
  if (id === 1 || id === 2) return bodyOf(document) || rootElementOf(document);
  const node = nodesById.get(id);
  return node && isLive(node) ? node : null;
}

function elementOf(id) {
  const node = nodeOf(id);
  return node && (node.nodeType === 1 ? node : composedParent(node));
}

// Position of the content of the frame that holds `node`, in this world's own document.
function frameOffset(node) {
  let x = 0;
  let y = 0;
  for (let view = viewOf(node); view !== window;) {
    const owner = view.frameElement;
    const inner = contentOrigin(owner);
    x += inner.x;
    y += inner.y;
    view = viewOf(owner);
  }
  return { x, y };
}

function contentOrigin(frame) {
  const rect = frame.getBoundingClientRect();
  const style = getComputedStyle(frame);
  return {
    x: rect.left + frame.clientLeft + parseFloat(style.paddingLeft),
    y: rect.top + frame.clientTop + parseFloat(style.paddingTop),
  };
}

// Left, top, width and height of a node, in this world's own document.
function placeOf(id) {
  const node = nodeOf(id);
  if (!node) return null;
  const rect = node.nodeType === 1 ? node.getBoundingClientRect() : rangeOf(node).getBoundingClientRect();
  const offset = frameOffset(node);
  return [rect.left + offset.x, rect.top + offset.y, rect.width, rect.height];
}

function rangeOf(node) {
  const range = new Range();
  range.selectNodeContents(node);
  return range;
}

// Where the content of a frame begins, in this world's own document.
function originOf(id) {
  const owner = elementOf(id);
  if (!owner) return null;
  const inner = contentOrigin(owner);
  const offset = frameOffset(owner);
  return { x: inner.x + offset.x, y: inner.y + offset.y };
}

// Is the point, given in the document of `view`, shown and reachable through the documents around?
function throughFrames(view, x, y) {
  while (view !== window) {
    const owner = view.frameElement;
    const inner = contentOrigin(owner);
    x += inner.x;
    y += inner.y;
    const doc = owner.ownerDocument;
    const clip = clipOf(owner);
    if (!clip || x < clip.x1 || x >= clip.x2 || y < clip.y1 || y >= clip.y2) {
      return { x, y, inView: false, cover: null };
    }
    const hit = deepElementFromPoint(doc, x, y);
    if (hit !== owner) return { x, y, inView: true, cover: hit };
    view = viewOf(owner);
  }
  return { x, y, inView: true, cover: null };
}

function shownName(element, role) {
  if (role === 'LabelText') return labelText(element);
  const name = nameOf(element, role);
  return name || !takesText(element, role) || isEditableRoot(element) ? name : phraseName(element, role);
}

function isInert(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) if (e.inert === true) return true;
  return false;
}

// Where an element is and what the pointer would meet there. null: no such element any more.
function resolve(id) {
  const node = nodeOf(id);
  const element = elementOf(id);
  if (!element) return null;
  const role = node === element ? roleOf(element) : 'StaticText';
  const facts = {
    role: id === 1 ? 'RootWebArea' : shownRole(element, role),
    name: clean(node === element ? shownName(element, role) : node.data).slice(0, LONG_NAME),
    tag: element.localName, input_type: element.localName === 'input' ? element.type : '',
    disabled: isDisabled(element) || isInert(element), editable: isEditable(element), framed: element.ownerDocument !== document,
    x: 0, y: 0, in_viewport: false, covered_by: null, passes: false,
  };
  const listed = /^(option|optgroup)$/.test(element.localName) && !element.getClientRects().length;
  const shown = listed && element.closest('select') || node;
  const clip = clipOf(pictureOfArea(element) || shown);
  facts.passes = letsThrough(element, role);
  const point = id === 1 || id === 2 ? { x: innerWidth / 2, y: innerHeight / 2, hit: null }
    : clip && pointOf(shown, clip);
  if (point) {
    const through = throughFrames(viewOf(element), point.x, point.y);
    const cover = point.hit || through.cover;
    Object.assign(facts, { x: through.x, y: through.y, in_viewport: through.inView,
      covered_by: cover ? describeCover(cover, element) : null });
    return facts;
  }
  const rect = rectsOf(shown)[0];
  if (rect) {
    const offset = frameOffset(element);
    facts.x = rect.left + rect.width / 2 + offset.x;
    facts.y = rect.top + rect.height / 2 + offset.y;
  }
  return facts;
}

// The same question for a point inside a frame that is walked by itself: seen from around it.
function resolveInFrame(id, x, y) {
  const owner = elementOf(id);
  if (!owner) return null;
  const inner = contentOrigin(owner);
  const clip = clipOf(owner);
  x += inner.x;
  y += inner.y;
  if (!clip || x < clip.x1 || x >= clip.x2 || y < clip.y1 || y >= clip.y2) {
    return { x, y, in_viewport: false, covered_by: null };
  }
  const hit = deepElementFromPoint(owner.ownerDocument, x, y);
  if (hit !== owner) return { x, y, in_viewport: true, covered_by: hit ? describeCover(hit, owner) : null };
  const through = throughFrames(viewOf(owner), x, y);
  return { x: through.x, y: through.y, in_viewport: through.inView,
    covered_by: through.cover ? describeCover(through.cover, owner) : null };
}

// What a button of the mouse is pressed on next, in the document of an element.
let pressedOn = null;
function expectPress(id) {
  const element = elementOf(id);
  pressedOn = null;
  if (!element) return;
  EventTarget.prototype.addEventListener.call(documentOf(element), 'mousedown', (event) => {
    pressedOn = event.composedPath()[0];
  }, { capture: true, once: true });
}

function missedPress(id) {
  const element = elementOf(id);
  if (!pressedOn) return element ? 'nothing' : null;
  // Of what is inside a closed shadow tree only the host is told.
  const within = element && shadowOf(pressedOn) && contains(pressedOn, element);
  if (!element || reaches(element, pressedOn) || within) return null;
  return describe(pressedOn) || 'the page';
}

function scrollToNode(id) {
  const element = elementOf(id);
  if (!element) return false;
  const shown = element.localName === 'option' && element.closest('select')
    || pictureOfArea(element) || element;
  shown.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  return true;
}

// Hands a node to a listener in the page's own world, where the browser library takes it over.
function handOver(id, type) {
  const element = elementOf(id);
  if (!element) return false;
  if (element.getRootNode().nodeType === 11 && !('ownerSVGElement' in element)) {
    dispatch(documentOf(element), new SubmitEvent(type, { submitter: element }));
  } else {
    const range = new StaticRange({
      startContainer: element, startOffset: 0, endContainer: element, endOffset: 0,
    });
    dispatch(documentOf(element), new InputEvent(type, { targetRanges: [range] }));
  }
  return true;
}

// The frame elements of the same origin between this document and a node, outermost first.
function frameOwners(id) {
  const node = nodeOf(id);
  const owners = [];
  for (let view = node && viewOf(node); view && view !== window;) {
    owners.unshift(idOf(view.frameElement));
    view = viewOf(view.frameElement);
  }
  return owners;
}

// Functions for actions, which get an element first; see field_actions.js and pointer_actions.js.
const elementActions = {
  __proto__: null,
  acceptsDrop, chooseOptions, chosenLabels, expectDrop, fieldContent, focusEditor, focusElement, hitTest,
  scrollBox, selectContent, setFieldValue, sliderThumb, suggestedValue,
};

// Returns {value} with what the function returns; null if the element is not on the page.
function callWithElement(id, name, ...rest) {
  const element = elementOf(id);
  return element && { value: elementActions[name](element, ...rest) };
}

globalThis.ckObserver = {
  adopt, observe, observeWhen, readable, frameOwners, resolve, resolveInFrame, scrollToNode, handOver,
  elementOf, expectPress, missedPress, placeOf, originOf, quote, quoteSelected, usage, focusFacts,
  reachedNode, reachedPoint, reachedFocus, reachedByAccessKey, takesKeys, callWithElement,
};
