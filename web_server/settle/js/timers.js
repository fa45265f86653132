// Runs in every frame, in the page's own world, before the page's scripts. Counts the short timers
// and animation frames that the handlers of an action request, so that settling can wait for them.
// settle.js asks by events whose names contain the secret `TOKEN`. The functions that replace
// setTimeout and others print as native code; only stack traces in callbacks show one more frame.
/* global TOKEN */

const LONGEST_MS = 600;        // longer timers are not waited for
const MAX_DEPTH = 30;          // frames of an animation by script that are waited for
const MAX_DEPTH_LOADING = 8;   // the same while the page loads
const SHORT_INTERVAL_MS = 100;
const ANIMATION_MS = 800;      // an interval that runs longer is a ticker
const REPEATS = 2;             // a timer that set itself again more often is a ticker
const TICKS = 6;               // after so many repeats, all timers of that delay are tickers

// The page may replace the methods of built-in objects, so they are stored before its scripts run.
const apply = Reflect.apply;
const { get: mapGet, set: mapSet, delete: mapDelete, clear: mapClear } = Map.prototype;
const { get: weakGet, set: weakSet } = WeakMap.prototype;
const { add: setAdd, has: setHas } = Set.prototype;
const now = performance.now.bind(performance);

const natives = new WeakMap();  // replacement -> native function
const pending = new Map();      // keys of the counted timers that have not fired
const tickerDelays = new Set();
let count = 0;                  // size of `pending`
let armed = true;               // whether timers are counted; a loading page is busy
let acting = false;             // whether an action has started in this document
let actionNumber = 0;           // timers of an earlier action are not counted
// Of the code that runs now:
let depth = 0;                  // how many counted timers led to it
let uncounted = false;          // whether a timer that is not counted started it
let running = null;             // the timer that started it

function forget(key) {
  if (apply(mapGet, pending, [key]) !== undefined) {
    apply(mapDelete, pending, [key]);
    count -= 1;
  }
}

// Wraps a callback, so that the timers that it sets are known to result from the action.
function wrap(callback, timer) {
  const level = depth + 1;
  return function (...rest) {
    const before = [depth, uncounted, running];
    if (timer.actionNumber !== actionNumber) timer.counted = false;
    if (timer.counted && !(timer.until > now())) {
      forget(timer.key);
      timer.counted = timer.until === 0;
    }
    running = timer;
    depth = timer.counted ? level : 0;
    uncounted = !timer.counted;
    try {
      return apply(callback, this, rest);
    } finally {
      depth = before[0];
      uncounted = before[1];
      running = before[2];
    }
  };
}

// How many timers of the same delay in a row led to a new one of this delay: code that polls.
function repeatsOf(delay) {
  const times = delay && running && running.delay === delay ? running.times + 1 : 0;
  if (times >= TICKS) apply(setAdd, tickerDelays, [delay]);
  return times;
}

function isTicker(delay, times) {
  if (!times) return false;
  if (apply(setHas, tickerDelays, [delay])) return true;
  return delay < SHORT_INTERVAL_MS ? times * delay >= ANIMATION_MS : times >= REPEATS;
}

// Replaces a native function by one that prints the same.
function disguise(native, handler) {
  const replacement = new Proxy(native, { apply: handler });
  apply(weakSet, natives, [replacement, native]);
  return replacement;
}

// Wraps setTimeout and others. `kind` separates timers ('t') from frames ('f'). `longest`: the
// longest delay that is counted, in ms. `lifetime`: ms for which it counts; 0: until it fires.
function countTimers(native, kind, longest, lifetime) {
  return disguise(native, (target, self, args) => {
    if (typeof args[0] !== 'function') return apply(target, self, args);
    const delay = kind === 'f' ? 0 : Number(args[1]) || 0;
    const times = lifetime ? 0 : repeatsOf(delay);
    const near = depth < (acting ? MAX_DEPTH : MAX_DEPTH_LOADING) && !isTicker(delay, times);
    const timer = {
      counted: armed && !uncounted && near && delay <= longest && (acting || !lifetime),
      key: '', until: lifetime && now() + lifetime, actionNumber, delay, times,
    };
    args[0] = wrap(args[0], timer);
    const id = apply(target, self, args);
    if (timer.counted) {
      timer.key = kind + id;
      apply(mapSet, pending, [timer.key, true]);
      count += 1;
    }
    return id;
  });
}

function forgetCleared(native, kind) {
  return disguise(native, (target, self, args) => {
    forget(kind + args[0]);
    return apply(target, self, args);
  });
}

window.setTimeout = countTimers(setTimeout, 't', LONGEST_MS, 0);
window.setInterval = countTimers(setInterval, 't', SHORT_INTERVAL_MS, ANIMATION_MS);
window.clearTimeout = forgetCleared(clearTimeout, 't');
window.clearInterval = forgetCleared(clearInterval, 't');
window.requestAnimationFrame = countTimers(requestAnimationFrame, 'f', 0, 0);
window.cancelAnimationFrame = forgetCleared(cancelAnimationFrame, 'f');
Function.prototype.toString = disguise(Function.prototype.toString, (target, self, args) =>
  apply(target, apply(weakGet, natives, [self]) || self, args));

// Pointer lock is refused: it would take all clicks, also those in other frames.
const reject = Promise.reject.bind(Promise);
const dispatch = EventTarget.prototype.dispatchEvent;
Element.prototype.requestPointerLock = disguise(Element.prototype.requestPointerLock, () => {
  queueMicrotask(() => apply(dispatch, document, [new Event('pointerlockerror')]));
  return reject(new DOMException('The user has refused the request.', 'NotAllowedError'));
});

document.addEventListener(TOKEN + 'arm', () => {
  armed = acting = true;
  actionNumber += 1;
  apply(mapClear, pending, []);
  count = 0;
});
document.addEventListener(TOKEN + 'rest', () => { armed = false; });
document.addEventListener(TOKEN + 'busy', (event) => {
  if (count > 0) event.preventDefault();
});
