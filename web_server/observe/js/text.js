// Isolated world: the lines of text between the elements of the walk.
const LONG_TEXT = 1000;
const VERY_LONG_TEXT = 20000;

// What stands between links without saying anything: commas, dots, bars, arrows.
const SEPARATORS = /^[\s\p{P}|<>~+=^`]*$/u;
const LINE_COST = 28; // what a line of its own takes beside its text, in characters of text

// Does an element show what stands in an editor that takes its keys by a field that nobody sees? It
// is hidden from those who read, as the field tells them of the line with the cursor alone.
function drawsText(element, rect) {
  if (rect.width < 100 || rect.height < 12 || !/\S/.test(element.textContent)) return false;
  let around = element.parentElement;
  for (let i = 0; around && i < 4; i++, around = around.parentElement) {
    for (const field of around.querySelectorAll('textarea,[role=textbox]')) {
      if (element.contains(field) || !field.checkVisibility()) continue;
      const box = field.getBoundingClientRect();
      return box.width < 8 || box.height < 8 || getComputedStyle(field).opacity === '0';
    }
  }
  return false;
}

// The text of one line is gathered until something else stands between. A link in the middle of a
// sentence need not break it: its text is then part of the line, its own line stands below.
// Whichever is shorter is chosen, by the text alone, so that it does not depend on what is in view.
function flushText() {
  const run = walk.run;
  if (!run) return;
  walk.run = null;
  if (run.names < 0) {
    for (const part of run.parts) putText(run.depth, part);
    return;
  }
  const texts = run.parts.filter((part) => !part.lines && !SEPARATORS.test(part.text));
  if ((texts.length - 1) * LINE_COST >= run.names) {
    putPhrase(run, texts[0]);
    return;
  }
  for (const part of run.parts) {
    if (part.lines) for (const line of part.lines) walk.out.push(raised(line));
    else if (texts.includes(part)) putText(run.depth, part);
  }
}

function putText(depth, part) {
  const name = clean(part.text);
  if (!name || !(part.inView || walk.full)) return;
  walk.out.push(record(depth, pieceId(part.node, part.start), 'StaticText',
    part.inView ? IN_VIEW : 0, '', name, []));
}

function putPhrase(run, first) {
  const lines = run.parts.flatMap((part) => part.lines || []);
  const inView = run.parts.some((part) => part.inView);
  if (inView || walk.full || lines.length) {
    walk.out.push(record(run.depth, pieceId(first.node, first.start), 'StaticText',
      inView ? IN_VIEW : 0, '', clean(run.parts.map((part) => part.text).join('')), []));
  }
  for (const line of lines) walk.out.push(line);
}

// A record one level less deep.
function raised(line) {
  const end = line.indexOf('\x1f');
  return line.slice(0, end) - 1 + line.slice(end);
}

// The run of text that is gathered at this place, if there is one.
function runAt(c) {
  const run = walk.run;
  if (run && (run.size > LONG_TEXT || run.depth !== c.depth)) flushText();
  return walk.run;
}

// `names`: how many characters of the text are said again by the lines of links; -1 without links.
function newRun(c) {
  return (walk.run = { depth: c.depth, size: 0, names: -1, parts: [] });
}

function addText(c, node, start, text, inView) {
  const run = runAt(c) || /\S/.test(text) && newRun(c);
  if (!run) return;
  run.size += text.length;
  let part = run.parts[run.parts.length - 1];
  if (!part || part.lines) {
    if (!/\S/.test(text)) {
      if (part) part.text += text;
      return;
    }
    run.parts.push(part = { node, start, text: '', inView: false, lines: null });
    pieceId(node, start); // numbers run down the page
  }
  part.text += text;
  if (inView && /\S/.test(text)) part.inView = true;
}

// An element to act on in the middle of a line of text.
function visitInPhrase(element, role, rect, inner, c, hints) {
  const run = runAt(c);
  const out = walk.out;
  walk.run = null;
  walk.out = [];
  let name = '';
  let inside;
  try {
    name = visitInteractive(element, role, rect, inner, { ...c, depth: c.depth + 1 }, hints);
    flushText();
  } finally {
    inside = walk.out;
    walk.out = out;
    walk.run = run;
  }
  if (!name) {
    flushText();
    for (const line of inside) walk.out.push(raised(line));
    return;
  }
  const whole = run || newRun(c);
  const text = element.textContent;
  whole.names = Math.max(0, whole.names) + name.length;
  whole.size += name.length;
  whole.parts.push({
    text: (/^\s/.test(text) ? ' ' : '') + name + (/\s$/.test(text) ? ' ' : ''),
    inView: false, lines: inside,
  });
}

function textInView(c, node, start, end) {
  if (c.whole) return true;
  const range = new Range();
  range.setStart(node, start);
  range.setEnd(node, end);
  return intersect(range.getBoundingClientRect(), c.clip) !== null;
}

// Which offsets of a very long text can be in view. To measure each piece takes time that grows with
// the text, so the browser is asked which offsets lie at two corners of what is in view.
function spanInView(node, c) {
  const all = [0, node.data.length];
  const around = node.parentElement;
  if (node.data.length < VERY_LONG_TEXT || !around) return all;
  const seen = intersect(around.getBoundingClientRect(), c.clip);
  if (!seen) return [0, -1];
  const offsets = [];
  for (const [x, y] of [[seen.x1 + 1, seen.y1 + 1], [seen.x2 - 1, seen.y2 - 1]]) {
    const at = node.ownerDocument.caretRangeFromPoint(x, y);
    if (!at || !around.contains(at.startContainer)) return all; // something covers it
    offsets.push(offsetIn(node, at));
  }
  return [Math.min(...offsets) - LONG_TEXT, Math.max(...offsets) + LONG_TEXT];
}

// A place of the document as an offset in a text: its beginning or end for places outside.
function offsetIn(node, at) {
  if (at.startContainer === node) return at.startOffset;
  const order = node.compareDocumentPosition(at.startContainer);
  return order & Node.DOCUMENT_POSITION_FOLLOWING ? node.data.length : 0;
}

function visitText(node, c) {
  if (c.mute || c.ariaHidden || c.invisible) return;
  const data = node.data;
  if (c.row) {
    c.row.text(transformed(data, c.style));
    return;
  }
  if (!/\S/.test(data)) {
    addSpace(c);
    return;
  }
  if (data.length <= LONG_TEXT * 1.5) {
    addText(c, node, 0, transformed(data, c.style), c.on && textInView(c, node, 0, data.length));
    return;
  }
  const [first, last] = c.on && !c.whole ? spanInView(node, c) : [0, data.length];
  for (let start = 0; start < data.length;) {
    let end = Math.min(data.length, start + LONG_TEXT);
    if (end < data.length) {
      // Only this piece is searched: a text without line breaks would be searched as a whole each time.
      const piece = data.slice(start, end + 1);
      const space = piece.lastIndexOf(' ');
      const line = piece.lastIndexOf('\n');
      end = start + (line > LONG_TEXT / 2 ? line : space > LONG_TEXT / 2 ? space : LONG_TEXT);
    }
    flushText();
    addText(c, node, start, transformed(data.slice(start, end), c.style),
      c.on && end > first && start <= last && textInView(c, node, start, end));
    start = end;
  }
  flushText();
}
