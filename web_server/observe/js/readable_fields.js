// Part of the walker: the states of form fields as HTML. The tag `field` is the server's own.
/* global attribute -- roles.js */
/* exported escaped, fieldHtml */

const FIELD_TYPES = new Map([['submit', 'button'], ['reset', 'button'], ['button', 'button'], ['image', 'button'],
  ['checkbox', 'checkbox'], ['radio', 'radio'], ['password', 'password'], ['file', 'file'], ['hidden', '']]);
const TOGGLE_ROLES = { checkbox: 'checkbox', switch: 'checkbox', menuitemcheckbox: 'checkbox',
  radio: 'radio', menuitemradio: 'radio' };

function escaped(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

// The state of a field as an element `field`, and whether it stands for the content of the field. null
// for other elements.
function fieldHtml(element, tag) {
  const mark = (type, value, whole = true) => {
    const required = element.required === true || attribute(element, 'aria-required') === 'true';
    return { html: `<field type="${type}"${required ? ' required' : ''}>${escaped(value)}</field>`, whole };
  };
  if (tag === 'textarea') return mark('textarea', element.value);
  if (tag === 'select') return mark('choice', [...element.selectedOptions].map((o) => o.label).join(', '));
  if (tag === 'input') return inputHtml(element, mark);
  const toggle = TOGGLE_ROLES[attribute(element, 'role')];
  const checked = attribute(element, 'aria-checked');
  return toggle && checked ? mark(toggle, { true: 'x', mixed: '-' }[checked] || '', false) : null;
}

function inputHtml(input, mark) {
  const type = FIELD_TYPES.get(input.type) ?? 'field';
  if (!type) return { html: '', whole: true };
  if (type === 'checkbox' || type === 'radio') {
    return mark(type, input.indeterminate ? '-' : input.checked ? 'x' : '');
  }
  if (type === 'password') return mark('field', '\u2022'.repeat(input.value.length));
  if (type === 'file') return mark(type, [...input.files].map((file) => file.name).join(', '));
  return mark(type, input.value || (type === 'button' ? attribute(input, 'alt') : ''));
}
