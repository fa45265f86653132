// Part of the walker: characters for typography that changes the meaning of a text: superscripts,
// subscripts and struck text. Without them, `10<sup>3</sup>` would read as 103.
/* global composedParent -- dom.js */
/* global collapse -- roles.js */
/* exported isStruck, marksAround, struckText */

const ORDINALS = /^(st|nd|rd|th|er|re|tm|sm)$/i;
const PLAIN_SCRIPT = /^[+\-\u2212]?[\p{L}\p{N}]+$/u;
const NO_MARKS = ['', ''];

// The characters to add before and after the content of an element.
//   before  the text in front of it, of which the last character counts
function marksAround(element, tag, style, before) {
  const align = style.display === 'inline' ? style.verticalAlign : '';
  const raised = tag === 'sup' || align === 'super';
  return raised || tag === 'sub' || align === 'sub' ? scriptMarks(element, raised, before) : NO_MARKS;
}

function isStruck(style) {
  return style.textDecorationLine.includes('line-through');
}

// A struck text: `~~old~~`.
function struckText(text) {
  return text.replace(/\S(?:.*\S)?/s, (words) => `~~${words}~~`);
}

// A mark only where the text would read as one word or number: not for `1st`, `CO2` or `[1]`.
function scriptMarks(element, raised, before) {
  const text = collapse(element.textContent);
  const left = before.slice(-1);
  const glued = raised ? /[\p{L}\p{N})\]]/u.test(left) && /^[+\-\u2212]?[\p{L}\p{N}]/u.test(text)
    : /\p{N}/u.test(left) && /^\p{N}/u.test(text) || /\p{L}/u.test(left) && /^\p{L}/u.test(text);
  if (!glued || raised && ORDINALS.test(text)) return NO_MARKS;
  const mark = raised ? '^' : '_';
  const alone = PLAIN_SCRIPT.test(text) && !/^[\p{L}\p{N}]/u.test(textAfter(element));
  return alone ? [mark, ''] : [mark + '(', ')'];
}

// The text right behind an element, up to the end of the block.
function textAfter(element) {
  for (let node = element; node;) {
    const next = node.nextSibling;
    if (!next) {
      node = composedParent(node);
      if (!node || node.nodeType !== 1 || getComputedStyle(node).display !== 'inline') return '';
    } else if (next.textContent) {
      return next.nodeType === 3 || next.nodeType === 1 && getComputedStyle(next).display === 'inline'
        ? next.textContent : '';
    } else {
      if (next.localName === 'br') return '';
      node = next;
    }
  }
  return '';
}
