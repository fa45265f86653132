// Part of the walker: whether an action applies to an element, and to which part of it. An action calls
// `usage` before it touches the page. Except for `focusUse`, nothing here changes the page.
/* global parentOf -- safe.js */
/* global composedChildren, composedParent, contains, idOf, nextId:writable -- dom.js */
/* global attribute, roleOf, shownRole -- roles.js */
/* global isDisabled, isEditable, isEditableRoot -- states.js */
/* global clean -- walk.js */
/* global focusedElement -- page.js */
/* global elementOf, isInert, shownName -- target.js */
/* global tableUse, valueUse -- reading_uses.js */
/* exported describeFocus, isInvisible, isOn, isPage, isToggle, refused, textUse, toggleUse, usage */

const NO_TEXT = new Set('checkbox radio button submit reset image file hidden'.split(' '));
const SET_VALUE = new Set('date time datetime-local month week color range'.split(' '));
const PRESSABLE = 'a[href],area[href],button,summary,option,select,input,[role=button],[role=link],[role=checkbox],'
  + '[role=radio],[role=switch],[role=menuitem],[role=menuitemcheckbox],[role=menuitemradio],[role=option],'
  + '[role=tab],[role=treeitem]';
const PRESSABLE_ROLES = new Set(('button link checkbox radio switch menuitem menuitemcheckbox menuitemradio '
  + 'option tab treeitem DisclosureTriangle DisclosureTriangleGrouped').split(' '));
const TEXT_ROLES = new Set(['textbox', 'searchbox', 'spinbutton', 'gridcell']);
const LIST_ROLES = new Set('combobox listbox menu menubar tree treegrid radiogroup tablist'.split(' '));
const MAX_DESCENDANTS = 3000;
const MAX_LINE_HEIGHT = 80; // pixels; the height of a control with the words in it

const isField = (e) => e.localName === 'textarea' || e.localName === 'select'
  || e.localName === 'input' && !NO_TEXT.has(e.type) || isEditableRoot(e) || Boolean(e.editContext);
const isBox = (e) => e.localName === 'input' && /^(checkbox|radio)$/.test(e.type);
const isToggle = (e) => isBox(e) || /^(true|false|mixed)$/i.test(attribute(e, 'aria-checked'));
const isFileField = (e) => e.localName === 'input' && e.type === 'file';
const isSelect = (e) => e.localName === 'select';
const isSmall = (rect) => rect.width < 8 || rect.height < 8;
const isShown = (e) => e.checkVisibility({ visibilityProperty: true });
const isInvisible = (e) => isSmall(e.getBoundingClientRect()) || getComputedStyle(e).opacity === '0';

function descendants(element, test) {
  const found = [];
  const stack = [element];
  for (let seen = 0; stack.length && seen < MAX_DESCENDANTS; seen++) {
    const node = stack.pop();
    if (node !== element && test(node)) found.push(node);
    const children = composedChildren(node);
    for (let i = children.length - 1; i >= 0; i--) if (children[i].nodeType === 1) stack.push(children[i]);
  }
  return found;
}

function closestComposed(element, test) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) if (test(e)) return e;
  return null;
}

const isPage = (e) => e.localName === 'body' || e.localName === 'html';
const isPressable = (e) => e.matches(PRESSABLE) || PRESSABLE_ROLES.has(roleOf(e));

// The control of a label that is, or contains, the element.
function labelledBy(element) {
  const label = closestComposed(element, (e) => e.localName === 'label' || isPressable(e));
  return label && label.localName === 'label' ? label.control : null;
}

const refused = (why, fits = '', near = []) => ({ how: 'none', why, fits, near: near.slice(0, 5).map(idOf) });

// The visible element of an editor that receives keys by an invisible field; null for other fields.
function editorOf(field) {
  let editor = parentOf(field);
  while (editor && editor.nodeType === 1 && isSmall(editor.getBoundingClientRect())) editor = parentOf(editor);
  const proxy = isInvisible(field) || editor !== parentOf(field);
  return proxy && editor && editor.nodeType === 1 && !isPage(editor) ? editor : null;
}

function textUse(element) {
  if (isPage(element)) {
    const written = element.isContentEditable || element.ownerDocument.designMode === 'on';
    return written ? fieldUse(element) : refused('is the page', 'give the id of a field');
  }
  if (isEditable(element) && !isField(element) && element.isContentEditable) {
    return fieldUse(closestComposed(element, isEditableRoot) || element);
  }
  if (element.matches('input,textarea,select') || isField(element)) return fieldUse(element);
  if (element.localName === 'option') return refused('is an option', 'use select');
  const labelled = labelledBy(element);
  if (labelled && isField(labelled)) return fieldUse(labelled);
  const fields = descendants(element, isField);
  const seen = fields.filter((e) => isShown(e) && !isInvisible(e));
  const meant = seen.length ? seen : fields.filter(isShown);
  if (meant.length === 1) return fieldUse(meant[0]);
  if (meant.length) return refused(`holds ${meant.length} fields`, 'give the id of one', meant);
  if (labelled) return fieldUse(labelled);
  if (isPressable(element)) return refused(NO_FIELD, roleOf(element) === 'treeitem' ? CLICK_FIRST : '');
  return nearbyUse(element) || roleUse(element);
}

