// Part of settling: whether a document has script files and shows nothing yet but a splash screen.
/* exported isBlank */

const CONTENT = 'a[href],button,input,select,textarea,canvas,iframe,frame,video,audio,object,embed,'
  + 'table,[role=button],[role=link],[contenteditable]';
const SPLASH = /^(please wait|loading|initiali[sz]ing|starting)\b/i;
const LONG_SPLASH = 80;
const POINTS = [0.1, 0.5, 0.9];  // shares of the viewport

function isBlank() {
  const body = document.body;
  if (!body || body.localName !== 'body' || !document.querySelector('script[src],script[type=module]')) {
    return false;
  }
  return showsNothing(body) || isBehindSplash();
}

function showsNothing(element) {
  for (const inner of element.querySelectorAll(CONTENT)) if (inner.checkVisibility()) return false;
  const text = shownText(element);
  return !text || text.length < LONG_SPLASH && SPLASH.test(text);
}

// Whether an element without content lies over the whole document, which is being built behind it.
function isBehindSplash() {
  let over = null;
  for (const x of POINTS) {
    for (const y of POINTS) {
      const hit = document.elementFromPoint(x * innerWidth, y * innerHeight);
      over = over || layerOf(hit);
      if (!over || !over.contains(hit)) return false;
    }
  }
  return over !== document.body && showsNothing(over);
}

// The outermost positioned element around an element, which is not the whole page.
function layerOf(element) {
  let layer = null;
  for (let e = element; e && e !== document.body; e = e.parentElement) {
    if (/^(fixed|absolute)$/.test(getComputedStyle(e).position)) layer = e;
  }
  return layer;
}

// The beginning of the shown text. Custom elements may show text in shadow trees.
function shownText(body) {
  let text = '';
  const nodes = document.createTreeWalker(body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = nodes.nextNode(); node && text.length < LONG_SPLASH; node = nodes.nextNode()) {
    if (node.nodeType === 1) {
      if (node.shadowRoot || node.localName.includes('-')) return 'x'.repeat(LONG_SPLASH);
    } else if (/\S/.test(node.data) && node.parentElement.checkVisibility({ visibilityProperty: true })) {
      text = `${text} ${node.data.trim()}`.trim();
    }
  }
  return text;
}
