// Runs in every frame before the page's own scripts, in the page's world. Notes the short timers
// and animation frames that an action's handlers ask for, so that settling can wait for them. The page cannot tell: what
// replaces setTimeout and its like prints as native code, and the questions come as events
// whose name is a secret of this browser session.
(token) => {
  const LONGEST_MS = 600;
  const DEEPEST = 8;
  const mapGet = Map.prototype.get, mapSet = Map.prototype.set, mapDelete = Map.prototype.delete;
  const applyFunction = Reflect.apply;
  const pending = new Map();
  let armed = true;   // a page that loads is busy with itself
  let depth = 0;      // how many counted timers led to the code that runs now
  let foreign = false;  // the code that runs now was started by a timer that is not counted
  let count = 0;

  const forget = (id) => {
    if (applyFunction(mapGet, pending, [id]) !== undefined) {
      applyFunction(mapDelete, pending, [id]);
      count -= 1;
    }
  };

  // Wraps a callback so that what it sets in turn is known to come from the action as well.
  const wrap = (callback, counted, key) => {
    const level = depth + 1;
    return function (...rest) {
      const before = [depth, foreign];
      if (counted) forget(key());
      depth = counted ? level : 0;
      foreign = !counted;
      try {
        return applyFunction(callback, this, rest);
      } finally {
        depth = before[0];
        foreign = before[1];
      }
    };
  };
  const later = (native, mark, short) => new Proxy(native, {
    apply(target, self, args) {
      if (typeof args[0] !== 'function') return applyFunction(target, self, args);
      const counted = armed && !foreign && depth < DEEPEST && short(args);
      let id;
      args[0] = wrap(args[0], counted, () => mark + id);
      id = applyFunction(target, self, args);
      if (counted) {
        applyFunction(mapSet, pending, [mark + id, true]);
        count += 1;
      }
      return id;
    },
  });
  const earlier = (native, mark) => new Proxy(native, {
    apply(target, self, args) {
      forget(mark + args[0]);
      return applyFunction(target, self, args);
    },
  });
  window.setTimeout = later(setTimeout, 't', (args) => (Number(args[1]) || 0) <= LONGEST_MS);
  window.clearTimeout = earlier(clearTimeout, 't');
  window.requestAnimationFrame = later(requestAnimationFrame, 'f', () => true);
  window.cancelAnimationFrame = earlier(cancelAnimationFrame, 'f');

  document.addEventListener(token + 'arm', () => {
    armed = true;
    pending.clear();
    count = 0;
  });
  document.addEventListener(token + 'rest', () => { armed = false; });
  document.addEventListener(token + 'busy', (event) => {
    if (count > 0) event.preventDefault();
  });
}