const NO_FIELD = 'is not a field that takes text';
const CLICK_FIRST = 'if a click turns it into a field, click it first';
const PRESS_ONLY = 'click it only if you mean to press it';

// The editor or field that an element belongs to, or covers.
function nearbyUse(element) {
  if (closestComposed(element, isPressable)) return refused('is part of a control that takes no text');
  let e = composedParent(element);
  for (let i = 0; e && e.nodeType === 1 && !isPage(e) && i < 12; i++, e = composedParent(e)) {
    const fields = descendants(e, isField).filter(isShown);
    if (!fields.length) continue;
    const [field] = fields;
    if (fields.length > 1) return null;
    if (field.localName === 'textarea' && contains(editorOf(field), element)) return fieldUse(field);
    const words = element.getBoundingClientRect();
    const box = field.getBoundingClientRect();
    const over = words.left < box.right && box.left < words.right && words.top < box.bottom && box.top < words.bottom;
    if (TEXT_ROLES.has(roleOf(element)) || e.offsetHeight > MAX_LINE_HEIGHT) return null;
    return over ? fieldUse(field) : refused(NO_FIELD, 'the field beside it is', [field]);
  }
  return null;
}

// Elements that take text only according to their role.
function roleUse(element) {
  const role = roleOf(element);
  if (role === 'slider') return refused(NO_FIELD, 'press the arrow keys on it, or drag it');
  if (role === 'Canvas') return refused('is a canvas', 'click the place in it, then use type_text');
  if (role === 'combobox') return refused(NO_FIELD, `choose with select; ${CLICK_FIRST}`);
  if (!TEXT_ROLES.has(role)) return refused(NO_FIELD, CLICK_FIRST);
  if (attribute(element, 'aria-readonly') === 'true') return refused('is read-only');
  if (role === 'gridcell' && descendants(element, isPressable).length) return refused(NO_FIELD);
  return { how: 'declared' };
}

function fieldUse(field) {
  const found = { id: idOf(field), how: 'field' };
  const tag = field.localName;
  if (isDisabled(field) || isInert(field)) return { ...found, how: 'none', why: 'is disabled', fits: '' };
  if (tag === 'select') return { ...found, how: 'select' };
  if (tag === 'input' && NO_TEXT.has(field.type)) {
    const fits = field.type === 'file' ? 'use upload' : isBox(field) ? 'use check or uncheck' : PRESS_ONLY;
    return { ...found, how: 'none', why: 'takes no text', fits };
  }
  const fixed = tag === 'input' && /^(range|color)$/.test(field.type);
  if (field.readOnly === true && !fixed || attribute(field, 'aria-readonly') === 'true') {
    return { ...found, how: 'none', why: 'is read-only',
      fits: 'click it first: a pop-up may open, or it may become editable' };
  }
  if (tag === 'input' && SET_VALUE.has(field.type)) return { ...found, how: 'value' };
  const proxy = (tag === 'textarea' || field.editContext) && editorOf(field);
  return { ...found, how: proxy ? 'editor' : 'field' };
}

// The checkbox, switch or toggle button that an element is or contains, and whether it is on.
function toggleUse(element) {
  const labelled = labelledBy(element);
  const all = isPage(element) ? [] : descendants(element, isToggle).filter((e) => isBox(e) || isShown(e));
  const own = isToggle(element) || /^(true|false|mixed)$/i.test(attribute(element, 'aria-pressed'));
  const box = own ? element : labelled && isToggle(labelled) ? labelled : all[0];
  if (!own && box !== labelled && all.length > 1) {
    return refused(`holds ${all.length} boxes`, 'give the id of one', all);
  }
  if (!box) {
    const accepted = 'check and uncheck need a check box, radio button, switch or toggle button';
    return refused('cannot be switched on or off', isPressable(element) ? `${accepted}; ${PRESS_ONLY}` : accepted);
  }
  const found = { how: 'box', id: idOf(box), on: isOn(box), radio: roleOf(box) === 'radio' };
  if (isDisabled(box) || isInert(box)) return { ...found, how: 'none', why: 'is disabled', fits: '' };
  if (attribute(box, 'aria-readonly') === 'true') return { ...found, how: 'none', why: 'is read-only', fits: '' };
  // A box without a size is displayed, and clicked, by the element around it.
  const rect = box.getBoundingClientRect();
  if (rect.width * rect.height === 0 && !box.labels?.length) delete found.id;
  return found;
}

function isOn(box) {
  if (isBox(box)) return box.checked;
  return (attribute(box, 'aria-checked') || attribute(box, 'aria-pressed')).toLowerCase() === 'true';
}

