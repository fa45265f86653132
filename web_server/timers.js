// Runs in every frame before the page's own scripts, in the page's world. Notes the short timers
// that an action's handlers set, so that settling can wait for them. The page cannot tell: what
// replaces setTimeout and clearTimeout prints as native code, and the questions come as events
// whose name is a secret of this browser session.
(token) => {
  const LONGEST_MS = 600;
  const DEEPEST = 8;
  const nativeSet = window.setTimeout;
  const nativeClear = window.clearTimeout;
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

  window.setTimeout = new Proxy(nativeSet, {
    apply(target, self, args) {
      const callback = args[0];
      if (typeof callback !== 'function') return applyFunction(target, self, args);
      const delay = Number(args[1]) || 0;
      const counted = armed && !foreign && delay <= LONGEST_MS && depth < DEEPEST;
      const level = depth + 1;
      let id;
      const wrapped = function (...rest) {
        const before = [depth, foreign];
        if (counted) forget(id);
        depth = counted ? level : 0;
        foreign = !counted;
        try {
          return applyFunction(callback, this, rest);
        } finally {
          depth = before[0];
          foreign = before[1];
        }
      };
      args[0] = wrapped;
      id = applyFunction(target, self, args);
      if (counted) {
        applyFunction(mapSet, pending, [id, true]);
        count += 1;
      }
      return id;
    },
  });
  window.clearTimeout = new Proxy(nativeClear, {
    apply(target, self, args) {
      forget(args[0]);
      return applyFunction(target, self, args);
    },
  });

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
