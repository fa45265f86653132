// Part of the walker: the text beside a field without a name, which labels it for a reader.
/* global collapse -- roles.js */
/* global TOGGLES, plain -- states.js */
/* exported FIELD_ROLES, nearPairs */

// Roles whose name is not the text that they show.
const FIELD_ROLES = /^(textbox|searchbox|combobox|listbox|slider|spinbutton|Date|DateTime|InputTime|ColorWell)$/;
const CONTROLS_INSIDE = 'a,button,input,select,textarea,[contenteditable]';
const SECTIONS = /^(form|fieldset|table|tbody|body|ul|ol|main|section)$/;
const LONG_LABEL = 60;
const MAX_LEVELS = 3;

// `near: text` for a field: the text in front of it, or behind a check box.
function nearPairs(element, role) {
  const toggle = TOGGLES.test(role);
  if (!toggle && !FIELD_ROLES.test(role)) return [];
  const text = toggle && textBeside(element, 'nextSibling') || textBeside(element, 'previousSibling');
  return text ? ['near: ' + plain(text)] : [];
}

function textBeside(element, side) {
  let at = element;
  for (let level = 0; level < MAX_LEVELS; level++) {
    for (let node = at[side]; node; node = node[side]) {
      if (node.nodeType === 1 && !node.checkVisibility()) continue;
      if (node.nodeType === 1 && (node.matches(CONTROLS_INSIDE) || node.querySelector(CONTROLS_INSIDE))) return '';
      const text = node.nodeType === 1 || node.nodeType === 3 ? collapse(node.textContent) : '';
      if (text) return text.length <= LONG_LABEL ? text.replace(/[\s:*]+$/, '') : '';
    }
    at = at.parentElement;
    if (!at || SECTIONS.test(at.localName)) return '';
  }
  return '';
}
