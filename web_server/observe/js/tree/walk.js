// Part of the walker: one pass over the composed tree of a document. It writes one record for each
// line of the observation: depth, id, role, flags, box, name, pairs. \x1f separates fields, \x1d
// pairs, \x1e records.
//
// Each visit gets the `context` of the element's surroundings and derives `inner` for its content:
//   depth        level of the line
//   inView       whether the content may be in view
//   entire       whether the content is in view as a whole
//   clip, outer  visible area for normal and for absolutely positioned content
//   frame        {x, y, clip, owner, parent}: origin of the document in the main one, and its frame
//   style        computed style
//   row          RowText that collects the text of the table row, or null
//   mute         whether the name of an element around says the text already
//   phrase       whether this is inline content that left the view of its paragraph
//   interactive, pointer  whether an element around is interactive, has a pointer cursor
//   message      whether an element around reports something to the user
//   ariaHidden, invisible, inert, faded, struck  as the attributes and styles say
/* global nextOf, rootElementOf, tagOf, typeOf -- safe.js */
/* global composedChildren, idOf, shadowOf -- dom.js */
/* global hasBoxInside, intersect -- geometry.js */
/* global anyInternals -- page_records.js */
/* global INTERACTIVE_ROLES, collapse, hasAuthorName, nativeRole, roleOf -- roles.js */
/* global nameOf, textOf -- names.js */
/* global hintsOf -- hints.js */
/* global isMessage -- messages.js */
/* global closeMark, flushText, isEditorText, openMark, textBefore, visitInPhrase, visitText -- text.js */
/* global isStruck, marksAround -- typography.js */
/* global visitContainer, visitForm, visitHeading -- containers.js */
/* global isPlainCell, visitOffScreen, visitRows -- offscreen.js */
/* global visitInteractive -- interactive.js */
/* global iconText, visitRow -- rows.js */
/* global TAG_HANDLERS, visitGauge, visitImage -- tags.js */
/* exported CONTAINERS, INLINE_TAGS, INTERACTIVE, IN_VIEW, LONG_NAME, MAX_POSSIBLE_HOSTS, PSEUDO_START, REMOTE_FRAME */
/* exported addSpace, boxOf, clean, contextInside, flagsFor, overlaps, put, record, visit, visitChildren */
/* exported visitNode, walk */

const IN_VIEW = 1;

const INTERACTIVE = 2;
const REMOTE_FRAME = 4;

const SKIPPED = new Set(('script style template noscript head meta link title base param source '
  + 'track datalist option optgroup noframes').split(' '));

const INLINE_TAGS = new Set(('a abbr b bdi bdo big br cite code data del dfn em font i ins kbd label '
  + 'mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr').split(' '));

const CONTAINERS = new Set(('alert alertdialog article banner complementary contentinfo dialog feed '
  + 'form grid group list listitem log main menu menubar navigation radiogroup region row '
  + 'search status table tablist tabpanel timer toolbar tooltip tree treegrid DescriptionList '
  + 'listbox').split(' '));

const LONG_NAME = 300;
const CELL = /^(cell|gridcell|columnheader|rowheader|LayoutTableCell)$/;

// The piece of an element that is the text of a pseudo-element; see pieceId.
const PSEUDO_START = { '::before': -1, '::after': -2 };

const MAX_POSSIBLE_HOSTS = 10;

let walk = null; // the state of the current walk; see `observe` in page.js


function record(depth, id, role, flags, box, name, pairs) {
  return depth + '\x1f' + id + '\x1f' + role + '\x1f' + flags + '\x1f' + box + '\x1f' + name + '\x1f'
    + pairs.join('\x1d');
}

function clean(text) {
  // eslint-disable-next-line no-control-regex
  return collapse(text.replace(/[\u0000-\u0008\u000e-\u001f\ue000-\uf8ff]/g, ' '));
}

