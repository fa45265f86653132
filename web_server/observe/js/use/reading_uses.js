// Part of the walker: whether an element has a value or a table to read, and functions that read it.
/* global idOf -- dom.js */
/* global clipOf -- geometry.js */
/* global pointOf -- hit_test.js */
/* global forgetTables -- tables.js */
/* global isEditable -- states.js */
/* global editableRoot, editableText, rangeOfText -- editable_text.js */
/* global isLayoutTable, isTable, tableAround, tablesInside -- table_rows.js */
/* global isInvisible, isOn, isPage, isToggle, refused, textUse, toggleUse -- usage.js */
/* exported fieldValue, selectPart, tableUse, valueUse */

// Editors that draw their text: the class of their element, and the script in actions/js that reads them.
const EDITORS = {
  CodeMirror: 'code_mirror_5', 'cm-editor': 'code_mirror_6', 'monaco-editor': 'monaco', ace_editor: 'ace',
};

function valueUse(element) {
  const use = textUse(element);
  if (use.how !== 'none' || use.id) return { ...use, how: use.how === 'editor' ? 'editor' : 'value' };
  const toggle = isToggle(element) || element.localName === 'label' ? toggleUse(element) : use;
  if (toggle.id) return { ...toggle, how: 'value' };
  return { ...use, why: use.near.length ? use.why : 'is not a field',
    fits: use.near.length ? use.fits : 'read() and find() return the text of other elements' };
}

// The table that an element is, belongs to, or contains; a table of data before one for layout.
function tableUse(element) {
  forgetTables();
  for (const isKind of [isTable, isLayoutTable]) {
    const around = isPage(element) ? null : tableAround(element, isKind);
    if (around) return { how: 'table', id: idOf(around) };
    const inside = tablesInside(element, isKind);
    if (inside.length === 1) return { how: 'table', id: idOf(inside[0]) };
    if (inside.length) return refused(`contains ${inside.length} tables`, 'give the id of one', inside);
  }
  return refused('is not in a table', 'give the id of a table, or of an element in one');
}

// The value of a field: {kind: 'text', 'choice', 'toggle', 'rich', 'password' or 'other', value}, and the
// script of its `editor`, if it is a part of one that draws its text.
function fieldValue(element) {
  const editor = editorClass(element);
  if (editor) return { kind: 'editor', editor };
  const tag = element.localName;
  if (isToggle(element)) return { kind: 'toggle', value: isOn(element) };
  if (tag === 'select') {
    const chosen = [...element.selectedOptions].map((option) => option.label);
    return { kind: 'choice', value: element.multiple ? chosen : chosen[0] ?? '' };
  }
  if (element.type === 'password') return { kind: 'password', value: '' };
  if (tag === 'input' || tag === 'textarea') return { kind: 'text', value: element.value };
  if (element.isContentEditable) return { kind: 'rich', value: editableText(editableRoot(element)) };
  return { kind: 'other', value: '' };
}

function editorClass(element) {
  if (/^(input|textarea|select)$/.test(element.localName) && !isInvisible(element)) {
    const place = pointOf(element, clipOf(element));
    if (place && !place.hit) return ''; // such as the search field of an editor
  }
  for (const [name, script] of Object.entries(EDITORS)) {
    if (element.closest(`.${name}`)) return script;
  }
  return '';
}

// Selects a part of a field's text. Returns whether the field has the focus and the part is selected.
function selectPart(element, start, end) {
  if (!isEditable(element)) return false;
  if (!element.isContentEditable) {
    element.focus();
    try {
      element.setSelectionRange(start, end);
    } catch {
      return false; // an input of this type has no selection
    }
    return element.selectionStart === start && element.selectionEnd === end;
  }
  const root = editableRoot(element);
  if (!root.contains(root.getRootNode().activeElement)) root.focus();
  const range = rangeOfText(root, start, end);
  const selection = root.ownerDocument.getSelection();
  selection.setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
  return root.contains(root.getRootNode().activeElement);
}
