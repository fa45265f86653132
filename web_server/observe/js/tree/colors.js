// Part of the walker: small shapes without text whose colour carries a meaning, such as the dot of a
// state. They do only if shapes of the same kind have different colours.
/* exported colorMark, forgetColors */

const SMALLEST_MARK = 5;
const LARGEST_MARK = 40;
const MOST_COMPARED = 60;
const HUES = [[15, 'red'], [45, 'orange'], [70, 'yellow'], [165, 'green'], [195, 'cyan'], [255, 'blue'],
  [345, 'purple'], [361, 'red']];

let kinds = new Map(); // kind of shape -> whether its shapes differ in colour, for one walk

function forgetColors() {
  kinds = new Map();
}

// The colour of such a shape, as `(red)`; '' for other elements.
function colorMark(element, rect, style) {
  if (element.firstChild || rect.width > LARGEST_MARK || rect.height > LARGEST_MARK
      || rect.width < SMALLEST_MARK || rect.height < SMALLEST_MARK) return '';
  const color = colorName(style.backgroundColor);
  return color && differs(element) ? `(${color})` : '';
}

function differs(element) {
  const name = element.classList[0];
  if (!name) return false;
  const kind = `${element.localName}.${CSS.escape(name)}`;
  if (!kinds.has(kind)) {
    const same = [...element.ownerDocument.querySelectorAll(kind)].slice(0, MOST_COMPARED)
      .filter((other) => !other.firstChild);
    kinds.set(kind, new Set(same.map((other) => getComputedStyle(other).backgroundColor)).size > 1);
  }
  return kinds.get(kind);
}

// The name of a CSS colour `rgb(r, g, b)`; '' if it is transparent.
function colorName(color) {
  const [red, green, blue, alpha = 1] = (color.match(/[\d.]+/g) || []).map(Number);
  if (!(alpha > 0.2)) return '';
  const high = Math.max(red, green, blue);
  const range = high - Math.min(red, green, blue);
  if (range < 40) return high < 60 ? 'black' : high > 230 ? 'white' : 'grey';
  const sector = high === red ? (green - blue) / range : high === green ? 2 + (blue - red) / range
    : 4 + (red - green) / range;
  const hue = (sector * 60 + 360) % 360;
  return HUES.find(([limit]) => hue < limit)[1];
}
