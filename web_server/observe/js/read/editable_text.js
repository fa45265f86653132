// Part of the walker: the exact text of editable elements, and the place of a part of it.
/* global parentOf, typeOf -- safe.js */
/* global composedChildren, composedParent -- dom.js */
/* global isEditableRoot -- states.js */
/* exported editableRoot, editableText, rangeOfText */

const PRESERVED = /^(pre|break-spaces)/; // values of white-space
const EMPTY_LINE = /[\u200b\ufeff]/; // editors put them into empty lines

// The outermost editable element at or around an element.
function editableRoot(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) if (isEditableRoot(e)) return e;
  return element;
}

// Collects a text: each block is a line, and so is what follows a `br`, except at the end of its block.
class EditableText {
  constructor() {
    this.text = '';
    this.places = []; // [node, offset] of each character
    this.last = null; // the place behind the last one
    this.touched = false; // whether the current line exists
    this.breaks = false; // whether the next character begins a line
    this.space = null; // the place of white space that counts if more text follows on the line
  }

  push(character, node, offset) {
    if (this.breaks) {
      this.text += '\n';
      this.places.push(this.last);
    }
    if (this.space && !this.breaks) {
      this.text += ' ';
      this.places.push(this.space);
    }
    this.breaks = false;
    this.space = null;
    this.touched = true;
    this.text += character;
    if (character) this.places.push([node, offset]);
    this.last = [node, offset + character.length];
  }

  addText(node, style) {
    const preserved = PRESERVED.test(style.whiteSpace);
    for (let i = 0; i < node.data.length; i++) {
      const character = node.data[i];
      if (EMPTY_LINE.test(character)) continue;
      if (preserved || !/[ \t\n\r\f]/.test(character)) {
        this.push(preserved || character !== '\u00a0' ? character : ' ', node, i);
      } else if (this.touched && !this.breaks && !this.text.endsWith('\n')) {
        this.space = this.space || [node, i];
      }
    }
  }

  addBreak(element) {
    const parent = parentOf(element);
    this.space = null;
    this.push('', parent, [...parent.childNodes].indexOf(element));
    this.breaks = true;
  }

  endLine() {
    this.space = null;
    this.breaks = this.touched;
  }
}

function collect(element, found, depth) {
  const style = getComputedStyle(element);
  for (const node of composedChildren(element)) {
    if (typeOf(node) === 3) {
      found.addText(node, style);
    } else if (typeOf(node) === 1 && depth < 400) {
      const { display } = getComputedStyle(node);
      if (display === 'none') continue;
      if (node.localName === 'br') {
        found.addBreak(node);
        continue;
      }
      const block = !display.startsWith('inline') && display !== 'contents';
      if (block) found.endLine();
      collect(node, found, depth + 1);
      if (block) found.endLine();
    }
  }
}

function collected(root) {
  const found = new EditableText();
  collect(root, found, 0);
  return found;
}

// The text of an editable element with its line breaks.
function editableText(root) {
  return collected(root).text;
}

// The range of a part of the text, from one offset to another.
function rangeOfText(root, start, end) {
  const { text, places, last } = collected(root);
  const range = new Range();
  range.setStart(...places[start]);
  if (text[end - 1] === '\n') range.setEnd(...(places[end] || last));
  else range.setEnd(places[end - 1][0], places[end - 1][1] + 1);
  return range;
}
