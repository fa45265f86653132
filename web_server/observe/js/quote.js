// Isolated world: a text that the page shows, found by its words, to be selected.
const UNQUOTED = 'script,style,noscript,template,textarea,option,title';
// Where pressing and moving the mouse does something else than to select.
const UNDRAGGED = 'a[href],button,label,summary,[draggable=true],[onclick],[role=button],[role=link]';

let quoted = null; // the range found last

// Characters of a tree that are shown, without white space, and where each of them stands. Shadow
// trees and frames have texts of their own: nothing can be selected across their borders.
function charactersOf(root, trees) {
  const found = { text: '', nodes: [], starts: [], places: [] };
  const walker = documentOf(root).createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (typeOf(node) === 1) {
      const inner = shadowOf(node) || tagOf(node) === 'iframe' && node.contentDocument
        && bodyOf(node.contentDocument);
      if (inner) trees.push(inner);
    } else if (typeOf(node) === 3) {
      addCharacters(found, node);
    }
  }
  return found;
}

function addCharacters(found, node) {
  const data = node.data;
  const parent = parentOf(node);
  const element = parent && (typeOf(parent) === 1 ? parent : parent.host);
  if (!/\S/.test(data) || !element || element.closest(UNQUOTED)
      || !element.checkVisibility({ visibilityProperty: true })) return;
  found.nodes.push(node);
  found.starts.push(found.text.length);
  const places = [];
  let text = '';
  for (let i = 0; i < data.length; i++) {
    if (!/\s/.test(data[i])) {
      text += data[i];
      places.push(i);
    }
  }
  found.text += text;
  found.places.push(places);
}

function squeezed(text) {
  return text.replace(/\s+/g, '');
}

// The same length whatever the language, so that places stay right.
function folded(text) {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    const low = text[i].toLowerCase();
    out += low.length === 1 ? low : text[i];
  }
  return out;
}

function placesOf(text, wanted) {
  const found = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) found.push(at);
  return found;
}

function rangeIn(found, from, length) {
  const range = new Range();
  const point = (at) => {
    let i = found.starts.length - 1;
    while (found.starts[i] > at) i--;
    return [found.nodes[i], found.places[i][at - found.starts[i]]];
  };
  const [first, start] = point(from);
  const [last, end] = point(from + length - 1);
  range.setStart(first, start);
  range.setEnd(last, end + 1);
  return range;
}

// Find the text inside an element, exactly or in another case, and bring it into view.
function quote(id, text) {
  const element = elementOf(id);
  if (!element) return null;
  const wanted = squeezed(text);
  const trees = [element];
  const all = [];
  for (let i = 0; i < trees.length && i < 500; i++) all.push(charactersOf(trees[i], trees));
  for (const plainly of [(t) => t, folded]) {
    const hits = [];
    for (const found of all) {
      const needle = plainly(wanted || found.text);
      if (needle) for (const at of placesOf(plainly(found.text), needle)) hits.push([found, at, needle.length]);
    }
    if (hits.length) {
      quoted = rangeIn(...hits[0]);
      return { ...showQuoted(), count: wanted ? hits.length : 1 };
    }
  }
  return null;
}

function showQuoted() {
  const element = composedParent(quoted.startContainer);
  const view = viewOf(element);
  let rects = [...quoted.getClientRects()].filter((rect) => rect.width > 0);
  const inside = (rect) => rect.top >= 0 && rect.left >= 0 && rect.bottom <= view.innerHeight
    && rect.right <= view.innerWidth;
  const seen = () => rects.length && inside(rects[0]) && inside(rects[rects.length - 1])
    && throughFrames(view, rects[0].left, rects[0].top).inView;
  if (!seen()) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    rects = [...quoted.getClientRects()].filter((rect) => rect.width > 0);
  }
  const offset = frameOffset(element);
  const first = rects[0];
  const last = rects[rects.length - 1];
  if (!first) return { x1: 0, y1: 0, x2: 0, y2: 0, covered_by: null, silent: selectQuoted() };
  const hit = deepElementFromPoint(element.ownerDocument, first.left + 1, (first.top + first.bottom) / 2);
  const covered = hit && !contains(element, hit) && !contains(hit, element);
  const quiet = !seen() || covered === null || dragged(element);
  return {
    x1: first.left + offset.x, y1: (first.top + first.bottom) / 2 + offset.y,
    x2: last.right + offset.x, y2: (last.top + last.bottom) / 2 + offset.y,
    covered_by: covered ? describe(hit) : null, silent: quiet && !covered ? selectQuoted() : false,
  };
}

function dragged(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) {
    if (e.localName === 'body') return false;
    if (e.matches(UNDRAGGED) || noted.click.has(e) || noted.drag.has(e)) return true;
  }
  return false;
}

function selectionOf(node) {
  const root = node.getRootNode();
  return root.getSelection ? root.getSelection() : documentOf(node).getSelection();
}

function selectQuoted() {
  selectionOf(quoted.startContainer).setBaseAndExtent(
    quoted.startContainer, quoted.startOffset, quoted.endContainer, quoted.endOffset);
  return true;
}

// Is the text selected? A mouse that snapped to something else is corrected. null: it is gone.
function quoteSelected() {
  if (!quoted || !isLive(quoted.startContainer) || !isLive(quoted.endContainer)) return null;
  const same = () => {
    const selection = selectionOf(quoted.startContainer);
    return squeezed(selection.toString()) !== '' && folded(squeezed(selection.toString()))
      === folded(squeezed(quoted.toString()));
  };
  if (!same()) selectQuoted();
  return same();
}
