// Part of the walker: from an id back to the element, and where the pointer reaches it. Provides
// `ckObserver`, the functions that the server calls.
/* global bodyOf, dispatch, documentOf, rootElementOf, viewOf -- safe.js */
/* global adopt, composedParent, contains, idOf, isLive, nodesById, shadowOf -- dom.js */
/* global clipOf, pictureOfArea, rangeOf, rectsOf -- geometry.js */
/* global deepElementFromPoint, pointOf, reaches -- hit_test.js */
/* global roleOf, shownRole -- roles.js */
/* global labelText, nameOf, textOf -- names.js */
/* global isDisabled, isEditable, isEditableRoot, plain, statesOf -- states.js */
/* global describe, describeCover, ignoresPointer -- covers.js */
/* global LONG_NAME, clean -- walk.js */
/* global namedByText, phraseText -- interactive.js */
/* global observe, observeWhen -- page.js */
/* global readableHtml -- readable_html.js */
/* global ensureSelected, locateText -- text_search.js */
/* global reachedByAccessKey, reachedFocus, reachedNode, reachedPoint, takesKeys -- action_targets.js */
/* global describeFocus, usage -- usage.js */
/* global chooseOptions, chosenLabels, fieldContent, focusEditor, focusElement -- field_actions.js */
/* global selectContent, setFieldValue, suggestedValue -- field_actions.js */
/* global fieldValue, selectPart -- reading_uses.js */
/* global layoutTables, tableRows -- table_rows.js */
/* global acceptsDrop, expectDrop, hitTest, scrollBox, sliderThumb -- pointer_actions.js */
/* exported contentOrigin, elementOf, frameOffset, isInert, shownName, throughFrames */

function nodeOf(id) {
  if (id === 1 || id === 2) return bodyOf(document) || rootElementOf(document);
  const node = nodesById.get(id);
  return node && isLive(node) ? node : null;
}

function elementOf(id) {
  const node = nodeOf(id);
  return node && (node.nodeType === 1 ? node : composedParent(node));
}

// The origin of the document that contains `node`, in the document of this walker.
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

// [left, top, width, height] of a node, in the document of this walker.
function placeOf(id) {
  const node = nodeOf(id);
  if (!node) return null;
  const rect = node.nodeType === 1 ? node.getBoundingClientRect() : rangeOf(node).getBoundingClientRect();
  const offset = frameOffset(node);
  return [rect.left + offset.x, rect.top + offset.y, rect.width, rect.height];
}

// The origin of a frame's content, in the document of this walker.
function originOf(id) {
  const owner = elementOf(id);
  if (!owner) return null;
  const inner = contentOrigin(owner);
  const offset = frameOffset(owner);
  return { x: inner.x + offset.x, y: inner.y + offset.y };
}

// Whether a point in the document of `view` is visible and not covered in the documents around it.
// Returns the point in the document of this walker.
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
  return name || !namedByText(element, role) || isEditableRoot(element) ? name : phraseText(element, role);
}

function isInert(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) if (e.inert === true) return true;
  return false;
}

// Role, name and states of an element as its line shows them; null if it left the page.
function elementState(id) {
  const element = nodeOf(id);
  if (!element || element.nodeType !== 1) return null;
  const role = roleOf(element);
  const name = shownName(element, role);
  const states = statesOf(element, role, name, false);
  if (isEditableRoot(element)) states.push('value: ' + plain(textOf(element, role)));
  return { role: shownRole(element, role), name: clean(name).slice(0, LONG_NAME), states };
}

// Facts about an element: role, name, state, the point to click and what covers it. null if it left
// the page.
function resolve(id) {
  const node = nodeOf(id);
  const element = elementOf(id);
  if (!element) return null;
  const role = node === element ? roleOf(element) : 'StaticText';
  const facts = {
    role: id === 1 ? 'RootWebArea' : shownRole(element, role),
    name: clean(node === element ? shownName(element, role) : node.data).slice(0, LONG_NAME),
    tag: element.localName, input_type: element.localName === 'input' ? element.type : '',
    disabled: isDisabled(element) || isInert(element), editable: isEditable(element),
    framed: element.ownerDocument !== document,
    x: 0, y: 0, in_viewport: false, covered_by: null, passes: false,
  };
  const listed = /^(option|optgroup)$/.test(element.localName) && !element.getClientRects().length;
  const shown = listed && element.closest('select') || node;
  const clip = clipOf(pictureOfArea(element) || shown);
  facts.passes = ignoresPointer(element, role);
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

// The same for a point in a frame that has its own walker: its position and cover in this document.
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

// Records the target of the next mouse press in the document of an element; missedPress reads it.
let pressedOn = null;

function expectPress(id) {
  const element = elementOf(id);
  pressedOn = null;
  if (!element) return;
  EventTarget.prototype.addEventListener.call(documentOf(element), 'mousedown', (event) => {
    pressedOn = event.composedPath()[0];
  }, { capture: true, once: true });
}

// Describes what was pressed instead of an element; null if the press reached it.
function missedPress(id) {
  const element = elementOf(id);
  if (!pressedOn) return element ? 'nothing' : null;
  // Events from inside a closed shadow tree name only its host.
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

// Sends a node to receive_node.js in the page's own world, where Playwright gets a handle of it.
function sendNode(id, type) {
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

// Ids of the frame elements between this document and that of a node, outermost first.
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
  acceptsDrop, chooseOptions, chosenLabels, expectDrop, fieldContent, focusEditor, focusElement,
  fieldValue, hitTest, scrollBox, selectContent, selectPart, setFieldValue, sliderThumb, suggestedValue, tableRows,
};

// Returns {value} with what the function returns; null if the element is not on the page.
function callWithElement(id, name, ...rest) {
  const element = elementOf(id);
  return element && { value: elementActions[name](element, ...rest) };
}

globalThis.ckObserver = {
  adopt, observe, observeWhen, readableHtml, frameOwners, resolve, resolveInFrame, scrollToNode, sendNode,
  elementOf, elementState, expectPress, missedPress, placeOf, originOf, locateText, ensureSelected, usage,
  describeFocus, reachedNode, reachedPoint, reachedFocus, reachedByAccessKey, takesKeys, callWithElement,
  layoutTables,
};