function boxOf(rect, frame) {
  return Math.round(rect.left + frame.x) + ',' + Math.round(rect.top + frame.y) + ','
    + Math.round(rect.width) + ',' + Math.round(rect.height);
}

function put(context, node, role, flags, rect, name, pairs) {
  flushText();
  walk.out.push(record(context.depth, idOf(node), role, flags, rect ? boxOf(rect, context.frame) : '',
    clean(name), pairs));
}

// -- elements ------------------------------------------------------------------------------------

function overlaps(rect, clip) {
  return rect.right > clip.x1 && rect.left < clip.x2 && rect.bottom > clip.y1 && rect.top < clip.y2;
}

function visitChildren(element, context) {
  if (element.firstChild === null && element.localName !== 'slot' && !shadowOf(element)) return;
  if (element.localName === 'tbody' && !walk.full && element.rows.length > 40) {
    visitRows(element, context);
    return;
  }
  const children = composedChildren(element);
  if (Array.isArray(children)) {
    for (const child of children) visitNode(child, context);
    return;
  }
  for (let child = children[0] || null; child; child = nextOf(child)) visitNode(child, context);
}

function visitNode(node, context) {
  const type = typeOf(node);
  if (type === 3) {
    visitText(node, context);
  } else if (type === 1) {
    const index = walk.out.length;
    try {
      visit(node, context);
    } catch (error) {
      // Remove the placeholders of unfinished lines.
      walk.out = walk.out.filter((line, i) => i < index || line !== '');
      // A page can override properties, or nest deeper than the stack. An element that cannot be read
      // must not hide the others.
      if (walk.failures.length < 3) walk.failures.push(`${tagOf(node)}: ${error}`);
    }
  }
}

function visit(element, context) {
  const tag = tagOf(element);
  if (SKIPPED.has(tag)) return;
  if (tag === 'form') {
    visitForm(element, context);
    return;
  }
  if (context.row && !context.inView && isPlainCell(element, tag, context)) return;
  const rect = element.getBoundingClientRect();
  const sized = rect.width > 0 && rect.height > 0;
  let inView = sized && overlaps(rect, context.clip);
  if (!inView) {
    if (!sized) {
      if (!element.checkVisibility()) {
        if (getComputedStyle(element).display !== 'contents') return;
      }
      inView = context.inView;
    } else if (overlaps(rect, context.frame.clip)) {
      const position = getComputedStyle(element).position;
      inView = position === 'fixed' || position === 'absolute' && overlaps(rect, context.outer);
    }
    if (!inView && !walk.full && !context.row && !((context.inView || context.phrase) && INLINE_TAGS.has(tag))) {
      visitOffScreen(element, tag, context);
      return;
    }
  }
  visitShown(element, tag, rect, sized, inView, getComputedStyle(element), context);
}

// The context of an element's content.
function contextInside(element, rect, sized, inView, style, context) {
  const position = style.position;
  const inner = { ...context, inView, style };
  inner.invisible = style.visibility !== 'visible';
  inner.pointer = style.cursor === 'pointer';
  inner.ariaHidden = context.ariaHidden
    || element.getAttribute('aria-hidden') === 'true' && !isEditorText(element, rect);
  inner.inert = context.inert || element.inert === true;
  inner.faded = context.faded || style.opacity === '0';
  inner.struck = context.struck || isStruck(style);
  inner.message = context.message || isMessage(element);
  if (position === 'fixed') inner.clip = context.frame.clip;
  else if (position === 'absolute') inner.clip = context.outer;
  const display = style.display;
  // A collapsed box has no height or no width. One that is tiny both ways contains the field of an editor.
  const folded = !sized && (rect.width > 20 || rect.height > 20) && style.overflowX !== 'visible';
  if (display !== 'inline' && (sized || folded)) {
    const clip = inner.clip;
    inner.entire = sized && rect.left >= clip.x1 && rect.right <= clip.x2 && rect.top >= clip.y1
      && rect.bottom <= clip.y2;
    if (style.overflowX !== 'visible' && element !== rootElementOf(element.ownerDocument)
        && element.localName !== 'body') {
      inner.clip = intersect(rect, clip) || { x1: 0, y1: 0, x2: -1, y2: -1 };
      inner.entire = inner.entire && element.scrollHeight <= element.clientHeight + 1;
    }
  } else if (!sized && display !== 'inline' && display !== 'contents') {
    inner.entire = false; // scaled to nothing
  }
  if (inner.outer !== inner.clip && (position !== 'static' || style.transform !== 'none')) {
    inner.outer = inner.clip; // checked last: computing a transform is expensive
  }
  return inner;
}

