// Part of the walker: functions on elements that the pointer acts on. Each gets its element first.
/* exported acceptsDrop, expectDrop, hitTest, scrollBox, sliderThumb */

const ACTING = 'a, button, input, select, textarea, summary, [role], [tabindex], [onclick], [contenteditable]';
const TEXT_CONTROL = 'textarea, [contenteditable], [role=combobox], [role=textbox], '
  + 'input:not([type=button], [type=submit], [type=reset], [type=image])';
const TALLEST_CONTROL = 80; // pixels
const outward = (node) => node.assignedSlot || node.parentNode || node.host;

// What the pointer hits at the middle of an element that is covered or lets the pointer through.
// 'part': another part of the same small control, such as its picture, or a field and its words.
// 'around': only an element that contains this one. '': something else.
function hitTest(element) {
  const box = element.getBoundingClientRect();
  const root = element.getRootNode();
  if (!root.elementFromPoint) return '';
  const hit = root.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  if (!hit || hit === element) return '';
  const lineage = [];
  for (let node = element; node; node = outward(node)) lineage.push(node);
  if (lineage.includes(hit)) return isSameControl(element, box, hit, lineage) ? 'part' : 'around';
  return isPartBeside(element, hit, lineage) ? 'part' : '';
}

// Whether `hit`, which contains the element, is hardly larger, or the control that it belongs to.
function isSameControl(element, box, hit, lineage) {
  if (hit.matches('body, html')) return false;
  const area = hit.getBoundingClientRect();
  if (area.width <= box.width + 24 && area.height <= box.height + 24) return true;
  const control = hit.closest('[role=combobox], [role=button], [role=listbox], button');
  return control && lineage.includes(control) && control.offsetHeight <= TALLEST_CONTROL
    && getComputedStyle(element).pointerEvents === 'none';
}

// Whether `hit`, which lies over the element, belongs to the same small control.
function isPartBeside(element, hit, lineage) {
  const isActing = (node) => node.nodeType === 1 && node.matches(ACTING);
  const isText = (node) => node.matches(TEXT_CONTROL);
  const covers = [];
  let shared = hit;
  for (; shared && !lineage.includes(shared); shared = outward(shared)) covers.push(shared);
  const acting = covers.filter(isActing);
  const related = isActing(element) ? isText(element) && !acting.length
    : acting.length > 0 && acting.every(isText);
  // An element that only positions its children may have no size.
  while (shared && shared.nodeType === 1 && !shared.offsetHeight) shared = outward(shared);
  if (!related || !shared || shared.nodeType !== 1 || shared.matches('body, html')) return false;
  const area = hit.getBoundingClientRect();
  const whole = shared.getBoundingClientRect();
  const inside = area.left >= whole.left - 2 && area.right <= whole.right + 2
    && area.top >= whole.top - 2 && area.bottom <= whole.bottom + 2;
  return inside && whole.height <= TALLEST_CONTROL;
}

// Scrolls the element, or the nearest box around it that can move. A distance below 1 is a share of
// the box's size, others are pixels. Returns whether anything moved.
function scrollBox(element, dx, dy) {
  const pixels = (distance, size) => (Math.abs(distance) < 1 ? distance * size : distance);
  for (let box = element; box; box = box.parentElement || box.getRootNode().host) {
    const before = [box.scrollLeft, box.scrollTop];
    box.scrollBy({
      left: pixels(dx, box.clientWidth), top: pixels(dy, box.clientHeight), behavior: 'instant',
    });
    if (box.scrollLeft !== before[0] || box.scrollTop !== before[1]) return true;
    if (box !== element && box.scrollHeight > box.clientHeight + 1
        && /auto|scroll/.test(getComputedStyle(box).overflowY)) return false;
  }
  return false;
}

// Where the thumb of a range input is: [share of the way, whether it runs across, whether backwards].
function sliderThumb(input) {
  const low = Number(input.min || 0);
  const high = Number(input.max || 100);
  const style = getComputedStyle(input);
  const across = style.writingMode.startsWith('horizontal');
  const share = high > low ? (Number(input.value) - low) / (high - low) : 0;
  return [share, across, style.direction === 'rtl'];
}

// Notes the next `dragover` event, which `acceptsDrop` then reads.
const dragovers = new WeakMap();
function expectDrop(element) {
  dragovers.delete(element);
  element.ownerDocument.addEventListener(
    'dragover', (event) => { dragovers.set(element, event); }, { capture: true, once: true });
}

function acceptsDrop(element) {
  return dragovers.get(element)?.defaultPrevented === true;
}
