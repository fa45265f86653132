// Part of the walker: whether a person can see a rendered text. The observation, `find`, `read` and
// `table` share this test. A text is invisible if it is transparent, clipped to a point, outside of the
// page, or in the colour of its background.
/* global bodyOf, documentOf, rootElementOf, viewOf -- safe.js */
/* global composedParent, contains -- dom.js */
/* global rangeOf -- geometry.js */
/* exported forgetVisibility, isUnseen, showsPicture, unseenText */

const SMALLEST_BOX = 2; // pixels
const SMALLEST_FONT = 2;
const SMALLEST_PICTURE = 5;
const MAX_PARTS = 30; // of a box that may show a picture
const FAR = 500;
const LEAST_OPACITY = 0.05;
const SAME_COLOR = 8; // difference of a channel, of 255
const MAX_ELEMENTS = 10000; // of a page that is searched for what lies behind a text
const MAX_SEARCHES = 20; // of one walk
const PICTURES = 'img,video,canvas,svg,iframe,embed,object';
const OPACITY = { opacityProperty: true };
const REPLACED_BY_PICTURE = /^(a|button|h[1-6]|span)$/;

const PLAIN = 0; // a box that hides nothing, like all around it
const GONE = 1; // nothing in the box is visible
const CUT = 2; // nothing in the flow of the box is visible
const CLEAR = 3; // a box that hides nothing
let boxes; // element -> one of these, for one walk
let backgrounds; // element -> colour behind its content, null if unknown
let colors; // css -> colour
let searches; // how often a text was compared with all other elements

function forgetVisibility() {
  boxes = new WeakMap();
  backgrounds = new WeakMap();
  colors = new Map();
  searches = 0;
}
forgetVisibility();

// Whether text that is a child of this rendered element is invisible. Text for screen readers that stands
// for a picture counts as the picture.
function isUnseen(element, style = getComputedStyle(element)) {
  if (isFaded(element, style)) return true;
  if (isInsideHiddenBox(element)) return !standsForPicture(element);
  if (REPLACED_BY_PICTURE.test(element.localName) && parseFloat(style.textIndent) < -FAR) return true;
  return isInkHidden(element, style);
}

// The text with a mark.
function unseenText(text) {
  return text.replace(/\S(?:.*\S)?/s, (words) => `(invisible: ${words})`);
}

function isFaded(element, style) {
  if (Element.prototype.checkVisibility.call(element, OPACITY)) return false;
  if (style.display !== 'contents') return true;
  const parent = composedParent(element);
  return parent && parent.nodeType === 1 ? isFaded(parent, getComputedStyle(parent)) : false;
}

// -- boxes ---------------------------------------------------------------------------------------

function isInsideHiddenBox(element) {
  const chain = [];
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) {
    let box = boxes.get(e);
    if (box === undefined) boxes.set(e, (box = boxOfText(e)));
    if (box === PLAIN) break;
    if (box === GONE || box === CUT && !escapes(element, e)) return true;
    if (box === CUT) return isInsideHiddenBox(composedParent(e));
    chain.push(e);
  }
  for (const e of chain) boxes.set(e, PLAIN);
  return false;
}

function boxOfText(element) {
  const rect = Element.prototype.getBoundingClientRect.call(element);
  const view = viewOf(element);
  const small = rect.width <= SMALLEST_BOX || rect.height <= SMALLEST_BOX;
  const far = rect.left + view.scrollX < -FAR || rect.bottom + view.scrollY <= 0;
  const style = getComputedStyle(element);
  if (isEmptyShape(style.clipPath)) return GONE;
  if (!small && !far && style.position !== 'fixed') return CLEAR;
  if (small && parseFloat(style.fontSize) < SMALLEST_FONT) return GONE;
  if (style.display === 'inline' || style.display === 'contents' || isRoot(element)) return CLEAR;
  if (isOutsidePage(element, contentRect(element, rect), style.position)) return GONE;
  if (!small) return CLEAR;
  if (rect.width === 0 && rect.height === 0 && element.offsetWidth > 0) return GONE; // scaled to nothing
  if (style.overflowX !== 'visible') return CUT;
  return style.position !== 'static' && isEmptyClip(style.clip) ? GONE : CLEAR;
}

// Whether the smallest box of some size around an element has no other text and shows a picture.
function standsForPicture(element) {
  const words = element.textContent.trim();
  for (let e = composedParent(element), i = 0; e && e.nodeType === 1 && i < 6; e = composedParent(e), i++) {
    if (e.textContent.trim() !== words) return false;
    if (showsPicture(e)) return true;
  }
  return false;
}

// Whether an element shows a picture: an image, or a drawing of a style sheet.
function showsPicture(element) {
  return [element, ...element.querySelectorAll('*')].slice(0, MAX_PARTS).some((e) => {
    const rect = Element.prototype.getBoundingClientRect.call(e);
    if (rect.width < SMALLEST_PICTURE || rect.height < SMALLEST_PICTURE) return false;
    if (e.matches(PICTURES)) return true;
    return getComputedStyle(e).backgroundImage !== 'none' || hasDrawnPseudo(e);
  });
}

function hasDrawnPseudo(element) {
  return ['::before', '::after'].some((which) => {
    const { content, backgroundImage } = getComputedStyle(element, which);
    return content !== 'none' && content !== 'normal' && (content !== '""' || backgroundImage !== 'none');
  });
}

// Whether a box cuts an element only in the flow, while the element is placed elsewhere.
function escapes(element, box) {
  let position = 'static';
  for (let e = element; e !== box; e = composedParent(e)) {
    const own = getComputedStyle(e).position;
    if (position !== 'fixed' && own !== 'static') position = own;
  }
  return position === 'fixed' || position === 'absolute' && getComputedStyle(box).position === 'static';
}

