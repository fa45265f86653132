// Isolated world: elements to act on: their line, and what stands inside them.

// Returns the name, as far as it is the text that the element shows.
function visitInteractive(element, role, rect, inner, c, hints) {
  flushText();
  const index = walk.out.length;
  const editable = hints.includes('editable: true');
  const fromContent = takesText(element, role);
  let name = nameOf(element, role);
  let mute = c.mute || NAME_FROM_CONTENT.has(role);
  if (!name && fromContent && !editable) {
    name = phraseName(element, role);
    mute = mute || name !== '';
  }
  const pairs = statesOf(element, role, name, element === walk.focus);
  if (name && tagOf(element) === 'text') pairs.push(...drawnPairs(element, inner.style));
  if (!name && !TOGGLES.test(role) && (!fromContent || !element.firstElementChild)) {
    pairs.push(...namelessPairs(element, role, inner.style));
  }
  pairs.push(...symbolPairs(element, name));
  if (editable || (role === 'textbox' || role === 'combobox') && !('value' in element)) {
    const value = textOf(element, role);
    if (value && value.length <= LONG_VALUE) pairs.push('value: ' + plain(value));
    mute = mute || value.length <= LONG_VALUE;
  }
  const toggle = !name && role === 'generic' ? unseenToggle(element) : null;
  if (toggle) pairs.push(`checked: ${toggle.checked}`);
  pairs.push(...hints, ...scrollPairs(element, inner.style));
  if (role === 'link' && !name) pairs.push('url: ' + plain(element.getAttribute('href') || '', 60));
  const cover = inner.on && !(inner.faded && fromContent) ? coveredBy(element, inner) : '';
  if (cover) pairs.push('covered by: ' + cover);
  if (inner.style.pointerEvents === 'none' && letsThrough(element, role)) pairs.push('pointer: none');
  if (name.length > LONG_NAME && mute && !c.mute) {
    name = name.slice(0, LONG_NAME / 3) + '\u2026';
    mute = false;
  }
  if (c.row) c.row.stub(name);
  if (inner.on || walk.full) put(c, element, toggle ? roleOf(toggle) : shownRole(element, role), flagsFor(inner, true), rect, name, pairs);
  if (element.localName === 'textarea' || mute && !element.firstElementChild && !shadowOf(element)) {
    return name;
  }
  visitChildren(element, { ...inner, depth: c.depth + 1, mute, row: null,
    interactive: INTERACTIVE_ROLES.has(role) || mute || c.interactive });
  flushText();
  const shown = inner.on || walk.full;
  if (shown && !name) {
    if (hints.join() === 'hoverable: true') loosen(index, c);
    else if (walk.out.length === index + 1 && fromContent && element.firstElementChild && !mute && !toggle) {
      const more = namelessPairs(element, role, inner.style);
      if (more.length) walk.out[index] += (pairs.length ? '\x1d' : '') + more.join('\x1d');
    }
  }
  return name;
}

// That something around other things listens for the pointer says little: a group without a name
// is shown only if nothing else tells its parts together.
function loosen(index, c) {
  const id = walk.out[index].split('\x1f', 2)[1];
  walk.out[index] = record(c.depth, id, 'group', 0, '', '', []);
}

// The one switch or box in an element that is drawn by others and has no size itself.
function unseenToggle(element) {
  const found = element.querySelectorAll('input[type=checkbox],input[type=radio]');
  if (found.length !== 1 || found[0].disabled) return null;
  const rect = found[0].getBoundingClientRect();
  return rect.width * rect.height === 0 && found[0].checkVisibility() ? found[0] : null;
}

// Roles that take no name from their content get it from there when one can act on the element.
function takesText(element, role) {
  return role === 'image' ? 'ownerSVGElement' in element : !INTERACTIVE_ROLES.has(role);
}

// The text of an element that holds text and inline elements only; else ''.
function phraseName(element, role) {
  if (CONTAINERS.has(role) && role !== 'group' && role !== 'listitem' || shadowOf(element)) return '';
  let budget = 40;
  if (holdsItems(element) || holdsShapes(element)) return '';
  for (const child of element.querySelectorAll('*')) {
    if (--budget < 0 || child.firstElementChild && holdsItems(child)) return '';
    if ((INTERACTIVE_ROLES.has(roleOf(child)) || noted.click.has(child)
        || /^(ul|ol|table|h[1-6]|iframe|form|canvas)$/.test(child.localName))
        && child.checkVisibility()) return '';
  }
  const name = textOf(element, role);
  return name.length <= LONG_NAME ? name : '';
}

// Does a drawing listen for shapes that tell their names: seats of a hall, countries of a map?
function holdsShapes(element) {
  if (!('ownerSVGElement' in element)) return false;
  const named = element.querySelectorAll(':is(circle,ellipse,path,polygon,rect) > title');
  return named.length > 1 && isPartOfChart(named[0].parentNode);
}

// Does an element hold items that are alike, one below or beside the other? What listens for all of
// them does so for each: they are to be told apart. Parts of one thing are each of another class.
function holdsItems(element) {
  const counts = new Map();
  for (const child of element.children) {
    const kind = child.localName + ' ' + attribute(child, 'class').split(/\s+/, 1)[0];
    const count = (counts.get(kind) || 0) + 1;
    counts.set(kind, count);
    if (count < (kind.endsWith(' ') ? 3 : 2) || !/\S/.test(child.textContent)) continue;
    const display = getComputedStyle(child).display;
    if (display !== 'none' && !display.startsWith('inline') && display !== 'contents') return true;
  }
  return false;
}
