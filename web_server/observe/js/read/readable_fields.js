// Part of the walker: the states of form fields, as HTML and as text. The tag `field` is the server's own.
/* global attribute -- roles.js */
/* exported escaped, fieldHtml, fieldText */

const FIELD_TYPES = new Map([['submit', 'button'], ['reset', 'button'], ['button', 'button'], ['image', 'button'],
  ['checkbox', 'checkbox'], ['radio', 'radio'], ['password', 'password'], ['file', 'file'], ['hidden', '']]);
const TOGGLE_ROLES = { checkbox: 'checkbox', switch: 'checkbox', menuitemcheckbox: 'checkbox',
  radio: 'radio', menuitemradio: 'radio' };

function escaped(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

// {html, whole}: the state of a field as an element `field`, and whether it stands for the content of the
// field. null for other elements.
function fieldHtml(element, tag) {
  const state = fieldState(element, tag);
  if (!state) return null;
  const { type, value, whole } = state;
  const required = element.required === true || attribute(element, 'aria-required') === 'true';
  const html = `<field type="${type}"${required ? ' required' : ''}>${escaped(value)}</field>`;
  return { html: type ? html : '', whole };
}

// {text, whole}: the same as text.
function fieldText(element, tag) {
  const state = fieldState(element, tag);
  if (!state) return null;
  const { type, value, whole } = state;
  const text = type === 'checkbox' ? `[${value || ' '}]` : type === 'radio' ? `(${value || ' '})` : value;
  return { text, whole };
}

function fieldState(element, tag) {
  const state = (type, value, whole = true) => ({ type, value, whole });
  if (tag === 'textarea') return state('textarea', element.value);
  if (tag === 'select') return state('choice', [...element.selectedOptions].map((o) => o.label).join(', '));
  if (tag === 'input') return inputState(element, state);
  const toggle = TOGGLE_ROLES[attribute(element, 'role')];
  const checked = attribute(element, 'aria-checked');
  return toggle && checked ? state(toggle, { true: 'x', mixed: '-' }[checked] || '', false) : null;
}

function inputState(input, state) {
  const type = FIELD_TYPES.get(input.type) ?? 'field';
  if (!type) return state('', '');
  if (type === 'checkbox' || type === 'radio') {
    return state(type, input.indeterminate ? '-' : input.checked ? 'x' : '');
  }
  if (type === 'password') return state('field', '\u2022'.repeat(input.value.length));
  if (type === 'file') return state(type, [...input.files].map((file) => file.name).join(', '));
  return state(type, input.value || (type === 'button' ? attribute(input, 'alt') : ''));
}