// The rectangle of a box, or of its content if the box begins far outside of the page.
function contentRect(element, rect) {
  return rect.left + viewOf(element).scrollX < -FAR ? rangeOf(element).getBoundingClientRect() : rect;
}

function isRoot(element) {
  const doc = documentOf(element);
  return element === rootElementOf(doc) || element === bodyOf(doc);
}

function isEmptyShape(shape) {
  if (shape === 'none') return false;
  const inset = /^inset\(([\d.]+)%/.exec(shape);
  return inset ? Number(inset[1]) >= 50 : shape.startsWith('circle(0');
}

function isEmptyClip(clip) {
  const sides = clip === 'auto' ? [] : (clip.match(/-?[\d.]+/g) || []).map(Number);
  return sides.length === 4 && (sides[2] - sides[0] <= SMALLEST_BOX || sides[1] - sides[3] <= SMALLEST_BOX);
}

// Whether a rectangle is where no scrolling reaches it.
function isOutsidePage(element, rect, position) {
  const view = viewOf(element);
  if (rect.width * rect.height === 0) return false;
  if (position === 'fixed') {
    return rect.right <= 0 || rect.bottom <= 0 || rect.left >= view.innerWidth || rect.top >= view.innerHeight;
  }
  let right = rect.right + view.scrollX;
  let bottom = rect.bottom + view.scrollY;
  if (right > 0 && bottom > 0) return false;
  const root = rootElementOf(documentOf(element));
  for (let e = composedParent(element); e && e !== root && e.nodeType === 1; e = composedParent(e)) {
    const style = getComputedStyle(e);
    if (style.position === 'fixed' || style.direction === 'rtl') return false;
    right += e.scrollLeft;
    bottom += e.scrollTop;
  }
  return right <= 0 || bottom <= 0;
}

// -- ink -----------------------------------------------------------------------------------------

function isInkHidden(element, style) {
  const ink = colorOf(style.color);
  if (!ink) return false;
  if (ink[3] < LEAST_OPACITY) return style.textShadow === 'none' && !showsThroughText(element);
  const ground = backgroundOf(element);
  return ground !== null && ink.every((channel, i) => i === 3 || Math.abs(channel - ground.color[i]) <= SAME_COLOR)
    && style.textShadow === 'none' && style.webkitTextFillColor === style.color
    && parseFloat(style.webkitTextStrokeWidth) === 0 && !isPaintedBehind(element, ground.of);
}

// [red, green, blue, opacity]; null for other notations.
function colorOf(css) {
  let color = colors.get(css);
  if (color === undefined) {
    const numbers = css.startsWith('rgb') ? css.match(/[\d.]+/g).map(Number) : null;
    color = numbers && [...numbers.slice(0, 3), numbers.length > 3 ? numbers[3] : 1];
    colors.set(css, color);
  }
  return color;
}

// Whether a background is painted in the form of the text.
function showsThroughText(element) {
  for (let e = element, i = 0; e && e.nodeType === 1 && i < 6; e = composedParent(e), i++) {
    if (getComputedStyle(e).webkitBackgroundClip.includes('text')) return true;
  }
  return false;
}

// The colour behind the content of an element, and the element `of` which it is; null if unknown, as for
// pictures, translucent colours and the documents of frames.
function backgroundOf(element) {
  const chain = [];
  let found;
  for (let e = element; found === undefined; e = composedParent(e)) {
    if (!e || e.nodeType !== 1) {
      found = canvasOf(element);
    } else {
      found = backgrounds.get(e);
      if (found === undefined) {
        chain.push(e);
        found = ownBackground(e);
      }
    }
  }
  for (const e of chain) backgrounds.set(e, found);
  return found;
}

// undefined for a transparent background. Pictures are considered when the colour matters.
function ownBackground(element) {
  const color = colorOf(getComputedStyle(element).backgroundColor);
  if (!color) return null;
  return color[3] === 0 ? undefined : color[3] < 1 ? null : { color, of: element };
}

function canvasOf(element) {
  const doc = documentOf(element);
  const root = rootElementOf(doc);
  const dark = getComputedStyle(root).colorScheme.includes('dark');
  return dark || viewOf(element) !== viewOf(element).top ? null : { color: [255, 255, 255, 1], of: root };
}

// Whether something else may be painted between a text and the element whose background it has.
function isPaintedBehind(element, ground) {
  for (let e = element; e && e !== composedParent(ground) && e.nodeType === 1; e = composedParent(e)) {
    if (getComputedStyle(e).backgroundImage !== 'none' || hasPaintedPseudo(e)) return true;
  }
  const all = ground.querySelectorAll('*');
  if (all.length > MAX_ELEMENTS || ++searches > MAX_SEARCHES) return true;
  const place = Element.prototype.getBoundingClientRect.call(element);
  return [...all].some((e) => overlap(place, Element.prototype.getBoundingClientRect.call(e))
    && !contains(e, element) && isPainted(e));
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function isPainted(element) {
  if (element.matches(PICTURES)) return true;
  const style = getComputedStyle(element);
  return hasBackground(style) || hasPaintedPseudo(element);
}

function hasPaintedPseudo(element) {
  return ['::before', '::after'].some((which) => {
    const style = getComputedStyle(element, which);
    return style.content !== 'none' && style.content !== 'normal' && hasBackground(style);
  });
}

function hasBackground(style) {
  return style.backgroundImage !== 'none' || !/^rgba\(.*, 0\)$/.test(style.backgroundColor);
}
