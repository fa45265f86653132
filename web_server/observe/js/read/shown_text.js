// Part of the walker: the text of an element as a person sees it, on one line. Unlike an accessible
// name, it has the words on the screen, not those of `aria-label`. Pictures count by their alternative.
/* global tagOf, typeOf -- safe.js */
/* global composedChildren -- dom.js */
/* global isUnseen, showsPicture -- visibility.js */
/* global attribute, collapse -- roles.js */
/* global isStruck, marksAround, struckText -- typography.js */
/* global nameOf, pseudoText, transformed -- names.js */
/* global plain -- states.js */
/* global hintName, symbolName -- hints.js */
/* global fieldText -- readable_fields.js */
/* exported ICON_LETTERS, cellText, otherTextPairs, pictureText */

const ICON_LETTERS = /[\ue000-\uf8ff]/g;
const WITHOUT_TEXT = new Set('script style noscript template datalist head title desc metadata defs'.split(' '));
const ICONS = /^(a|abbr|b|button|em|i|span|svg)$/;
const NAMED_INSIDE = '[alt]:not([alt=""]),[title],[aria-label],svg title,input,select,textarea,iframe';

const LONG_TEXT_BESIDE = 100;

// The text of an element. `mode`: 'all' includes what a person cannot see, 'spoken' leaves out what screen
// readers do, and pictures; 'cell' leaves out icons to press.
function shownText(element, mode = '') {
  return collapse(textInside(element, mode));
}

// The text that an element shows if its name does not contain it, as a state.
function otherTextPairs(element, name) {
  if (!name || !element.hasAttribute('aria-label') && !element.hasAttribute('aria-labelledby')) return [];
  const text = shownText(element, 'spoken');
  return lettersOf(name).includes(lettersOf(text)) ? [] : ['text: ' + plain(text, LONG_TEXT_BESIDE)];
}

function lettersOf(text) {
  return text.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

// The text of a table cell. The names of icons to press count only without other text. A cell with only a
// picture has its text for screen readers, or what identifies the picture. So does a header.
function cellText(cell, isHeader) {
  const text = shownText(cell, 'cell');
  if (text || cell.firstElementChild === null) return text;
  const named = shownText(cell);
  const silent = named || !isHeader && !showsPicture(cell) ? named : shownText(cell, 'all');
  if (silent) return silent;
  const icon = [...cell.querySelectorAll('svg,i,img')].find((e) => e.getClientRects().length);
  const hint = icon ? symbolName(icon.parentElement) || hintName(icon, ['class', 'src']) : '';
  return hint && `[${hint}]`;
}

function textInside(element, mode) {
  const style = getComputedStyle(element);
  let text = shownPseudo(element, style, '::before', mode);
  for (const child of composedChildren(element)) {
    const type = typeOf(child);
    if (type === 3) {
      if (/\S/.test(child.data) && (mode === 'all' || style.visibility === 'visible' && !isUnseen(element, style))) {
        text += transformed(child.data.replace(ICON_LETTERS, ''), style);
      } else if (!/\S/.test(child.data)) {
        text += ' ';
      }
    } else if (type === 1) {
      text = withChild(text, child, mode);
    }
  }
  return text + shownPseudo(element, style, '::after', mode);
}

function withChild(text, element, mode) {
  const tag = tagOf(element);
  if (WITHOUT_TEXT.has(tag)) return text;
  const style = getComputedStyle(element);
  if (style.display === 'none') return text;
  if (mode === 'spoken' && element.getAttribute('aria-hidden') === 'true') return text;
  if (tag === 'br') return text + ' ';
  const apart = style.display === 'inline' || style.display === 'contents' ? '' : ' ';
  const field = fieldText(element, tag);
  if (field && field.whole) return `${text} ${field.text} `;
  let part = (field ? `${field.text} ` : '') + textInside(element, mode);
  const pressed = mode === 'cell' && /^(a|button)$/.test(tag);
  const picture = pressed ? '' : pictureText(element, tag);
  if (picture && mode !== 'spoken' && (mode === 'all' || !isUnseen(element, style))) part = ` ${picture} ${part}`;
  if (/\S/.test(part)) {
    const [open, close] = marksAround(element, tag, style, text);
    if (open) part = open + part.trim() + close;
    if (isStruck(style)) part = struckText(part);
  }
  return text + apart + part + apart;
}

function shownPseudo(element, style, which, mode) {
  if (style.visibility !== 'visible') return '';
  const text = pseudoText(element, which).replace(ICON_LETTERS, '');
  if (!/\S/.test(text) || mode !== 'all' && isUnseen(element, style)) return '';
  const apart = getComputedStyle(element, which).display === 'inline' ? '' : ' ';
  return apart + text + apart;
}

// The alternative of a picture: an image, or an icon or a control that shows no text.
function pictureText(element, tag) {
  if (tag === 'img' || tag === 'svg') return nameOf(element, 'image');
  const role = attribute(element, 'role');
  if (!ICONS.test(tag) && !/^(img|image|button|link)$/.test(role)) return '';
  const name = collapse(attribute(element, 'aria-label') || attribute(element, 'title'));
  const words = name && element.textContent.replace(ICON_LETTERS, '');
  return name && !/\S/.test(words) && !element.querySelector(NAMED_INSIDE) ? name : '';
}
