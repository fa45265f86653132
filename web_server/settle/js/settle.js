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
  let watched = new Set();          // documents, and the open shadow trees in them
  const observer = new MutationObserver((records) => take(records));
  const MOST_TREES = 3000;

  // Watches a tree, and the shadow trees in it: of their changes the one around them hears nothing.
  function watchTree(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
    for (let node = root; node && watched.size < MOST_TREES; node = walker.nextNode()) {
      const inner = node.shadowRoot;
      if (inner && !watched.has(inner)) {
        observe(inner);
        watchTree(inner);
      }
    }
  }

  function observe(tree) {
    watched.add(tree);
    observer.observe(
      tree, {subtree: true, childList: true, attributes: true, characterData: true});
  }

  function take(records) {
    const targets = new Set();
    for (const record of records) {
      targets.add(record.target);
      for (const added of record.addedNodes) if (added.nodeType === 1) watchTree(added);
    }
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

  // What is drawn on a canvas changes no node either.
  function hasCanvas() {
    return documents().some((inner) => [...inner.getElementsByTagName('canvas')].some((canvas) => {
      const box = canvas.getBoundingClientRect();
      return box.width * box.height > 400 && box.bottom > 0 && box.right > 0;
    }));
  }

  // What shows nothing and lets the mouse through, such as the ripple of a button.
  const isDecoration = (node) => !!node && !node.textContent.trim() && !node.shadowRoot
    && !node.querySelector('img, svg, canvas, video, input, button')
    && getComputedStyle(node).pointerEvents === 'none';

  function animating() {
    for (const animation of [...watched].flatMap((tree) => tree.getAnimations())) {
      if (animation.playState !== 'running' || !animation.effect) continue;
      const timing = animation.effect.getComputedTiming();
      const left = timing.endTime - (animation.currentTime || 0);
      if (!(left > 0 && left <= LONGEST_ANIMATION_MS)) continue;
      if (isDecoration(animation.effect.target)) continue;
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

  // The innermost element in the middle of the view, and what is drawn around an element.
  function inMiddle() {
    const [x, y] = [innerWidth / 2, innerHeight / 2];
    let hit = document.elementFromPoint(x, y);
    for (let inner = hit; inner;) {
      inner = hit.shadowRoot && hit.shadowRoot.elementFromPoint(x, y);
      if (inner === hit) break;
      hit = inner || hit;
    }
    return hit;
  }
  const around = (element) => element.assignedSlot || element.parentElement
    || element.getRootNode().host || null;

  // What a person puts into a field changes no node of the document.
  const edited = () => { changes += 1; };
  for (const kind of ['input', 'change']) document.addEventListener(kind, edited, true);
  // Nor does a selection; where the caret stands is none.
  for (const kind of ['select', 'selectionchange']) document.addEventListener(kind, () => {
    const field = document.activeElement;
    const marked = field && typeof field.selectionStart === 'number'
      ? field.selectionStart !== field.selectionEnd : !getSelection().isCollapsed;
    if (marked) changes += 1;
  }, true);

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
    watched = new Set();
    for (const inner of documents()) {
      observe(inner);
      watchTree(inner);
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
      const unseen = documents().some((inner) => isForeign(inner.activeElement)) || hasCanvas();
      return {...answer, unseen, restless: restlessSeen, seen: ask('still')};
    },
    // Resolves when nothing on the page changes or moves for a frame, or after so many milliseconds.
    async still(milliseconds) {
      const end = performance.now() + milliseconds;
      do {
        dirty = false;
        await frame();
        take(observer.takeRecords());
      } while ((dirty || animating()) && performance.now() < end);
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
      const shown = (tree) => tree.body ? tree.body.innerText
        : [...tree.children].map((child) => child.innerText || '').join('\n');
      const present = () => [...watched].some((tree) => plain(shown(tree)).includes(needle));
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
      for (let box = inMiddle(); box; box = around(box)) {
        if (box !== page && scrolls(box) && room(box)) return 'box';
      }
      const trees = [...watched].filter((tree) => tree.ownerDocument === document);
      const boxes = [document, ...trees].flatMap((tree) => [...tree.querySelectorAll(
        'div, main, section, ul, ol, article, nav, pre, aside, form, fieldset, dialog, textarea')])
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
