// Runs in every frame before the page's own scripts, in the page's world. Notes the short timers
// and animation frames that an action's handlers ask for, so that settling can wait for them. What
// replaces setTimeout and its like prints as native code, and the questions come as events whose
// name is a secret of this browser session. Only stack traces inside callbacks show one frame more.
(token) => {
  const LONGEST_MS = 600;
  const DEEPEST = 30;         // so many frames long an animation by script may be
  const DEEPEST_LOADING = 8;
  const SHORT_INTERVAL_MS = 100;
  const ANIMATION_MS = 800;   // an interval that lives longer than that is a ticker
  const REPEATS = 2;          // so often a long timer may set another of the same length
  const TICKS = 6;            // after so many times that length is known to be a ticker's
  const mapGet = Map.prototype.get, mapSet = Map.prototype.set, mapDelete = Map.prototype.delete;
  const mapClear = Map.prototype.clear;
  const applyFunction = Reflect.apply;
  const natives = new WeakMap();
  const weakGet = WeakMap.prototype.get, weakSet = WeakMap.prototype.set;
  const now = performance.now.bind(performance);
  const pending = new Map();
  let armed = true;   // a page that loads is busy with itself
  let acting = false; // an action was begun since
  let depth = 0;      // how many counted timers led to the code that runs now
  let foreign = false;  // the code that runs now was started by a timer that is not counted
  let running = null;   // the timer that started the code that runs now
  let era = 0;          // how many actions were begun: what one set is no doing of the next
  let count = 0;
  const tickers = new Set();
  const setAdd = Set.prototype.add, setHas = Set.prototype.has;

  const forget = (id) => {
    if (applyFunction(mapGet, pending, [id]) !== undefined) {
      applyFunction(mapDelete, pending, [id]);
      count -= 1;
    }
  };

  // Wraps a callback so that what it sets in turn is known to come from the action as well.
  const wrap = (callback, timer) => {
    const level = depth + 1;
    return function (...rest) {
      const before = [depth, foreign, running];
      if (timer.era !== era) timer.counted = false;
      if (timer.counted && !(timer.until > now())) {
        forget(timer.key);
        timer.counted = timer.until === 0;
      }
      running = timer;
      depth = timer.counted ? level : 0;
      foreign = !timer.counted;
      try {
        return applyFunction(callback, this, rest);
      } finally {
        depth = before[0];
        foreign = before[1];
        running = before[2];
      }
    };
  };

  // How often a timer of this length was set by one of the same length, which was set by ...: what
  // looks again and again whether something happened. Zero for frames and the like.
  const repeated = (delay) => {
    const times = delay && running && running.delay === delay ? running.times + 1 : 0;
    if (times >= TICKS) applyFunction(setAdd, tickers, [delay]);
    return times;
  };
  const ticks = (delay, times) => {
    if (!times) return false;
    if (applyFunction(setHas, tickers, [delay])) return true;
    return delay < SHORT_INTERVAL_MS ? times * delay >= ANIMATION_MS : times >= REPEATS;
  };
  const disguise = (native, handler) => {
    const proxy = new Proxy(native, { apply: handler });
    applyFunction(weakSet, natives, [proxy, native]);
    return proxy;
  };
  // `lasting`: for how many milliseconds what is set may stay pending; 0: until it fires.
  const later = (native, mark, longest, lasting) => disguise(native, (target, self, args) => {
    if (typeof args[0] !== 'function') return applyFunction(target, self, args);
    const delay = mark === 'f' ? 0 : Number(args[1]) || 0;
    const times = lasting ? 0 : repeated(delay);
    const near = depth < (acting ? DEEPEST : DEEPEST_LOADING) && !ticks(delay, times);
    const timer = {
      counted: armed && !foreign && near && delay <= longest && (acting || !lasting), key: '',
      until: lasting && now() + lasting, era, delay, times,
    };
    args[0] = wrap(args[0], timer);
    const id = applyFunction(target, self, args);
    if (timer.counted) {
      timer.key = mark + id;
      applyFunction(mapSet, pending, [timer.key, true]);
      count += 1;
    }
    return id;
  });
  const earlier = (native, mark) => disguise(native, (target, self, args) => {
    forget(mark + args[0]);
    return applyFunction(target, self, args);
  });
  window.setTimeout = later(setTimeout, 't', LONGEST_MS, 0);
  window.setInterval = later(setInterval, 't', SHORT_INTERVAL_MS, ANIMATION_MS);
  window.clearTimeout = earlier(clearTimeout, 't');
  window.clearInterval = earlier(clearInterval, 't');
  window.requestAnimationFrame = later(requestAnimationFrame, 'f', 0, 0);
  window.cancelAnimationFrame = earlier(cancelAnimationFrame, 'f');
  Function.prototype.toString = disguise(Function.prototype.toString, (target, self, args) =>
    applyFunction(target, applyFunction(weakGet, natives, [self]) || self, args));

  // Who holds the pointer gets all clicks, also those that go to other frames: nobody gets it.
  const refusal = Promise.reject.bind(Promise);
  const tell = EventTarget.prototype.dispatchEvent;
  Element.prototype.requestPointerLock = disguise(Element.prototype.requestPointerLock, () => {
    queueMicrotask(() => applyFunction(tell, document, [new Event('pointerlockerror')]));
    return refusal(new DOMException('The user has refused the request.', 'NotAllowedError'));
  });

  document.addEventListener(token + 'arm', () => {
    armed = acting = true;
    era += 1;
    applyFunction(mapClear, pending, []);
    count = 0;
  });
  document.addEventListener(token + 'rest', () => { armed = false; });
  document.addEventListener(token + 'busy', (event) => {
    if (count > 0) event.preventDefault();
  });
}
