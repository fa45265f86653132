// Part of settling: animation frames, running animations, and content that changes unseen.
/* global documents, trees -- changes.js */
/* exported awaitAnimations, changesUnseen, isAnimating, nextFrame, pause */

const LONGEST_ANIMATION_MS = 1000;
const LONGEST_AFTER_KEY_MS = 400;
let afterKey = false;  // whether the action is a key, after which most animations are decoration
// Animating only these properties moves nothing.
const COSMETIC = new Set([
  'offset', 'computedOffset', 'easing', 'composite', 'color', 'backgroundColor', 'borderColor',
  'borderTopColor', 'borderRightColor', 'borderBottomColor', 'borderLeftColor', 'boxShadow',
  'textShadow', 'outlineColor', 'fill', 'stroke', 'textDecorationColor', 'caretColor', 'filter',
  'backgroundPosition', 'backgroundImage', 'columnRuleColor', 'outlineOffset', 'outlineWidth',
  'backgroundPositionX', 'backgroundPositionY', 'webkitTextFillColor', 'textEmphasisColor',
  'webkitTextStrokeColor',
]);

// Timers never fire in a document that may not run scripts (a sandbox that its server asked for).
// Frames and messages still arrive there.
let timersFire = false;
setTimeout(() => { timersFire = true; });

function runSoon(callback) {
  if (timersFire) {
    setTimeout(callback);
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = callback;
  port2.postMessage(0);
}

function pause(callback) {
  if (timersFire) setTimeout(callback, 30);
  else requestAnimationFrame(callback);
}

// Resolves after a whole frame, which includes the observers of sizes and positions.
function nextFrame() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => { clearTimeout(timer); runSoon(resolve); });
  });
}

// Whether an element shows nothing and lets the pointer through, such as the ripple of a button.
function isDecoration(node) {
  return !!node && !node.textContent.trim() && !node.shadowRoot
    && !node.querySelector('img, svg, canvas, video, input, button')
    && getComputedStyle(node).pointerEvents === 'none';
}

// Selects the animations to wait for: those of an action, or only the short ones after a key.
function awaitAnimations(ofKey) {
  afterKey = ofKey;
}

// Whether a short animation that moves something is running.
function isAnimating() {
  for (const animation of [...trees].flatMap((tree) => tree.getAnimations())) {
    if (animation.playState !== 'running' || !animation.effect) continue;
    const timing = animation.effect.getComputedTiming();
    const left = timing.endTime - (animation.currentTime || 0);
    if (!(left > 0 && left <= LONGEST_ANIMATION_MS)) continue;
    if (afterKey && timing.endTime > LONGEST_AFTER_KEY_MS) continue;
    if (isDecoration(animation.effect.target)) continue;
    const moves = animation.effect.getKeyframes().some(
      (frame) => Object.keys(frame).some((name) => !COSMETIC.has(name)));
    if (moves) return true;
  }
  return false;
}

// Whether the page may change without a change of its nodes: in a focused frame of another origin,
// or on a canvas in view.
function changesUnseen() {
  return documents().some((inner) => isForeignFrame(inner.activeElement)
    || [...inner.getElementsByTagName('canvas')].some(isCanvasInView));
}

function isForeignFrame(element) {
  return !!element && /^(iframe|frame)$/.test(element.localName) && !element.contentDocument;
}

function isCanvasInView(canvas) {
  const box = canvas.getBoundingClientRect();
  return box.width * box.height > 400 && box.bottom > 0 && box.right > 0;
}
