// Runs in an isolated world of the page's main frame. `arm()` begins to watch, before an action;
// `quiet(ms)` resolves when what the action started has come to rest, or after `ms`.
(token) => {
  if (globalThis.ckSettle) return;
  const RESTLESS_FRAMES = 40;
  const LONGEST_ANIMATION_MS = 1000;
  const COSMETIC = new Set([
    'offset', 'computedOffset', 'easing', 'composite', 'color', 'backgroundColor', 'borderColor',
    'borderTopColor', 'borderRightColor', 'borderBottomColor', 'borderLeftColor', 'boxShadow',
    'textShadow', 'outlineColor', 'fill', 'stroke', 'textDecorationColor', 'caretColor', 'filter',
    'backgroundPosition', 'backgroundImage', 'columnRuleColor', 'outlineOffset', 'outlineWidth',
    'backgroundPositionX', 'backgroundPositionY', 'webkitTextFillColor', 'textEmphasisColor',
    'webkitTextStrokeColor',
  ]);
  const restless = new WeakSet();   // nodes that change for ever: tickers, animations by script
  let restlessSeen = 0;
  let frames = new Map();           // node -> in how many frames it changed since arm()
  let changes = 0;
  let dirty = false;
  const observer = new MutationObserver((records) => take(records));

  function take(records) {
    const targets = new Set();
    for (const record of records) targets.add(record.target);
    for (const node of targets) {
      if (restless.has(node)) continue;
      changes += 1;
      dirty = true;
      const seen = (frames.get(node) || 0) + 1;
      frames.set(node, seen);
      if (seen >= RESTLESS_FRAMES) {
        restless.add(node);
        restlessSeen += 1;
      }
    }
  }

  const ask = (what) => !document.dispatchEvent(new CustomEvent(token + what, {cancelable: true}));

  function documents() {
    const found = [document];
    for (let i = 0; i < found.length && found.length < 20; i += 1) {
      for (const frame of found[i].querySelectorAll('iframe, frame')) {
        const inner = frame.contentDocument;
        if (inner && inner.documentElement) found.push(inner);
      }
    }
    return found;
  }

  function animating() {
    for (const animation of document.getAnimations()) {
      if (animation.playState !== 'running' || !animation.effect) continue;
      const timing = animation.effect.getComputedTiming();
      const left = timing.endTime - (animation.currentTime || 0);
      if (!(left > 0 && left <= LONGEST_ANIMATION_MS)) continue;
      const moves = animation.effect.getKeyframes().some(
        (frame) => Object.keys(frame).some((name) => !COSMETIC.has(name)));
      if (moves) return true;
    }
    return false;
  }

  const frame = () => new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => { clearTimeout(timer); resolve(); });
  });

  function watch() {
    observer.disconnect();
    const options = {subtree: true, childList: true, attributes: true, characterData: true};
    for (const inner of documents()) observer.observe(inner, options);
    frames = new Map();
    changes = 0;
    dirty = false;
  }

  globalThis.ckSettle = {
    arm() {
      watch();
      ask('arm');
    },
    async quiet(milliseconds) {
      const end = performance.now() + milliseconds;
      let calm = 0;
      let late = false;
      while (calm < 2) {
        take(observer.takeRecords());
        const animated = animating();
        const loading = document.readyState === 'loading';
        const busy = dirty || ask('busy') || animated || loading;
        dirty = false;
        calm = busy ? 0 : calm + 1;
        if (performance.now() > end) { late = true; break; }
        if (calm < 2) await frame();
      }
      return {changes, late, restless: restlessSeen};
    },
    rest() {
      observer.disconnect();
      frames = new Map();
      ask('rest');
    },
  };
  watch();
}
