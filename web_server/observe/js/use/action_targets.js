// Part of the walker: which elements an action would reach, so that a person or a rule can approve it.
/* global documentOf, getter, safeForm, tagOf, typeOf -- safe.js */
/* global composedParent, contains, idOf -- dom.js */
/* global CONTROLS, deepElementFromPoint -- hit_test.js */
/* global pullRecords, recorded -- page_records.js */
/* global INTERACTIVE_ROLES, attribute, roleOf, shownRole -- roles.js */
/* global isEditable -- states.js */
/* global fillsPage -- hints.js */
/* global LONG_NAME -- walk.js */
/* global focusedElement -- page.js */
/* global contentOrigin, elementOf, shownName -- target.js */
/* exported reachedByAccessKey, reachedFocus, reachedNode, reachedPoint, takesKeys */

const innerTextOf = getter(HTMLElement.prototype, 'innerText');
const textContentOf = getter(Node.prototype, 'textContent');
const MAX_VISIBLE_TEXT = 2000;
const MAX_ANCESTORS = 60;

// The displayed text of an element, whatever its accessible name is.
function visibleText(element) {
  if (tagOf(element) === 'input') return /^(submit|button|reset)$/.test(element.type) ? element.value : '';
  if (/^(body|html|textarea|select|iframe|frame)$/.test(tagOf(element))) return '';
  if (tagOf(element) !== 'form' && isEditable(element)) return '';
  const text = element instanceof HTMLElement ? innerTextOf(element) : textContentOf(element);
  return text.length <= MAX_VISIBLE_TEXT ? text
    : `${text.slice(0, MAX_VISIBLE_TEXT / 2)} ... ${text.slice(-MAX_VISIBLE_TEXT / 2)}`;
}

function describePart(element) {
  if (/^(body|html)$/.test(tagOf(element))) return { role: 'page', name: '', text: '' };
  const safe = tagOf(element) === 'form' ? safeForm(element) : element;
  const role = roleOf(safe);
  const name = safe === element ? shownName(element, role) : attribute(safe, 'aria-label');
  const words = visibleText(element);
  const relevant = actsOnClick(element) || words.length <= LONG_NAME;
  return { role: shownRole(safe, role), name, text: relevant ? words : '' };
}

// Whether a click on content of this element activates the element.
function actsOnClick(element) {
  if (/^(body|html|form)$/.test(tagOf(element))) return false;
  if (INTERACTIVE_ROLES.has(roleOf(element)) || Element.prototype.matches.call(element, CONTROLS)) return true;
  const listens = recorded.click.has(element) || Element.prototype.hasAttribute.call(element, 'onclick');
  return listens && !fillsPage(element);
}

// An element and those of its ancestors, up to `stop`, that a click on it also activates.
function reachedFrom(element, stop = null) {
  pullRecords(document);
  const parts = [];
  let steps = 0;
  for (let e = element; e && e !== stop && typeOf(e) === 1 && steps < MAX_ANCESTORS; e = composedParent(e)) {
    if (!steps++ && !stop || actsOnClick(e)) parts.push(describePart(e));
    const control = tagOf(e) === 'label' && e.control;
    if (control && !contains(control, element)) parts.push(describePart(control));
  }
  const silent = !parts.some((part) => part.name.trim() || part.text.trim());
  for (let e = element; silent && !stop && e && typeOf(e) === 1; e = composedParent(e)) {
    const text = visibleText(e).trim();
    if (!text) continue;
    if (text.length <= LONG_NAME) parts.push({ role: roleOf(e), name: '', text });
    break;
  }
  return parts;
}

// The button by which Enter in an element submits its form; else the form's URL; null without a form.
const FIELDS = 'input,select,textarea';
function submittedBy(element) {
  const field = 'form' in element ? element : element.control
    || Element.prototype.querySelector.call(element, FIELDS);
  const form = field && field.form || Element.prototype.closest.call(element, 'form');
  if (!form || field && /^(button|submit|reset|image)$/.test(field.type)) return null;
  const root = Node.prototype.getRootNode.call(form);
  const kind = typeOf(root) === 9 ? Document : DocumentFragment;
  const all = kind.prototype.querySelectorAll.call(root, 'button,input[type=submit],input[type=image]');
  for (const button of all) {
    if (button.form === form && /^(submit|image)$/.test(button.type)) return describePart(button);
  }
  const action = Element.prototype.getAttribute.call(form, 'action') || '';
  try {
    return { role: 'form', name: '', text: new URL(action, location.href).href };
  } catch {
    return { role: 'form', name: '', text: action };
  }
}

const SECRET_FIELDS = /password|one-time-code|cc-/;
function isSecretField(element) {
  const field = element.control || element;
  return field.type === 'password' || SECRET_FIELDS.test(attribute(field, 'autocomplete'));
}

function reachedFacts(element, parts) {
  return { parts, submits: submittedBy(element), secret: isSecretField(element),
    url: documentOf(element).URL };
}

// A document of another origin has its own walker: the result names the frame element by its id.
function isRemoteFrame(element) {
  return /^(iframe|frame|object|embed)$/.test(tagOf(element)) && !element.contentDocument;
}

function reachedNode(id) {
  const element = elementOf(id);
  return element && reachedFacts(element, reachedFrom(element));
}

// What a click at a point reaches; only up to element `id` if it is given.
function reachedPoint(x, y, id) {
  let doc = document;
  let hit = deepElementFromPoint(doc, x, y);
  while (hit && /^(iframe|frame)$/.test(tagOf(hit)) && hit.contentDocument) {
    const inner = contentOrigin(hit);
    x -= inner.x;
    y -= inner.y;
    doc = hit.contentDocument;
    const deeper = deepElementFromPoint(doc, x, y);
    if (!deeper) break;
    hit = deeper;
  }
  if (!hit) return null;
  const element = id ? elementOf(id) : null;
  if (isRemoteFrame(hit)) {
    const inner = contentOrigin(hit);
    return { frame: idOf(hit), x: x - inner.x, y: y - inner.y };
  }
  if (!element) return reachedFacts(hit, reachedFrom(hit));
  return contains(element, hit) ? reachedFacts(hit, reachedFrom(hit, element)) : null;
}

function reachedFocus() {
  const element = focusedElement(document);
  if (!element) return null;
  return isRemoteFrame(element) ? { frame: idOf(element) } : reachedFacts(element, [describePart(element)]);
}

// Whether the focus is in this element, or on an element around it.
function takesKeys(id) {
  const named = elementOf(id);
  const element = named && tagOf(named) === 'label' && named.control || named;
  const focus = focusedElement(document);
  return Boolean(element && focus && (contains(element, focus) || contains(focus, element)));
}

// The elements that a key pressed with Alt activates.
function reachedByAccessKey(key) {
  const parts = [];
  for (const element of Document.prototype.querySelectorAll.call(document, '[accesskey]')) {
    const keys = attribute(element, 'accesskey').toLowerCase().split(/\s+/);
    if (keys.includes(key.toLowerCase())) parts.push(describePart(element));
  }
  return parts;
}
