// Runs in an isolated world of the page's main frame. `arm()` begins to watch, before an action;
// `quiet(ms)` resolves when what the action started has come to rest, or after `ms`.
(token) => {
  if (globalThis.ckSettle) return;
  const RESTLESS_FRAMES = 40;
  const LONGEST_ANIMATION_MS = 1000;
  const LONGEST_STATE = 2000000;
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
  let told = null;                  // the storage as it was last told
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

  // What is in a frame of another origin changes without our seeing it.
  function isForeign(element) {
    return !!element && /^(iframe|frame)$/.test(element.localName) && !element.contentDocument;
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

  // In a document that may run no scripts (a sandbox that its server asked for) no timer ever
  // fires, ours neither, but frames and messages come.
  let timersFire = false;
  setTimeout(() => { timersFire = true; });
  const soon = (then) => {
    if (timersFire) return setTimeout(then);
    const {port1, port2} = new MessageChannel();
    port1.onmessage = then;
    port2.postMessage(0);
  };
  const pause = (then) => {
    if (timersFire) setTimeout(then, 30);
    else requestAnimationFrame(then);
  };

  // A whole frame: also what observers of sizes and places do after the animation callbacks.
  const frame = () => new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => { clearTimeout(timer); soon(resolve); });
  });

  // What a person puts into a field changes no node of the document.
  const edited = () => { changes += 1; };
  for (const kind of ['input', 'change']) document.addEventListener(kind, edited, true);

  // Of a link with `download` the browser tells nothing until the server has answered. Whether
  // the page kept the click for itself shows only after its own listeners.
  let linkClicks = [];
  let copied = false;               // since it was last told
  const copies = () => { copied = true; };
  const heard = new WeakSet();
  const clicked = (event) => {
    const link = event.composedPath().find((node) => node.localName === 'a' && node.href);
    if (link && link.hasAttribute('download') && /^https?:/.test(link.href)) {
      linkClicks.push([event, link.href]);
    }
  };
  const downloads = () => linkClicks.filter(([event]) => !event.defaultPrevented).map(([, url]) => url);

  function watch() {
    observer.disconnect();
    const options = {subtree: true, childList: true, attributes: true, characterData: true};
    for (const inner of documents()) {
      observer.observe(inner, options);
      if (heard.has(inner)) continue;
      heard.add(inner);
      inner.addEventListener('click', clicked, true);
      for (const kind of ['copy', 'cut']) inner.addEventListener(kind, copies, true);
    }
    frames = new Map();
    changes = 0;
    dirty = false;
  }

  globalThis.ckSettle = {
    arm() {
      watch();
      linkClicks = [];
      ask('arm');
    },
    async quiet(milliseconds) {
      const end = performance.now() + milliseconds;
      let late = false;
      // Quiet is a whole frame in which nothing changed and after which nothing is pending. What
      // the action changed at once counts as a change, not as unrest.
      take(observer.takeRecords());
      dirty = false;
      for (let busy = true; busy;) {
        await frame();
        take(observer.takeRecords());
        busy = dirty || ask('busy') || animating();
        dirty = false;
        late = busy && performance.now() > end;
        if (late) break;
      }
      const answer = {changes, late, copied, downloads: downloads()};
      copied = false;
      const unseen = documents().some((inner) => isForeign(inner.activeElement));
      return {...answer, unseen, restless: restlessSeen, seen: ask('still')};
    },
    // Resolves at the first change of the document, or after so many milliseconds.
    changed(milliseconds) {
      watch();
      return new Promise((resolve) => {
        const end = performance.now() + milliseconds;
        const look = () => {
          take(observer.takeRecords());
          if (dirty || performance.now() > end) resolve(dirty);
          else pause(look);
        };
        look();
      });
    },
    // Resolves when the text is on the page (true), or after so many milliseconds (false).
    text(wanted, milliseconds) {
      watch();
      const plain = (text) => text.replace(/\s+/g, ' ').toLowerCase();
      const needle = plain(wanted).trim();
      const present = () => documents().some(
        (inner) => inner.body && plain(inner.body.innerText).includes(needle));
      return new Promise((resolve) => {
        const end = performance.now() + milliseconds;
        let first = true;
        const look = () => {
          take(observer.takeRecords());
          const found = (first || dirty) && present();
          first = dirty = false;
          if (found || performance.now() > end) resolve(found);
          else pause(look);
        };
        look();
      });
    },
    // Scrolls the page, or what scrolls most of it, by a share of the visible size.
    scroll(dx, dy) {
      const room = (box) => {
        const before = [box.scrollLeft, box.scrollTop];
        box.scrollBy({left: dx * box.clientWidth, top: dy * box.clientHeight, behavior: 'instant'});
        return box.scrollLeft !== before[0] || box.scrollTop !== before[1];
      };
      const scrolls = (box) => {
        const style = getComputedStyle(box);
        return (dy && box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(style.overflowY))
          || (dx && box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(style.overflowX));
      };
      const page = document.scrollingElement || document.documentElement;
      if (room(page)) return 'page';
      let box = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
      for (; box; box = box.parentElement) if (box !== page && scrolls(box) && room(box)) return 'box';
      const boxes = [...document.querySelectorAll(
        'div, main, section, ul, ol, article, nav, pre, aside, form, fieldset, dialog, textarea')]
        .filter((each) => each !== page && scrolls(each))
        .sort((a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight);
      for (const each of boxes.slice(0, 5)) if (room(each)) return 'box';
      const fixed = page.scrollHeight <= page.clientHeight + 1 && !boxes.length;
      return fixed ? 'none' : 'end';
    },
    // Stops watching. Returns what a crash would lose, if that is otherwise than the last time.
    rest(again) {
      observer.disconnect();
      frames = new Map();
      ask('rest');
      let state = null;
      try {
        state = JSON.stringify(
          [location.origin, {...localStorage}, {...sessionStorage}, document.cookie]);
      } catch {
        return null;  // an origin of its own has no storage
      }
      if (state.length > LONGEST_STATE || state === told && !again) return null;
      told = state;
      return state;
    },
  };
  watch();
}