// The file field that an element is, contains or replaces.
function fileUse(element) {
  const labelled = labelledBy(element);
  const all = isPage(element) ? [] : descendants(element, isFileField);
  const own = isFileField(element) ? element : labelled && isFileField(labelled) ? labelled : all[0];
  if (all.length > 1 && own === all[0]) return refused(`holds ${all.length} file fields`, 'give the id of one', all);
  const field = own || !isPage(element) && fileFieldOf(element);
  if (!field) return { how: 'other', pressed: !!closestComposed(element, isPressable) };
  if (isDisabled(field) || isInert(field)) return { how: 'none', id: idOf(field), why: 'is disabled', fits: '' };
  return { how: 'file', id: idOf(field), several: field.multiple || field.webkitdirectory === true };
}

// The invisible file field that a button replaces: no other pressable element is as near to it.
function fileFieldOf(element) {
  const button = closestComposed(element, isPressable);
  if (!button || button.form && button.type === 'submit') return null;
  for (let e = composedParent(button); e && e.nodeType === 1 && !isPage(e); e = composedParent(e)) {
    const fields = descendants(e, isFileField);
    if (!fields.length) continue;
    const others = descendants(e, (other) => isPressable(other) && !isFileField(other) && isShown(other)
      && !contains(other, button) && !contains(button, other));
    const [field] = fields;
    const unseen = !isShown(field) || isInvisible(field);
    return fields.length === 1 && unseen && !field.labels.length && !others.length ? field : null;
  }
  return null;
}

// The list that an element is or opens: native, or of other elements.
function listUse(element) {
  const labelled = labelledBy(element);
  const native = isSelect(element) || element.localName === 'option' ? element
    : labelled && isSelect(labelled) ? labelled : null;
  if (native) return { how: 'native', id: idOf(native) };
  const selects = descendants(element, isSelect).filter(isShown);
  if (selects.length === 1 && !isPage(element)) return { how: 'native', id: idOf(selects[0]) };
  const popup = attribute(element, 'aria-haspopup').toLowerCase();
  const completes = element.localName === 'input'
    && (element.list || attribute(element, 'aria-autocomplete') || attribute(element, 'aria-controls'));
  const opens = LIST_ROLES.has(roleOf(element)) || popup && popup !== 'false' || !!completes;
  const expanded = attribute(element, 'aria-expanded').toLowerCase();
  return { how: opens ? 'opens' : 'items', closed: expanded === 'false', menu: /^(menu|true)$/.test(popup),
    pressed: isPressable(element) };
}

// Focuses an element for key presses.
function focusUse(element) {
  const part = labelledBy(element) && !isPressable(element) ? labelledBy(element) : element;
  if (isDisabled(part) || isInert(part)) return refused('is disabled');
  const inIt = () => {
    const doc = element.ownerDocument;
    const active = doc.hasFocus() ? focusedElement(doc) : null;
    return active !== null && contains(part, active);
  };
  if (isPage(element) || inIt()) return { how: 'focus' };
  part.focus();
  return inIt() ? { how: 'focus' }
    : refused('cannot take the focus', 'press the keys without an id, at the focus');
}

// Whether a canvas fills much of the page. An invisible field then receives keys for the drawing.
function hasLargeCanvas() {
  return [...document.getElementsByTagName('canvas')].some((canvas) => {
    const rect = canvas.getBoundingClientRect();
    return rect.width * rect.height > innerWidth * innerHeight / 5 && isShown(canvas);
  });
}

// Describes the focused element. `kind`: `field` (keys are text), `control` (Enter or Space presses
// it), `frame` (a document of another origin), `other`, or `none`.
function describeFocus(next) {
  nextId = Math.max(nextId, next);
  const active = focusedElement(document);
  if (!active) return { kind: 'none', next: nextId };
  const role = roleOf(active);
  const facts = { id: idOf(active), role: shownRole(active, role), name: clean(shownName(active, role)), next: nextId };
  if (/^(iframe|frame|object|embed)$/.test(active.localName)) return { ...facts, kind: 'frame' };
  if (isEditable(active) || active.editContext) {
    return { ...facts, kind: isInvisible(active) && hasLargeCanvas() ? 'other' : 'field' };
  }
  return { ...facts, kind: isPressable(active) ? 'control' : 'other' };
}

// Whether and how an action applies to element `id`. `how` is 'none' if it does not: `why`, and which
// action `fits` instead. Else `id` is the element to act on, which may be a part of the given one.
function usage(id, purpose, next) {
  const element = elementOf(id);
  if (!element) return null;
  nextId = Math.max(nextId, next);
  const uses = { text: textUse, toggle: toggleUse, file: fileUse, list: listUse, focus: focusUse,
    value: valueUse, table: tableUse };
  return { id, ...uses[purpose](element), next: nextId };
}
