// Part of the walker: handlers for tags with special lines. A handler returns true if it has handled
// the element, else `visitPlain` does.
/* global checkedHosts, idOf, shadowOf -- dom.js */
/* global INTERACTIVE_ROLES, TAG_ROLES, attribute, collapse, roleOf -- roles.js */
/* global labelText, nameOf, textOf -- names.js */
/* global TOGGLES, controlValue, plain, statesOf -- states.js */
/* global hintName, hintPairs, symbolPairs -- hints.js */
/* global nearPairs -- near.js */
/* global coveredBy -- covers.js */
/* global IN_VIEW, LONG_NAME, boxOf, flagsFor, put, visit, visitChildren, walk -- walk.js */
/* global visitAreas, visitEmbed, visitFrame, visitObject -- frames.js */
/* exported TAG_HANDLERS, visitGauge, visitImage */

const MAX_OPTIONS = 30;
const BRIEF_OPTIONS = 100; // characters of the options in the line of a closed list
const LONG_OPTION = 40;

// Meters and progress bars, with their value.
function visitGauge(element, role, rect, inner, context) {
  const labelled = element.labels && element.labels.length > 0;
  if (context.mute && !labelled || inner.ariaHidden || inner.invisible || !(inner.inView || walk.full)) return;
  const name = nameOf(element, role);
  const value = controlValue(element, role);
  if (context.row) context.row.addText(` ${name} ${value} `);
  else put(context, element, role, flagsFor(inner, false), rect, name, statesOf(element, role, name, false));
  if (element.firstChild === null || element.localName === role || element.localName === 'progress') return;
  const text = textOf(element, role); // a style sheet may display content
  if (text && !`${name} ${value}%`.includes(text)) visitChildren(element, { ...inner, depth: context.depth + 1 });
}

// Images with a name, and large ones without.
function visitImage(element, rect, inner, context) {
  const skip = context.mute || inner.ariaHidden || inner.invisible || rect.width * rect.height === 0;
  const drawing = 'viewBox' in element;
  const name = skip ? '' : nameOf(element, 'image');
  if (context.row && name) {
    context.row.addText(` ${name} `);
  } else if (!skip && (inner.inView || walk.full)) {
    const large = rect.width >= 100 && rect.height >= 60 && !drawing;
    if (name) put(context, element, 'image', flagsFor(inner, false), rect, name, []);
    else if (large) {
      const hint = hintName(element);
      put(context, element, 'image', flagsFor(inner, false), rect, '', hint ? ['hint: ' + hint] : []);
    }
  }
  if (element.firstChild) visitChildren(element, { ...inner, mute: context.mute || name !== '' });
  else if (!skip && element.useMap) visitAreas(element, inner, context);
}

function visitSelect(element, inner, rect, context) {
  if (inner.invisible || inner.inert) return true;
  const role = roleOf(element);
  const name = nameOf(element, role);
  const pairs = statesOf(element, role, name, element === walk.focus);
  const count = element.options.length;
  const closed = !element.multiple && element.size <= 1 && !walk.allOptions;
  const listed = closed ? 0 : walk.allOptions ? count : Math.min(count, MAX_OPTIONS);
  if (closed) pairs.push('options: ' + optionsInBrief(element));
  else if (count > listed) pairs.push(`options: ${count} (the first ${MAX_OPTIONS} are listed)`);
  const cover = inner.inView ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  if (!name) pairs.push(...hintPairs(element, role, inner.style), ...nearPairs(element, role));
  if (!(inner.inView || walk.full)) return true;
  put(context, element, role, flagsFor(inner, true), rect, name, pairs);
  listOptions(element, listed, context, flagsFor(inner, true));
  return true;
}

// The number of options, and the first ones: `3 (S | M | L)`.
function optionsInBrief(select) {
  const options = select.options;
  const first = [];
  let left = BRIEF_OPTIONS;
  for (let i = 0; i < options.length && left > 0; i++) {
    const label = plain(options[i].label, LONG_OPTION) + (options[i].matches(':disabled') ? ' (disabled)' : '');
    left -= label.length;
    if (left >= 0 || !first.length) first.push(label);
  }
  if (first.length < options.length) first.push('\u2026');
  return `${options.length} (${first.join(' | ')})`;
}

