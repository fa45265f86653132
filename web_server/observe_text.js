// Isolated world: the lines of text between the elements of the walk.
const LONG_TEXT = 1000;

// Pieces of one line of text are gathered until something else stands between them.
function flushText() {
  const run = walk.run;
  if (!run) return;
  walk.run = null;
  const name = clean(run.text);
  if (!name || !(run.inView || walk.full)) return;
  walk.out.push(record(run.depth, pieceId(run.node, run.start), 'StaticText',
    run.inView ? IN_VIEW : 0, '', name, []));
}

function addText(c, node, start, text, inView) {
  let run = walk.run;
  if (run && (run.text.length > LONG_TEXT || run.depth !== c.depth)) {
    flushText();
    run = null;
  }
  if (!run) {
    if (!/\S/.test(text)) return;
    run = walk.run = { depth: c.depth, node, start, text: '', inView: false };
  }
  run.text += text;
  if (inView && /\S/.test(text)) run.inView = true;
}

function textInView(c, node, start, end) {
  if (c.whole) return true;
  const range = new Range();
  range.setStart(node, start);
  range.setEnd(node, end);
  return intersect(range.getBoundingClientRect(), c.clip) !== null;
}

function visitText(node, c) {
  if (c.mute || c.ariaHidden || c.invisible) return;
  const data = node.data;
  if (c.row) {
    c.row.text(transformed(data, c.style));
    return;
  }
  if (!/\S/.test(data)) {
    if (walk.run) walk.run.text += ' ';
    return;
  }
  if (data.length <= LONG_TEXT * 1.5) {
    addText(c, node, 0, transformed(data, c.style), c.on && textInView(c, node, 0, data.length));
    return;
  }
  for (let start = 0; start < data.length;) {
    let end = Math.min(data.length, start + LONG_TEXT);
    if (end < data.length) {
      const space = data.lastIndexOf(' ', end);
      const line = data.lastIndexOf('\n', end);
      end = line > start + LONG_TEXT / 2 ? line : space > start + LONG_TEXT / 2 ? space : end;
    }
    flushText();
    addText(c, node, start, transformed(data.slice(start, end), c.style),
      c.on && textInView(c, node, start, end));
    start = end;
  }
  flushText();
}
