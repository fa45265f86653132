// Part of the walker: lines of text.
//
// Adjacent texts are collected in a run, which becomes one line. A link inside a sentence need not
// split the line: its text stays in the line, and its own line follows below.
/* global composedParent, pieceId -- dom.js */
/* global intersect -- geometry.js */
/* global isUnseen, unseenText -- visibility.js */
/* global transformed -- names.js */
/* global struckText -- typography.js */
/* global IN_VIEW, addSpace, clean, record, walk -- walk.js */
/* global visitInteractive -- interactive.js */
/* exported addText, closeMark, flushText, isEditorText, marked, openMark, textBefore, visitInPhrase, visitText */

const LONG_TEXT = 1000;
const VERY_LONG_TEXT = 20000;

// Text between links that has no meaning: commas, dots, bars, arrows.
const SEPARATORS = /^[\s\p{P}|<>~+=^`]*$/u;
const LINE_OVERHEAD = 28; // cost of a separate line beside its text, in characters

// Whether an element shows the text of an editor that receives keys by an invisible field. Editors
// hide such text from screen readers, because the field contains the current line.
function isEditorText(element, rect) {
  if (rect.width < 100 || rect.height < 12 || !/\S/.test(element.textContent)) return false;
  let parent = element.parentElement;
  for (let i = 0; parent && i < 4; i++, parent = parent.parentElement) {
    for (const field of parent.querySelectorAll('textarea,[role=textbox]')) {
      if (element.contains(field) || !field.checkVisibility()) continue;
      const box = field.getBoundingClientRect();
      return box.width < 8 || box.height < 8 || getComputedStyle(field).opacity === '0';
    }
  }
  return false;
}

// Ends the current run. A run with links becomes one sentence or separate lines, whichever is shorter.
// The choice depends on the text alone, not on the viewport.
function flushText() {
  const run = walk.run;
  if (!run) return;
  walk.run = null;
  if (run.names < 0) {
    for (const part of run.parts) putText(run.depth, part);
    return;
  }
  const texts = run.parts.filter((part) => !part.lines && !SEPARATORS.test(part.text));
  if ((texts.length - 1) * LINE_OVERHEAD >= run.names) {
    putSentence(run, texts[0]);
    return;
  }
  for (const part of run.parts) {
    if (part.lines) for (const line of part.lines) walk.out.push(outdented(line));
    else if (texts.includes(part)) putText(run.depth, part);
  }
}

function putText(depth, part) {
  const name = clean(part.text);
  if (!name || !(part.inView || walk.full)) return;
  walk.out.push(record(depth, pieceId(part.node, part.start), 'StaticText',
    part.inView ? IN_VIEW : 0, '', name, part.message ? ['@message'] : []));
}

function putSentence(run, first) {
  const lines = run.parts.flatMap((part) => part.lines || []);
  const inView = run.parts.some((part) => part.inView);
  if (inView || walk.full || lines.length) {
    walk.out.push(record(run.depth, pieceId(first.node, first.start), 'StaticText',
      inView ? IN_VIEW : 0, '', clean(run.parts.map((part) => part.text).join('')),
      first.message ? ['@message'] : []));
  }
  for (const line of lines) walk.out.push(line);
}

// A record at one level less of depth.
function outdented(line) {
  const end = line.indexOf('\x1f');
  return line.slice(0, end) - 1 + line.slice(end);
}

// The current run, if text at this depth can join it.
function runAt(context) {
  const run = walk.run;
  if (run && (run.size > LONG_TEXT || run.depth !== context.depth)) flushText();
  return walk.run;
}

// `names`: number of characters that the lines of links repeat; -1 without links.
function startRun(context) {
  return (walk.run = { depth: context.depth, size: 0, names: -1, parts: [] });
}

// The text in front of the current position, as far as it is on the same line.
function textBefore(context) {
  if (context.row) return context.row.lastText();
  const parts = walk.run && walk.run.parts;
  return parts && parts.length ? parts[parts.length - 1].text : '';
}

// Adds a mark in front of the next text.
function openMark(mark) {
  walk.marks += mark;
}

// Ends a mark: nothing if no text came after `open`.
function closeMark(context, open, close) {
  if (walk.marks.endsWith(open)) walk.marks = walk.marks.slice(0, -open.length);
  else if (context.row) context.row.append(close);
  else if (walk.run) walk.run.parts[walk.run.parts.length - 1].text += close;
}

// A text with the marks in front of it.
function marked(text) {
  if (!walk.marks || !/\S/.test(text)) return text;
  const marks = walk.marks;
  walk.marks = '';
  return text.replace(/^\s*/, (space) => space + marks);
}

function addText(context, node, start, text, inView) {
  text = marked(text);
  const run = runAt(context) || /\S/.test(text) && startRun(context);
  if (!run) return;
  run.size += text.length;
  let part = run.parts[run.parts.length - 1];
  if (!part || part.lines) {
    if (!/\S/.test(text)) {
      if (part) part.text += text;
      return;
    }
    run.parts.push(part = { node, start, text: '', inView: false, lines: null, message: context.message });
    pieceId(node, start); // so that ids increase down the page
  }
  part.text += text;
  if (inView && /\S/.test(text)) part.inView = true;
}

// An interactive element inside a sentence.
function visitInPhrase(element, role, rect, inner, context, hints) {
  const run = runAt(context);
  const out = walk.out;
  walk.run = null;
  walk.out = [];
  let name;
  let lines;
  try {
    name = visitInteractive(element, role, rect, inner, { ...context, depth: context.depth + 1 }, hints);
    flushText();
  } finally {
    lines = walk.out;
    walk.out = out;
    walk.run = run;
  }
  if (!name) {
    flushText();
    for (const line of lines) walk.out.push(outdented(line));
    return;
  }
  const sentence = run || startRun(context);
  const text = element.textContent;
  sentence.names = Math.max(0, sentence.names) + name.length;
  sentence.size += name.length;
  sentence.parts.push({
    text: marked((/^\s/.test(text) ? ' ' : '') + (inner.struck ? struckText(name) : name)
      + (/\s$/.test(text) ? ' ' : '')),
    inView: false, lines,
  });
}

function textInView(context, node, start, end) {
  if (context.entire) return true;
  const range = new Range();
  range.setStart(node, start);
  range.setEnd(node, end);
  return intersect(range.getBoundingClientRect(), context.clip) !== null;
}

// The range of offsets of a very long text that may be in view. Measuring each piece would take time
// in proportion to the text, so the browser finds the offsets at two corners of the visible part.
function offsetsInView(node, context) {
  const all = [0, node.data.length];
  const parent = node.parentElement;
  if (node.data.length < VERY_LONG_TEXT || !parent) return all;
  const seen = intersect(parent.getBoundingClientRect(), context.clip);
  if (!seen) return [0, -1];
  const offsets = [];
  for (const [x, y] of [[seen.x1 + 1, seen.y1 + 1], [seen.x2 - 1, seen.y2 - 1]]) {
    const at = node.ownerDocument.caretRangeFromPoint(x, y);
    if (!at || !parent.contains(at.startContainer)) return all; // something covers it
    offsets.push(offsetIn(node, at));
  }
  return [Math.min(...offsets) - LONG_TEXT, Math.max(...offsets) + LONG_TEXT];
}

// A position in the document as an offset in a text: 0 or its length for positions outside.
function offsetIn(node, at) {
  if (at.startContainer === node) return at.startOffset;
  const order = node.compareDocumentPosition(at.startContainer);
  return order & Node.DOCUMENT_POSITION_FOLLOWING ? node.data.length : 0;
}

function visitText(node, context) {
  if (context.mute || context.ariaHidden || context.invisible) return;
  const data = node.data;
  const unseen = /\S/.test(data) && isUnseen(composedParent(node), context.style);
  const shown = (text) => {
    const written = transformed(text, context.style);
    const lasting = context.struck ? struckText(written) : written;
    return unseen ? unseenText(lasting) : lasting;
  };
  if (context.row) {
    context.row.addText(shown(data));
    return;
  }
  if (!/\S/.test(data)) {
    addSpace(context);
    return;
  }
  if (data.length <= LONG_TEXT * 1.5) {
    const inView = context.inView && textInView(context, node, 0, data.length);
    addText(context, node, 0, shown(data), inView);
    return;
  }
  const partly = context.inView && !context.entire;
  const [first, last] = partly ? offsetsInView(node, context) : [0, data.length];
  for (let start = 0; start < data.length;) {
    let end = Math.min(data.length, start + LONG_TEXT);
    if (end < data.length) {
      // Search this piece only: searching a text without line breaks as a whole takes long.
      const piece = data.slice(start, end + 1);
      const space = piece.lastIndexOf(' ');
      const line = piece.lastIndexOf('\n');
      end = start + (line > LONG_TEXT / 2 ? line : space > LONG_TEXT / 2 ? space : LONG_TEXT);
    }
    flushText();
    addText(context, node, start, shown(data.slice(start, end)),
      context.inView && end > first && start <= last && textInView(context, node, start, end));
    start = end;
  }
  flushText();
}