function listOptions(select, count, context, flags) {
  let group = null;
  for (let i = 0; i < count; i++) {
    const option = select.options[i];
    const above = option.parentElement.localName === 'optgroup' ? option.parentElement : null;
    if (above && above !== group) {
      put({ ...context, depth: context.depth + 1 }, above, 'group', flags & IN_VIEW, null, above.label,
        above.disabled ? ['disabled: true'] : []);
    }
    group = above;
    const states = [];
    if (option.selected) states.push('selected: true');
    if (option.matches(':disabled')) states.push('disabled: true');
    put({ ...context, depth: context.depth + (above ? 2 : 1) }, option, 'option', flags & IN_VIEW, null,
      option.label, states);
  }
}

function isRendered(element) {
  const rect = element.getBoundingClientRect();
  return rect.width > 0 && rect.height > 0
    && element.checkVisibility({ visibilityProperty: true });
}

// The label of a rendered control only repeats its name. The label of a control that is not rendered
// (a styled switch or upload) is the element to click.
function visitLabel(element, inner, rect, context) {
  const control = element.control;
  if (!control || inner.mute || inner.invisible) return false;
  if (control.localName.includes('-') && !INTERACTIVE_ROLES.has(roleOf(control))) return false;
  if (isRendered(control)) {
    const named = !control.hasAttribute('aria-label') && !control.hasAttribute('aria-labelledby')
      && !(TOGGLES.test(roleOf(control)) && element.textContent.length > LONG_NAME);
    visitChildren(element, { ...inner, mute: named, interactive: true });
    return true;
  }
  const name = labelText(element);
  const role = roleOf(control);
  const pairs = statesOf(control, role, name, control === walk.focus);
  if (!(inner.inView || walk.full)) return true;
  if (inner.inView) {
    const cover = coveredBy(element, inner);
    if (cover) pairs.push('covered by: ' + cover);
  }
  pairs.push(...symbolPairs(element, name));
  put(context, element, 'LabelText', flagsFor(inner, true), rect, name, pairs);
  visitChildren(element, { ...inner, depth: context.depth + 1, mute: true, row: null, interactive: true });
  return true;
}

function visitNamedBy(owner) {
  return (element, inner) => {
    const above = element.parentElement;
    if (!above || above.localName !== owner) return false;
    visitChildren(element, { ...inner, mute: true });
    return true;
  };
}

function visitDetails(element, inner, rect, context) {
  if (element.open) return false;
  for (const child of element.children) {
    if (child.localName === 'summary') visit(child, { ...inner, depth: context.depth });
  }
  return true;
}

function visitInput(element) {
  return element.type === 'hidden';
}

function visitMedia(element, inner, rect, context) {
  if (inner.mute || inner.invisible || !(inner.inView || walk.full)) return true;
  const role = TAG_ROLES[element.localName];
  const name = collapse(attribute(element, 'aria-label') || attribute(element, 'title'));
  const pairs = name ? [] : hintPairs(element, role, inner.style);
  if (role === 'Canvas') pairs.push('box: ' + boxOf(rect, context.frame));
  if ('paused' in element) pairs.push('paused: ' + element.paused);
  const cover = inner.inView ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  put(context, element, role, flagsFor(inner, true), rect, name, pairs);
  if (element.controls) {
    // The browser's controls are in a closed shadow tree, which only the debugging protocol provides.
    if (shadowOf(element)) visitChildren(element, { ...inner, depth: context.depth + 1 });
    else if (!checkedHosts.has(element) && element.ownerDocument === document) {
      checkedHosts.add(element);
      walk.possibleHosts.push(idOf(element));
    }
  }
  return true;
}

const TAG_HANDLERS = {
  __proto__: null,
  input: visitInput, select: visitSelect, label: visitLabel, legend: visitNamedBy('fieldset'),
  caption: visitNamedBy('table'), details: visitDetails, canvas: visitMedia, video: visitMedia,
  audio: visitMedia, iframe: visitFrame, frame: visitFrame, object: visitObject,
  embed: visitEmbed,
};