function visitShown(element, tag, rect, sized, inView, style, context) {
  const display = style.display;
  const inline = display === 'inline' || display === 'contents' || display.startsWith('ruby');
  const inner = contextInside(element, rect, sized, inView, style, context);
  inner.phrase = !inView && (context.inView || context.phrase) && INLINE_TAGS.has(tag);
  const blocky = !inline && display[0] !== 'i';
  if (blocky) endBlock(context);
  else if (!inline) addSpace(context);
  if (tag === 'br') {
    if (walk.run && walk.run.size > 200) flushText();
    else addSpace(context);
    return;
  }
  const [open, close] = marksAround(element, tag, style, textBefore(context));
  if (open) openMark(open);
  const handler = TAG_HANDLERS[tag];
  if (handler) {
    if (handler(element, inner, rect, context) !== true) visitPlain(element, tag, rect, inner, context);
  } else {
    visitPlain(element, tag, rect, inner, context);
  }
  if (open) closeMark(context, open, close);
  if (blocky) endBlock(context);
  else if (!inline) addSpace(context);
}

// Ends the text in front of a block, or separates it in a row.
function endBlock(context) {
  flushText();
  if (context.row) addSpace(context);
}

function addSpace(context) {
  if (context.row) context.row.addSpace();
  else if (walk.run) walk.run.parts[walk.run.parts.length - 1].text += ' ';
}

// Elements without a tag handler: by their role. Generic ones get a line only if they are interactive.
function visitPlain(element, tag, rect, inner, context) {
  const attributes = element.attributes.length > 0;
  if (attributes && inner.style.contentVisibility === 'hidden') return;
  const role = attributes || anyInternals ? roleOf(element) : nativeRole(element);
  const hints = hintsOf(element, role, inner, context, attributes);
  const cell = context.row !== null && CELL.test(role);
  if (cell) {
    context.row.addCell();
    if (attributes && !hints && !inner.ariaHidden && hasAuthorName(element) && !textOf(element, role)) {
      context.row.addText(nameOf(element, role)); // all its content is hidden from screen readers
    }
  }
  if (role === 'row' || role === 'LayoutTableRow') {
    visitRow(element, role, rect, inner, context, hints);
  } else if ((INTERACTIVE_ROLES.has(role) || hints) && !inner.invisible && !inner.inert
      && (rect.width > 0 && rect.height > 0 || hasBoxInside(element) || element.editContext)) {
    const phrase = inner.style.display === 'inline' && !context.mute && !context.row && !inner.ariaHidden;
    (phrase ? visitInPhrase : visitInteractive)(element, role, rect, inner, context, hints || []);
  } else if (role === 'heading') {
    visitHeading(element, rect, inner, context);
  } else if (role === 'meter' || role === 'progressbar') {
    visitGauge(element, role, rect, inner, context);
  } else if (role === 'image') {
    visitImage(element, rect, inner, context);
  } else {
    visitContainer(element, role, rect, inner, context);
  }
  if (cell && !inner.invisible && !/\S/.test(context.row.lastText())) context.row.addText(iconText(element));
}

function flagsFor(inner, interactive) {
  return (inner.inView ? IN_VIEW : 0) | (interactive ? INTERACTIVE : 0);
}
