// Isolated world: accessible role, name and states. After the W3C documents "Accessible Name and
// Description Computation 1.2", "HTML-AAM" and "WAI-ARIA 1.2", with Chromium's role names.
const ARIA_ROLES = new Set(('alert alertdialog application article banner blockquote button caption '
  + 'cell checkbox code columnheader combobox complementary contentinfo definition deletion dialog '
  + 'document emphasis feed figure form generic grid gridcell group heading image insertion link '
  + 'list listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox '
  + 'menuitemradio meter navigation none note option paragraph progressbar radio radiogroup region '
  + 'row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong '
  + 'subscript superscript suggestion switch tab table tablist tabpanel term textbox time timer '
  + 'toolbar tooltip tree treegrid treeitem').split(' '));
const ROLE_ALIASES = { img: 'image', presentation: 'none', directory: 'list' };
const NEEDS_PARENT = {
  treeitem: /^(tree|group|treeitem)$/, row: /^(table|grid|treegrid|rowgroup|row)$/,
  cell: /^row$/, columnheader: /^row$/, rowheader: /^row$/,
  listitem: /^(list|group|listitem)$/, option: /^(listbox|group|combobox|menu)$/,
};
const NAME_FROM_CONTENT = new Set(('button cell checkbox columnheader gridcell heading link menuitem '
  + 'menuitemcheckbox menuitemradio option radio rowheader switch tab tooltip treeitem '
  + 'DisclosureTriangle DisclosureTriangleGrouped term').split(' '));
const INTERACTIVE_ROLES = new Set(('button checkbox combobox link listbox menuitem '
  + 'menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab '
  + 'textbox treeitem DisclosureTriangle DisclosureTriangleGrouped Date InputTime DateTime '
  + 'ColorWell').split(' '));
const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button',
  checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton',
  search: 'searchbox', date: 'Date', time: 'InputTime', 'datetime-local': 'DateTime',
  month: 'DateTime', week: 'DateTime', color: 'ColorWell',
};
const TAG_ROLES = {
  article: 'article', aside: 'complementary', audio: 'Audio', blockquote: 'blockquote',
  button: 'button', canvas: 'Canvas', dd: 'definition', details: 'group', dialog: 'dialog',
  dl: 'DescriptionList', dt: 'term', fieldset: 'group', figure: 'figure', form: 'form',
  h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading',
  hr: 'separator', iframe: 'Iframe', frame: 'Iframe', main: 'main', menu: 'list', meter: 'meter',
  nav: 'navigation', ol: 'list', optgroup: 'group', option: 'option', output: 'status',
  progress: 'progressbar', search: 'search', svg: 'image', textarea: 'textbox', ul: 'list',
  video: 'Video', label: 'LabelText', embed: 'PluginObject', object: 'PluginObject',
};

function collapse(text) {
  return text.replace(/\s+/g, ' ').trim();
}

function attribute(element, name) {
  return element.getAttribute(name) || '';
}

// What an element belongs to: what says that it owns it, else what it stands in.
function ownerOf(element) {
  const id = element.id;
  const owner = id && typeof id === 'string' && element.getRootNode().querySelector(
    `[aria-owns~="${CSS.escape(id)}"]`);
  return owner && !contains(element, owner) ? owner : composedParent(element);
}

function roleAbove(element) {
  for (let e = ownerOf(element); e && e.nodeType === 1; e = composedParent(e)) {
    const role = roleOf(e);
    if (role !== 'generic' && role !== 'none' && role !== 'rowgroup') return role;
  }
  return '';
}

function roleOf(element) {
  const given = element.getAttribute('role');
  if (given) {
    for (const token of given.toLowerCase().split(/\s+/)) {
      const role = ROLE_ALIASES[token] || token;
      if (role === 'none') {
        if (element.tabIndex < 0 && !element.hasAttribute('aria-label')) return 'none';
        break;
      }
      if (ARIA_ROLES.has(role)) {
        if (NEEDS_PARENT[role] && !NEEDS_PARENT[role].test(roleAbove(element))) break;
        if ((role === 'form' || role === 'region') && !hasAuthorName(element)) break;
        return role;
      }
      if (token.startsWith('doc-')) return 'doc' + token[4].toUpperCase() + token.slice(5);
    }
  }
  return nativeRole(element);
}

function hasAuthorName(element) {
  return element.hasAttribute('aria-label') || element.hasAttribute('aria-labelledby')
    || element.hasAttribute('title');
}

