// Part of the walker: accessible roles, after the W3C documents "HTML-AAM" and "WAI-ARIA 1.2", with
// Chromium's names of roles.
/* global tagOf -- safe.js */
/* global composedParent, contains -- dom.js */
/* global anyInternals, internalAttributes, recorded -- page_records.js */
/* global isDataTable -- tables.js */
/* exported INTERACTIVE_ROLES, NAME_FROM_CONTENT, TAG_ROLES, attribute, collapse, hasAuthorName, nativeRole */
/* exported pictureOf, roleOf, shownRole */

const ARIA_ROLES = new Set(('alert alertdialog application article banner blockquote button caption '
  + 'cell checkbox code columnheader combobox comment complementary contentinfo definition deletion '
  + 'dialog document emphasis feed figure form generic grid gridcell group heading image insertion '
  + 'link list listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox '
  + 'menuitemradio meter navigation none note option paragraph progressbar radio radiogroup region '
  + 'row rowgroup rowheader scrollbar search searchbox sectionfooter sectionheader separator slider '
  + 'spinbutton status strong subscript superscript suggestion switch tab table tablist tabpanel term '
  + 'textbox time timer toolbar tooltip tree treegrid treeitem').split(' '));
// Roles of publications, without their prefix: `doc-abstract`.
const PUBLISHING_ROLES = new Set(('abstract acknowledgments afterword appendix backlink biblioentry '
  + 'bibliography biblioref chapter colophon conclusion cover credit credits dedication endnote '
  + 'endnotes epigraph epilogue errata example footnote foreword glossary glossref index introduction '
  + 'noteref notice pagebreak pagefooter pageheader pagelist part preface prologue pullquote qna '
  + 'subtitle tip toc').split(' '));
const ROLE_ALIASES = { img: 'image', presentation: 'none', directory: 'list' };
const NEEDS_PARENT = {
  treeitem: /^(tree|group|treeitem)$/, listitem: /^(list|group|listitem)$/,
  option: /^(listbox|group|combobox|menu)$/,
};
const NAME_FROM_CONTENT = new Set(('button cell checkbox columnheader gridcell heading link menuitem '
  + 'menuitemcheckbox menuitemradio option radio rowheader switch tab tooltip treeitem '
  + 'DisclosureTriangle DisclosureTriangleGrouped term docbacklink docbiblioref docglossref docnoteref '
  + 'docsubtitle').split(' '));
const INTERACTIVE_ROLES = new Set(('button checkbox combobox link listbox menuitem '
  + 'menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab '
  + 'textbox treeitem DisclosureTriangle DisclosureTriangleGrouped Date InputTime DateTime '
  + 'ColorWell docbacklink docbiblioref docglossref docnoteref').split(' '));
const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button',
  checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton',
  search: 'searchbox', date: 'Date', time: 'InputTime', 'datetime-local': 'DateTime',
  month: 'DateTime', week: 'DateTime', color: 'ColorWell',
};
const TAG_ROLES = {
  article: 'article', audio: 'Audio', blockquote: 'blockquote',
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
  return element.getAttribute(name) || anyInternals && internalAttributes.get(element)?.[name] || '';
}

// The element that owns another by aria-owns, else its parent.
function ownerOf(element) {
  const id = element.id;
  const owner = id && typeof id === 'string' && element.getRootNode().querySelector(
    `[aria-owns~="${CSS.escape(id)}"]`);
  return owner && !contains(element, owner) ? owner : composedParent(element);
}

let rolesAbove = null;
// The role of the nearest owner that has one. Each element is computed once per outermost call, so
// deep nesting is fast, and elements that own each other end.
function roleAbove(element) {
  const first = rolesAbove === null;
  if (first) rolesAbove = new Map();
  let found = rolesAbove.get(element);
  try {
    if (found === undefined) {
      rolesAbove.set(element, '');
      found = roleOfNearest(ownerOf(element));
      rolesAbove.set(element, found);
    }
  } finally {
    if (first) rolesAbove = null;
  }
  return found;
}

function roleOfNearest(element) {
  for (let e = element; e && e.nodeType === 1; e = composedParent(e)) {
    const role = roleOf(e);
    if (role !== 'generic' && role !== 'none' && role !== 'rowgroup') return role;
  }
  return '';
}

function roleOf(element) {
  const given = attribute(element, 'role');
  if (given) {
    for (const token of given.toLowerCase().split(/\s+/)) {
      const role = ROLE_ALIASES[token] || token;
      if (role === 'none') {
        if (isPresentational(element)) return 'none';
        break;
      }
      if (ARIA_ROLES.has(role)) {
        if (NEEDS_PARENT[role] && !NEEDS_PARENT[role].test(roleAbove(element))) break;
        if ((role === 'form' || role === 'region') && !hasAuthorName(element)) break;
        return role;
      }
      if (token.startsWith('doc-') && PUBLISHING_ROLES.has(token.slice(4))
          || /^graphics-(document|object|symbol)$/.test(token)) return token.replace('-', '');
    }
  }
  return nativeRole(element);
}

const GLOBAL_ARIA = new RegExp('^aria-(atomic|busy|controls|current|describedby|description|details|flowto|'
  + 'keyshortcuts|label|labelledby|live|owns|relevant|roledescription)$');
// Whether the role `none` applies: not to focusable elements, nor to those with global attributes.
function isPresentational(element) {
  return element.tabIndex < 0 && !element.hasAttribute('tabindex') && !element.hasAttribute('contenteditable')
    && !Element.prototype.getAttributeNames.call(element).some((name) => GLOBAL_ARIA.test(name));
}

function hasAuthorName(element) {
  return element.hasAttribute('aria-label') || element.hasAttribute('aria-labelledby')
    || element.hasAttribute('title');
}

function nativeRole(element) {
  const tag = element.localName;
  switch (tag) {
    case 'a': case 'area':
      return element.hasAttribute('href') || element.hasAttribute('xlink:href')
        || tag === 'a' && (recorded.click.has(element) || element.hasAttribute('onclick')) ? 'link' : 'generic';
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
    case 'aside':
      return hasAuthorName(element) || !within(element, 'article,aside,nav,section') ? 'complementary' : 'generic';
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

function within(element, selector) {
  return element.parentElement !== null && element.parentElement.closest(selector) !== null;
}

// Roles of text elements, which get a line only if they are interactive.
const TEXT_ELEMENT_ROLES = {
  __proto__: null, abbr: 'Abbr', caption: 'caption', code: 'code', del: 'deletion', em: 'emphasis',
  figcaption: 'Figcaption', ins: 'insertion', legend: 'Legend', mark: 'mark', p: 'paragraph',
  ruby: 'Ruby', strong: 'strong', sub: 'subscript', sup: 'superscript', time: 'time',
};

function shownRole(element, role) {
  return role === 'generic' ? TEXT_ELEMENT_ROLES[tagOf(element)] || role : role;
}

// The URL of the image by which a style sheet replaces an element; else ''.
function pictureOf(element) {
  const content = element.isConnected ? getComputedStyle(element).content : '';
  return content.startsWith('url("') ? content.slice(5, content.indexOf('"', 5)) : '';
}

// A th without scope is a row header if its row has data cells, else a column header.
function headerRole(cell) {
  const row = cell.parentElement;
  if (!row || row.localName !== 'tr') return 'columnheader';
  if (row.parentElement && row.parentElement.localName === 'thead') return 'columnheader';
  for (const other of row.children) if (other.localName === 'td') return 'rowheader';
  return 'columnheader';
}
