// Part of settling: whether a document has script files and shows nothing yet but a splash screen.
/* exported isBlank */

const CONTENT = 'a[href],button,input,select,textarea,canvas,iframe,frame,video,audio,object,embed,'
  + 'table,[role=button],[role=link],[contenteditable]';
const SPLASH = /^(please wait|loading|initiali[sz]ing|starting)\b/i;
const LONG_SPLASH = 80;

function isBlank() {
  const body = document.body;
  if (!body || body.localName !== 'body' || !document.querySelector('script[src],script[type=module]')) {
    return false;
  }
  for (const element of body.querySelectorAll(CONTENT)) if (element.checkVisibility()) return false;
  const text = shownText(body);
  return !text || text.length < LONG_SPLASH && SPLASH.test(text);
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