function nativeRole(element) {
  const tag = element.localName;
  switch (tag) {
    case 'a': case 'area':
      return element.hasAttribute('href') || element.hasAttribute('xlink:href') ? 'link' : 'generic';
    case 'input': {
      const role = INPUT_ROLES[element.type];
      if (role === 'checkbox' && element.hasAttribute('switch')) return 'switch';
      return element.list && (!role || role === 'searchbox') ? 'combobox' : role || 'textbox';
    }
    case 'select': return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
    case 'summary':
      if (!element.parentElement || element.parentElement.localName !== 'details') return 'generic';
      return element.parentElement.name ? 'DisclosureTriangleGrouped' : 'DisclosureTriangle';
    case 'img': return element.getAttribute('alt') === '' && !hasAuthorName(element) ? 'none' : 'image';
    case 'section': return hasAuthorName(element) ? 'region' : 'generic';
    case 'header': case 'footer':
      if (element.closest('article,aside,main,nav,section')) return 'generic';
      return tag === 'header' ? 'banner' : 'contentinfo';
    case 'li': return /^(list)$/.test(roleAbove(element)) ? 'listitem' : 'generic';
    case 'table': return isDataTable(element) ? 'table' : 'LayoutTable';
    case 'tr': return isDataTable(element.closest('table')) ? 'row' : 'LayoutTableRow';
    case 'tbody': case 'thead': case 'tfoot': return 'rowgroup';
    case 'td': return isDataTable(element.closest('table')) ? 'cell' : 'LayoutTableCell';
    case 'th': return element.scope === 'row' || element.scope === 'rowgroup' ? 'rowheader'
      : element.scope ? 'columnheader' : headerRole(element);
    default:
      if (element.firstChild === null && pictureOf(element)) return 'image';
      return TAG_ROLES[tag] || (element.draggable === true && tag !== 'img' ? 'group' : 'generic');
  }
}

// The URL of the picture that a style sheet puts in place of an element; else ''.
function pictureOf(element) {
  const content = element.isConnected ? getComputedStyle(element).content : '';
  return content.startsWith('url("') ? content.slice(5, content.indexOf('"', 5)) : '';
}

// A th without scope heads its row when data cells stand beside it, else its column.
function headerRole(cell) {
  const row = cell.parentElement;
  if (!row || row.localName !== 'tr') return 'columnheader';
  if (row.parentElement && row.parentElement.localName === 'thead') return 'columnheader';
  for (const other of row.children) if (other.localName === 'td') return 'rowheader';
  return 'columnheader';
}

// -- names ---------------------------------------------------------------------------------------

function pseudoText(element, which) {
  const content = getComputedStyle(element, which).content;
  if (content === 'none' || content === 'normal' || content.charCodeAt(0) !== 34) {
    return content.includes('/ "') ? unquote(content.slice(content.indexOf('/ "') + 2)) : '';
  }
  const slash = content.lastIndexOf('" / "');
  return unquote(slash > 0 ? content.slice(slash + 4) : content);
}

function unquote(css) {
  let text = '';
  for (const match of css.matchAll(/"((?:[^"\\]|\\.)*)"/g)) text += match[1].replace(/\\(.)/g, '$1');
  return text;
}

