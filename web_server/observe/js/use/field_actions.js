// Part of the walker: functions on fields and lists, for actions. Each gets its element first.
/* global collapse -- roles.js */
/* exported chooseOptions, chosenLabels, fieldContent, focusEditor, focusElement, selectContent */
/* exported setFieldValue, suggestedValue */

function focusElement(element) {
  element.focus();
}

// Sets the value of a date, time, colour or range input. Returns the value that the input then has,
// or null if the input does not take the given one.
function setFieldValue(input, value) {
  // Another input of the same type shows whether the value is valid before the page notices.
  const probe = Object.assign(document.createElement('input'), { type: input.type, value });
  let valid = value === '' || probe.value !== '';
  if (input.type === 'range') valid = value !== '' && isFinite(Number(value));
  if (input.type === 'color') valid = /^#[0-9a-f]{6}$/i.test(value);
  if (!valid) return null;
  const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  setter.call(input, value);
  dispatchInput(input);
  return input.value;
}

function dispatchInput(field) {
  field.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  field.dispatchEvent(new Event('change', { bubbles: true }));
}

// Selects the content of a field, after a click on `element`. Returns the kind of field: 'line',
// 'lines' or 'rich', with '-empty' if it is empty; 'readonly'; 'focus' if the element has the focus
// and is not a field; 'none' otherwise.
function selectContent(element) {
  const active = activeInShadow(element.ownerDocument);
  // A click on an element that is not a field may put a field under the focus.
  const field = takesInput(element) ? element : active && takesInput(active) ? active : null;
  if (!field) return active === element || element.contains(active) ? 'focus' : 'none';
  if (field.readOnly) return 'readonly';
  if (active !== field && !(field.isContentEditable && field.contains(active))) field.focus();
  if (field.isContentEditable) return selectEditable(field);
  field.select();
  if (field.matches('textarea')) return field.value ? 'lines' : 'lines-empty';
  return field.value ? 'line' : 'line-empty';
}

function takesInput(node) {
  return node.isContentEditable || node.matches('input, textarea') && !node.disabled;
}

function activeInShadow(doc) {
  let active = doc.activeElement;
  while (active && active.shadowRoot && active.shadowRoot.activeElement) {
    active = active.shadowRoot.activeElement;
  }
  return active;
}

function selectEditable(field) {
  let host = field;
  while (host.parentElement && host.parentElement.isContentEditable) host = host.parentElement;
  const range = field.ownerDocument.createRange();
  range.selectNodeContents(host);
  const selection = field.ownerDocument.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  return host.textContent ? 'rich' : 'rich-empty';
}

// The text of a field, the length of a password, {rich: text} of an editable element, or null.
function fieldContent(element) {
  if (typeof element.value !== 'string') {
    return element.isContentEditable ? { rich: element.innerText } : null;
  }
  return element.type === 'password' ? element.value.length : element.value;
}

// Chooses options of a select element. `element` is the select, or an option, which is chosen if
// `requested` is empty. Returns {kind, ...}: 'done' or, if the page changed the choice, 'otherwise';
// else why nothing was chosen: 'none' (not a select), 'disabled', 'missing', 'single', 'off'.
function chooseOptions(element, requested) {
  let select = element;
  if (element.tagName === 'OPTION') {
    select = element.closest('select');
    if (select && !requested.length) requested = [element.label];
  }
  if (!select || select.tagName !== 'SELECT') return { kind: 'none' };
  if (select.disabled) return { kind: 'disabled' };
  const options = [...select.options];
  const chosen = requested.map((text) => matchingOption(options, text));
  const missing = requested.filter((_, i) => !chosen[i]);
  if (missing.length) return { kind: 'missing', missing, labels: labelsOfOptions(options).slice(0, 60) };
  if (!select.multiple && chosen.length !== 1) return { kind: 'single' };
  const off = chosen.find((o) => o.disabled || o.parentElement && o.parentElement.disabled);
  if (off) return { kind: 'off', label: collapse(off.label) };
  // The select gets no focus: a custom list that replaces it would open and cover the page.
  if (select.multiple) for (const option of options) option.selected = chosen.includes(option);
  else select.selectedIndex = options.indexOf(chosen[0]);
  dispatchInput(select);
  const now = chosenLabels(select);
  const kept = chosen.every((option) => option.selected) && now.length === chosen.length;
  return { kind: kept ? 'done' : 'otherwise', now, labels: labelsOfOptions(chosen) };
}

// The option that a text means: by label, by value, by label in another case, by a part of it.
function matchingOption(options, text) {
  const label = collapse(text);
  const lower = label.toLowerCase();
  const rules = [
    (o) => collapse(o.label) === label || collapse(o.text) === label,
    (o) => o.value === text,
    (o) => collapse(o.label).toLowerCase() === lower,
    (o) => label && collapse(o.label).toLowerCase().includes(lower),
  ];
  for (const rule of rules) {
    const found = options.filter((option) => rule(option));
    if (found.length) return found.find((option) => !option.disabled) || found[0];
  }
  return null;
}

function labelsOfOptions(options) {
  return [...options].map((option) => collapse(option.label));
}

function chosenLabels(element) {
  return labelsOfOptions(element.closest('select').selectedOptions);
}

// The value that an input's list of suggestions gives for a value or label; null without one.
function suggestedValue(input, text) {
  const plain = (value) => collapse(value).toLowerCase();
  const options = input.tagName === 'INPUT' && input.list ? [...input.list.options] : [];
  const found = options.find((option) => plain(option.value) === plain(text))
    || options.find((option) => plain(option.label) === plain(text));
  return found ? found.value : null;
}

// Focuses the hidden field of an editor that draws its text itself. Returns false if something
// covers the editor; then nothing happens.
function focusEditor(field) {
  const isSmall = (node) => {
    const box = node.getBoundingClientRect();
    return box.width < 8 || box.height < 8;
  };
  let editor = field.parentElement;
  while (editor && isSmall(editor)) editor = editor.parentElement;
  if (!editor) return false;
  editor.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  const box = editor.getBoundingClientRect();
  const middle = (low, high, end) => (Math.max(low, 0) + Math.min(high, end)) / 2;
  const hit = editor.getRootNode().elementFromPoint(
    middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
  if (!hit || !editor.contains(hit)) return false;
  field.focus({ preventScroll: true });
  return field.getRootNode().activeElement === field;
}
