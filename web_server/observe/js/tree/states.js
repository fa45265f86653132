// Part of the walker: states of an element as `key: value` pairs, in a fixed order.
/* global composedParent, idOf -- dom.js */
/* global anyInternals -- page_records.js */
/* global attribute, collapse, roleOf -- roles.js */
/* global placeholderOf, referenced -- names.js */
/* global walk -- walk.js */
/* exported LONG_VALUE, TOGGLES, controlValue, isDisabled, isEditable, isEditableRoot, plain, statesOf */
/* exported withBreaks */

const TOGGLES = /^(checkbox|radio|switch|menuitemcheckbox|menuitemradio)$/;
const RANGES = /^(slider|spinbutton|progressbar|meter|scrollbar)$/;
const LONG_VALUE = 200;
const MAX_SUGGESTIONS = 10;

// Text for a value: one line without apostrophes, because old clients read the last apostrophe of a
// line as the end of the name.
function plain(text, limit = LONG_VALUE) {
  // eslint-disable-next-line no-control-regex
  const line = collapse(text.replace(/[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g, ' ')).replace(/'/g, '\u2019');
  return line.length > limit ? line.slice(0, limit) + `\u2026 (${line.length} characters)` : line;
}

// A text with a mark for each line break.
function withBreaks(text) {
  return text.replace(/\r?\n/g, ' \u21b5 ');
}

function isDisabled(element) {
  return element.matches(':disabled') || element.closest('[aria-disabled=true i]') !== null
    || anyInternals && attribute(element, 'aria-disabled') === 'true';
}

function isEditable(element) {
  const tag = element.localName;
  if (tag === 'textarea') return !element.readOnly && !element.disabled;
  if (tag === 'input') {
    return !element.readOnly && !element.disabled && !/^(button|submit|reset|image|file|checkbox|radio)$/
      .test(element.type);
  }
  return element.isContentEditable === true;
}

function isEditableRoot(element) {
  if (!element.isContentEditable) return false;
  const parent = composedParent(element);
  return !(parent && parent.isContentEditable);
}

function controlValue(element, role) {
  const tag = element.localName;
  if (tag === 'input') {
    if (element.type === 'password') return element.value ? '\u2022\u2022\u2022\u2022' : '';
    if (element.type === 'file') return [...element.files].map((file) => file.name).join(', ');
    return /^(button|submit|reset|image|checkbox|radio)$/.test(element.type) ? '' : element.value;
  }
  if (tag === 'textarea') return element.value;
  if (tag === 'select') return [...element.selectedOptions].map((option) => option.label).join(', ');
  if (RANGES.test(role)) {
    return attribute(element, 'aria-valuetext') || attribute(element, 'aria-valuenow')
      || (tag === 'meter' || tag === 'progress' && element.position >= 0 ? String(element.value) : '');
  }
  return '';
}

function addState(pairs, element, name, key = name.slice(5)) {
  const value = attribute(element, name).toLowerCase();
  if (value === 'true' || value === 'false' || value === 'mixed') pairs.push(`${key}: ${value}`);
}

function statesOf(element, role, name, focused) {
  const pairs = [];
  const tag = element.localName;
  if (role === 'heading') {
    pairs.push('level: ' + (parseInt(attribute(element, 'aria-level'), 10) || /^h(\d)$/.exec(tag)?.[1] || 2));
  }
  if (TOGGLES.test(role)) {
    const native = tag === 'input';
    const given = attribute(element, 'aria-checked').toLowerCase();
    const mixed = native ? element.indeterminate : given === 'mixed';
    pairs.push('checked: ' + (mixed ? 'mixed' : native ? element.checked : given === 'true'));
  }
  const popup = attribute(element, 'aria-haspopup');
  if (popup && popup !== 'false') pairs.push('hasPopup: ' + (popup === 'true' ? 'menu' : plain(popup)));
  if (tag === 'summary' && role.startsWith('DisclosureTriangle')) {
    pairs.push('expanded: ' + element.parentElement.open);
  } else if (element.popoverTargetElement) {
    pairs.push('expanded: ' + element.popoverTargetElement.matches(':popover-open'));
  } else {
    addState(pairs, element, 'aria-expanded');
    if (popup && attribute(element, 'aria-expanded') === 'true') addControlled(pairs, element);
  }
  if (role === 'button') addState(pairs, element, 'aria-pressed');
  if (attribute(element, 'aria-selected') === 'true') pairs.push('selected: true');
  const current = attribute(element, 'aria-current');
  if (current && current !== 'false') pairs.push('current: ' + plain(current));
  const sort = attribute(element, 'aria-sort');
  if (sort && sort !== 'none') pairs.push('sort: ' + plain(sort));
  fieldStates(pairs, element, role, name, tag);
  if (isDisabled(element)) pairs.push('disabled: true');
  if (focused) pairs.push('focused: true');
  if (walk && element === walk.active) pairs.push('active: true');
  return pairs;
}

function fieldStates(pairs, element, role, name, tag) {
  const value = controlValue(element, role);
  if (value) pairs.push('value: ' + plain(withBreaks(value)));
  else if (placeholderOf(element) && placeholderOf(element) !== name) {
    pairs.push('placeholder: ' + plain(placeholderOf(element)));
  }
  if (tag === 'input' && element.list) {
    const all = [...element.list.options].map((option) => option.value || option.label);
    const more = all.length > MAX_SUGGESTIONS ? ` and ${all.length - MAX_SUGGESTIONS} more` : '';
    pairs.push('suggestions: ' + plain(all.slice(0, MAX_SUGGESTIONS).join(', ')) + more);
  }
  const range = tag === 'input' && RANGES.test(role);
  const low = range ? element.min : attribute(element, 'aria-valuemin');
  const high = range ? element.max : attribute(element, 'aria-valuemax');
  if ((role === 'slider' || low || high) && high !== 'NaN') {
    if (low || range) pairs.push('min: ' + plain(low || '0'));
    if (high || role === 'slider' && range) pairs.push('max: ' + plain(high || '100'));
  }
  if (tag === 'textarea' || role === 'textbox' && (element.isContentEditable || element.editContext)) {
    pairs.push('multiline: true');
  }
  if (tag === 'select' && element.multiple) pairs.push('multiple: true');
  if (element.matches(':required') || attribute(element, 'aria-required').toLowerCase() === 'true') {
    pairs.push('required: true');
  }
  const invalid = attribute(element, 'aria-invalid');
  if (invalid && invalid !== 'false' || element.validity && isInvalid(element)) pairs.push('invalid: true');
  const field = tag === 'input' || tag === 'textarea';
  if (field && element.readOnly && isTextField(element) || attribute(element, 'aria-readonly') === 'true') {
    pairs.push('readonly: true');
  }
}

// Whether a field's value is invalid. An empty required field is invalid after the user has edited it.
function isInvalid(element) {
  return element.willValidate && !element.validity.valid
    && (!element.validity.valueMissing || element.matches(':user-invalid'));
}

function isTextField(element) {
  return element.localName === 'textarea' || !/^(button|submit|reset|image|file|checkbox|radio|range|color)$/
    .test(element.type);
}

// Adds the id of an open pop-up, below which render.py nests the items.
function addControlled(pairs, element) {
  const near = element.nextElementSibling;
  const menu = referenced(element, 'aria-controls')[0] || referenced(element, 'aria-owns')[0]
    || near && /^(menu|listbox|tree|grid|dialog)$/.test(roleOf(near)) && near;
  if (menu) pairs.push('@items ' + idOf(menu));
}