function transformed(text, style) {
  switch (style.textTransform) {
    case 'uppercase': return text.toUpperCase();
    case 'lowercase': return text.toLowerCase();
    case 'capitalize': return text.replace(/(^|[\s\-("'])(\p{L})/gu, (all, a, b) => a + b.toUpperCase());
    default: return text;
  }
}

function referenced(element, attributeName) {
  const list = element.getAttribute(attributeName);
  if (!list) return [];
  const root = element.getRootNode();
  const found = [];
  for (const id of list.split(/\s+/)) {
    const target = id && root.getElementById && root.getElementById(id);
    if (target) found.push(target);
  }
  return found;
}

// The value that an embedded control contributes to the name of what it stands in.
function embeddedValue(element, role) {
  if (role === 'textbox' || role === 'searchbox') {
    return 'value' in element && element.type !== 'password' ? element.value : textOf(element, role);
  }
  if (role === 'combobox' || role === 'listbox') {
    if (element.selectedOptions) return [...element.selectedOptions].map((o) => o.label).join(' ');
    return element.value || null;
  }
  if (role === 'slider' || role === 'spinbutton' || role === 'progressbar' || role === 'meter'
      || role === 'scrollbar') {
    return attribute(element, 'aria-valuetext') || attribute(element, 'aria-valuenow')
      || (element.value === undefined ? '' : String(element.value));
  }
  return null;
}

// The text alternative of one element inside the name of another. `state` carries what is being
// visited (loops), whether hidden content counts and whether aria-labelledby was followed.
function alternative(element, state) {
  if (state.seen.has(element)) return '';
  state.seen.add(element);
  const tag = element.localName;
  if (tag === 'script' || tag === 'style' || tag === 'template' || tag === 'noscript') return '';
  if (element.getAttribute('aria-hidden') === 'true' && !state.hidden) return '';
  const role = roleOf(element);
  const label = collapse(attribute(element, 'aria-label'));
  const value = element === state.from ? null : embeddedValue(element, role);
  if (value !== null && value !== undefined) return value;
  if (!state.labelledby && element.hasAttribute('aria-labelledby')) {
    const joined = labelledbyText(element, state.seen);
    if (joined) return joined;
  }
  if (label) return label;
  const own = nativeName(element, role, tag, state);
  if (own !== null) return own;
  return textOf(element, role, state) || collapse(attribute(element, 'title'));
}

function labelledbyText(element, seen) {
  const parts = [];
  for (const target of referenced(element, 'aria-labelledby')) {
    const hidden = !target.checkVisibility({ visibilityProperty: true });
    const state = { seen: new Set(), hidden, labelledby: true, from: element };
    if (target === element) {
      const label = collapse(attribute(element, 'aria-label'));
      parts.push(label || textOf(element, roleOf(element), state));
    } else {
      parts.push(alternative(target, state));
    }
  }
  return collapse(parts.join(' '));
}

function isBlock(display) {
  return !(display.startsWith('inline') || display === 'contents' || display.startsWith('ruby'));
}

// Text of what is inside, as shown: blocks are separated by a space, hidden parts are left out.
function textOf(element, role, state = { seen: new Set([element]), hidden: false }) {
  let text = '';
  const style = getComputedStyle(element);
  const seen = style.visibility === 'visible';
  const nested = role === 'treeitem' ? /^group$/ : role.startsWith('menuitem') ? /^menu$/ : null;
  if (seen || state.hidden) text += pseudoText(element, '::before');
  for (const child of composedChildren(element)) {
    if (child.nodeType === 3) {
      if (seen || state.hidden || style.display === 'contents') text += transformed(child.data, style);
    } else if (child.nodeType === 1) {
      if (child.localName === 'br') {
        text += ' ';
        continue;
      }
      const display = getComputedStyle(child).display;
      if (display === 'none' && !state.hidden) continue;
      if (nested && nested.test(roleOf(child))) continue;
      const part = alternative(child, state);
      const apart = isBlock(display) || display !== 'inline' && display !== 'contents'
        || namedByAttribute(child);
      text += apart ? ' ' + part + ' ' : part;
    }
  }
  if (seen || state.hidden) text += pseudoText(element, '::after');
  return collapse(text);
}

function namedByAttribute(element) {
  return element.localName === 'img' || element.localName === 'svg' || element.hasAttribute('aria-label');
}

// What a label says, without its control: that may be rendered though it takes no room, and would
// be asked for its name, which is the label's.
function labelText(label) {
  return textOf(label, 'LabelText', { seen: new Set([label, label.control]), hidden: false });
}

function labelsText(element) {
  const parts = [];
  if (element.labels) {
    for (const label of element.labels) {
      const state = { seen: new Set([element]), hidden: false, labelledby: false, from: element };
      state.seen.add(label);
      parts.push(collapse(attribute(label, 'aria-label')) || textOf(label, 'LabelText', state));
    }
  }
  return collapse(parts.join(' '));
}

// Names that HTML gives: null where it gives none and the content or the title has to do.
function nativeName(element, role, tag, state) {
  switch (tag) {
    case 'input': {
      const type = element.type;
      if (type === 'image') {
        return attribute(element, 'alt') || attribute(element, 'value')
          || attribute(element, 'title') || 'Submit';
      }
      const labels = labelsText(element);
      if (labels) return labels;
      if (type === 'file') return element.multiple ? 'Choose Files' : 'Choose File';
      if (type === 'submit' || type === 'reset' || type === 'button') {
        if (element.value) return collapse(element.value);
        if (type === 'button') return null;
        return element.hasAttribute('value') ? null : type === 'submit' ? 'Submit' : 'Reset';
      }
      return attribute(element, 'title').trim() || placeholderOf(element) || '';
    }
    case 'textarea':
      return labelsText(element) || attribute(element, 'title').trim() || placeholderOf(element);
    case 'select': case 'meter': case 'progress': case 'output':
      return labelsText(element) || collapse(attribute(element, 'title'));
    case 'button': return labelsText(element) || null;
    case 'img': case 'area':
      return element.hasAttribute('alt') && (element.alt || tag === 'img') && element.alt.trim()
        ? element.alt.trim() : collapse(attribute(element, 'title'));
    case 'svg': {
      for (const child of element.children) {
        if (child.localName === 'title') return collapse(child.textContent);
      }
      return null;
    }
    case 'fieldset': return childText(element, 'legend');
    case 'table': return childText(element, 'caption') || collapse(attribute(element, 'summary')) || null;
    case 'figure': return childText(element, 'figcaption');
    case 'option': return collapse(element.label);
    case 'optgroup': return collapse(element.label);
    default: return null;
  }
}

function placeholderOf(element) {
  return collapse(attribute(element, 'placeholder') || attribute(element, 'aria-placeholder'));
}

function childText(element, tag) {
  for (const child of element.children) {
    if (child.localName === tag) return textOf(child, tag) || null;
  }
  return null;
}

function nameOf(element, role) {
  const labelled = element.hasAttribute('aria-labelledby') && labelledbyText(element, new Set());
  if (labelled) return labelled;
  const label = collapse(attribute(element, 'aria-label'));
  if (label) return label;
  const own = nativeName(element, role, element.localName, null);
  if (own) return collapse(own);
  if (own === null && NAME_FROM_CONTENT.has(role)) {
    const text = textOf(element, role);
    if (text) return text;
  }
  return collapse(attribute(element, 'title'));
}
