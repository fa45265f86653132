// Part of the walker: headings, and containers that get a line if their content does.
/* global nextOf, safeForm, tagOf -- safe.js */
/* global idOf, mayHideShadow, shadowOf -- dom.js */
/* global intersect -- geometry.js */
/* global isUnseen, unseenText -- visibility.js */
/* global hasAuthorName -- roles.js */
/* global nameOf, pseudoText -- names.js */
/* global plain, statesOf -- states.js */
/* global otherTextPairs -- shown_text.js */
/* global colorMark -- colors.js */
/* global scrollPairs -- scroll_state.js */
/* global addText, flushText -- text.js */
/* global CONTAINERS, IN_VIEW, MAX_POSSIBLE_HOSTS, PSEUDO_START, clean, contextInside, flagsFor -- walk.js */
/* global overlaps, put, record, visitChildren, visitNode, walk -- walk.js */
/* exported visitContainer, visitForm, visitHeading, visitInside */

const MANY_LANGUAGES = 8;
const FEW_LANGUAGES = 3;
const LONG_LANGUAGE = 30;

// Forms are containers. They are read through safeForm.
function visitForm(form, context) {
  const rect = Element.prototype.getBoundingClientRect.call(form);
  const style = getComputedStyle(form);
  if (style.display === 'none') return;
  const sized = rect.width > 0 && rect.height > 0;
  const view = safeForm(form);
  const inner = contextInside(view, rect, sized, sized ? overlaps(rect, context.clip) : context.inView, style, context);
  flushText();
  const index = walk.out.length;
  const named = hasAuthorName(view) && !context.mute && !inner.ariaHidden && !context.row;
  if (named) walk.out.push('');
  for (let child = view.childNodes[0] || null; child; child = nextOf(child)) {
    visitNode(child, named ? { ...inner, depth: context.depth + 1 } : inner);
  }
  flushText();
  if (!named) return;
  if (walk.out.length === index + 1) walk.out.length = index;
  else {
    const role = view.getAttribute('role') === 'search' ? 'search' : 'form';
    walk.out[index] = record(context.depth, idOf(form), role, 0, '', clean(nameOf(view, role)), []);
  }
}

function visitHeading(element, rect, inner, context) {
  if (inner.mute || inner.invisible || inner.ariaHidden) {
    visitChildren(element, inner);
    return;
  }
  const named = nameOf(element, 'heading');
  const name = named && isUnseen(element, inner.style) ? unseenText(named) : named;
  if (name) {
    if (context.row) context.row.addOwnLine(name);
    if (inner.inView || walk.full) {
      put(context, element, 'heading', flagsFor(inner, false), rect, name,
        [...statesOf(element, 'heading', name, false), ...otherTextPairs(element, named)]);
    }
  }
  if (element.firstElementChild || shadowOf(element)) {
    visitChildren(element, { ...inner, depth: context.depth + 1, mute: name !== '', row: null });
    flushText();
  }
}

// Landmarks, lists and groups get a line if their content does.
function visitContainer(element, role, rect, inner, context) {
  const color = context.mute || inner.invisible || !inner.inView ? '' : colorMark(element, rect, inner.style);
  if (color && context.row) context.row.addText(` ${color} `);
  else if (color) addText(context, element, PSEUDO_START['::before'], `${color} `, true);
  if (inner.inView && walk.possibleHosts.length < MAX_POSSIBLE_HOSTS
      && mayHideShadow(element, tagOf(element), rect, inner.style)) walk.possibleHosts.push(idOf(element));
  const scroll = inner.inView && inner.style.overflowX !== 'visible' ? scrollPairs(element, inner.style) : [];
  const shown = CONTAINERS.has(role) && !context.mute && !inner.ariaHidden && !context.row;
  if (!shown && !scroll.length) {
    visitInside(element, inner);
    return;
  }
  flushText();
  const languages = role === 'list' && inner.inView && !walk.full ? languagesOf(element) : '';
  if (languages) {
    put(context, element, role, IN_VIEW, rect, nameOf(element, role), ['languages: ' + languages]);
    return;
  }
  const index = walk.out.length;
  walk.out.push('');
  if (role !== 'listitem' && role !== 'group') idOf(element); // so that ids increase down the page
  visitInside(element, { ...inner, depth: context.depth + 1 });
  flushText();
  const empty = walk.out.length === index + 1 && !scroll.length;
  const titled = empty && shown && titleInView(element, inner);
  if (empty && !titled) {
    walk.out.length = index;
    return;
  }
  const name = shown ? nameOf(element, role) : '';
  const pairs = shown ? statesOf(element, role, name, element === walk.focus) : [];
  const flags = scroll.length || titled ? IN_VIEW : 0;
  walk.out[index] = record(context.depth, idOf(element), shown ? role : 'generic', flags, '', clean(name),
    pairs.concat(scroll));
}

// The number of links in a list of languages, and the first ones; '' for other lists. Each link still
// has its name, by which actions and searches reach it.
function languagesOf(list) {
  const items = list.childElementCount;
  if (items < MANY_LANGUAGES) return '';
  const links = [...list.querySelectorAll('a[hreflang],a[lang]')];
  if (links.length < items * 0.8) return '';
  const first = links.slice(0, FEW_LANGUAGES).map((link) => plain(link.textContent, LONG_LANGUAGE));
  return `${links.length} (${first.join(' | ')} | \u2026)`;
}

// Whether the legend or caption that names a box is in view.
function titleInView(element, inner) {
  const tag = { fieldset: 'legend', table: 'caption' }[element.localName];
  const title = tag && [...element.children].find((child) => child.localName === tag);
  return Boolean(title) && intersect(title.getBoundingClientRect(), inner.clip) !== null;
}

// Children, with the text of pseudo-elements before and after.
function visitInside(element, context) {
  const silent = context.mute || context.ariaHidden || context.invisible || !context.inView;
  if (!silent) addPseudo(element, context, '::before');
  visitChildren(element, context);
  if (!silent) addPseudo(element, context, '::after');
}

function addPseudo(element, context, which) {
  const written = pseudoText(element, which);
  if (!written) return;
  const text = isUnseen(element, context.style) ? unseenText(written) : written;
  if (context.row) context.row.addText(text);
  else addText(context, element, PSEUDO_START[which], text, true);
}
