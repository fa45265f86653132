// Part of the walker: accessible names, after the W3C documents "Accessible Name and Description
// Computation 1.2" and "HTML-AAM".
/* global composedChildren -- dom.js */
/* global INTERACTIVE_ROLES, NAME_FROM_CONTENT, attribute, collapse, roleOf -- roles.js */
/* global isStruck, marksAround, struckText -- typography.js */
/* exported labelText, nameOf, placeholderOf, pseudoText, referenced, textOf, transformed */

// The text of `::before` or `::after`.
function pseudoText(element, which) {
  const content = getComputedStyle(element, which).content;
  if (content === 'open-quote') return '\u201c';
  if (content === 'close-quote') return '\u201d';
  if (content === 'none' || content === 'normal' || content.charCodeAt(0) !== 34) {
    return content.includes('/ "') ? unquoteCss(content.slice(content.indexOf('/ "') + 2)) : '';
  }
  const slash = content.lastIndexOf('" / "');
  return unquoteCss(slash > 0 ? content.slice(slash + 4) : content);
}

// The same as a part of a name, separated by a space unless it is displayed inline.
function pseudoNamePart(element, which) {
  const text = pseudoText(element, which);
  if (!text) return '';
  const style = getComputedStyle(element, which);
  if (style.display === 'inline' && !style.content.includes('/ "')) return text;
  return which === '::before' ? text + ' ' : ' ' + text;
}

function unquoteCss(css) {
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

// An attribute that a script set by elements, not by ids, is empty; these properties have them.
const REFERENCES = {
  'aria-labelledby': 'ariaLabelledByElements', 'aria-controls': 'ariaControlsElements',
  'aria-owns': 'ariaOwnsElements', 'aria-activedescendant': 'ariaActiveDescendantElement',
};

function referenced(element, attributeName) {
  const list = element.getAttribute(attributeName);
  if (!list) {
    const found = list === '' && element[REFERENCES[attributeName]];
    return found ? [].concat(found) : [];
  }
  const root = element.getRootNode();
  const found = [];
  for (const id of list.split(/\s+/)) {
    const target = id && root.getElementById && root.getElementById(id);
    if (target) found.push(target);
  }
  return found;
}

// The value that a control contributes to the name of an element around it; null for none.
function embeddedValue(element, role) {
  if (role === 'textbox' || role === 'searchbox') {
    if ('value' in element && element.type !== 'password') return element.value || null;
    return rawText(element, role);
  }
  if (role === 'combobox' || role === 'listbox') {
    if (element.selectedOptions) return [...element.selectedOptions].map((o) => o.label).join(' ');
    if (role === 'listbox') return selectedOptionsText(element);
    return 'value' in element || element.tabIndex >= 0 ? element.value || null : '';
  }
  if (role === 'slider' || role === 'spinbutton' || role === 'progressbar' || role === 'meter'
      || role === 'scrollbar') {
    return attribute(element, 'aria-valuetext') || attribute(element, 'aria-valuenow')
      || (element.value === undefined ? '' : String(element.value));
  }
  return null;
}

function selectedOptionsText(list) {
  const chosen = list.querySelectorAll('[role=option][aria-selected=true]');
  return [...chosen].map((option) => textOf(option, 'option')).join(' ');
}

// The text that an element contributes to the name of another, with surrounding white space. `state`:
// `seen` elements (against loops), whether `hidden` content counts, whether it follows `labelledby`.
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
    const joined = labelledbyText(element);
    if (joined) return ` ${joined} `;
  }
  if (label) return ` ${label} `;
  const own = tag === 'figure' ? null : nativeName(element, role, tag, state);
  if (own !== null) return ` ${own} `;
  const text = rawText(element, role, state);
  if (text || role === 'generic' && element.tabIndex < 0 || role === 'none') return text;
  const title = collapse(attribute(element, 'title'));
  return title && ` ${title} `;
}

function labelledbyText(element) {
  const parts = [];
  for (const target of referenced(element, 'aria-labelledby')) {
    const state = { seen: new Set(), hidden: isHidden(target), labelledby: true, from: element };
    if (target === element) {
      const label = collapse(attribute(element, 'aria-label'));
      parts.push(label || textOf(element, roleOf(element), state));
    } else {
      parts.push(alternative(target, state));
    }
  }
  return collapse(parts.join(' '));
}

// Content that is hidden as a whole still counts in a reference.
function isHidden(element) {
  return !element.checkVisibility({ visibilityProperty: true })
    || element.closest('[aria-hidden=true]') !== null;
}

const REPLACED = /^(audio|canvas|embed|iframe|img|object|svg|video)$/;

// The displayed text of an element: blocks are separated by spaces, hidden parts are left out.
function textOf(element, role, state) {
  return collapse(rawText(element, role, state));
}

function rawText(element, role, state = { seen: new Set([element]), hidden: false }) {
  let text = '';
  const style = getComputedStyle(element);
  const seen = style.visibility === 'visible';
  if (style.contentVisibility === 'hidden' && !state.hidden) return '';
  const closed = element.localName === 'details' && !element.open;
  const nested = role === 'treeitem' ? /^group$/ : role.startsWith('menuitem') ? /^menu$/ : null;
  if (seen || state.hidden) text += pseudoNamePart(element, '::before');
  for (const child of composedChildren(element)) {
    if (closed && child.localName !== 'summary') continue;
    if (child.nodeType === 3) {
      if (seen || state.hidden || style.display === 'contents') text += transformed(child.data, style);
    } else if (child.nodeType === 1) {
      if (child.localName === 'br') {
        text += ' ';
        continue;
      }
      const childStyle = getComputedStyle(child);
      const display = childStyle.display;
      if (display === 'none' && !state.hidden) continue;
      if (nested && nested.test(roleOf(child))) continue;
      let part = alternative(child, state);
      if (/\S/.test(part)) {
        const [open, close] = marksAround(child, child.localName, childStyle, text);
        if (open) part = open + part.trim() + close;
        if (isStruck(childStyle)) part = struckText(part);
      }
      const apart = display !== 'inline' || REPLACED.test(child.localName);
      text += apart ? ' ' + part + ' ' : part;
    }
  }
  if (seen || state.hidden) text += pseudoNamePart(element, '::after');
  return text;
}

// The text of a label without its control, whose name would be this text again.
function labelText(label) {
  return textOf(label, 'LabelText', { seen: new Set([label, label.control]), hidden: false });
}

// The labels of a control. Form-associated custom elements have no property `labels`.
function labelsOf(element) {
  if (element.labels) return element.labels;
  const wrapping = element.closest('label');
  const found = wrapping ? [wrapping] : [];
  if (element.id) {
    found.push(...element.getRootNode().querySelectorAll(`label[for="${CSS.escape(element.id)}"]`));
  }
  return found.filter((label) => label.control === element);
}

// The text of a control's labels. Hidden labels count; a label inside another counts once.
function labelsText(element, outer) {
  const parts = [];
  const seen = new Set(outer ? outer.seen : []);
  seen.add(element);
  for (const label of labelsOf(element)) {
    if (seen.has(label)) continue;
    seen.add(label);
    const labelledby = outer !== null && outer.labelledby;
    const state = { seen, hidden: isHidden(label), labelledby, from: element };
    parts.push(!labelledby && label.hasAttribute('aria-labelledby') && labelledbyText(label)
      || collapse(attribute(label, 'aria-label')) || textOf(label, 'LabelText', state)
      || collapse(attribute(label, 'title')));
  }
  return collapse(parts.join(' '));
}

// The name by HTML's rules for the tag; null if the content or the title provides it.
function nativeName(element, role, tag, state) {
  switch (tag) {
    case 'input': {
      const type = element.type;
      const labels = labelsText(element, state);
      if (labels) return labels;
      if (type === 'image') {
        return attribute(element, 'alt') || attribute(element, 'value')
          || attribute(element, 'title') || 'Submit';
      }
      if (type === 'file') return element.multiple ? 'Choose Files' : 'Choose File';
      if (type === 'submit' || type === 'reset' || type === 'button') {
        if (element.value) return collapse(element.value);
        if (type === 'button') return null;
        return element.hasAttribute('value') ? null : type === 'submit' ? 'Submit' : 'Reset';
      }
      return attribute(element, 'title').trim() || placeholderOf(element) || '';
    }
    case 'textarea':
      return labelsText(element, state) || attribute(element, 'title').trim() || placeholderOf(element);
    case 'select': case 'meter': case 'progress': case 'output':
      return labelsText(element, state) || collapse(attribute(element, 'title'));
    case 'button': return labelsText(element, state) || null;
    case 'img': case 'area':
      return element.hasAttribute('alt') && (element.alt || tag === 'img') && element.alt.trim()
        ? element.alt.trim() : collapse(attribute(element, 'title'));
    case 'svg': {
      for (const child of element.children) {
        if (child.localName === 'title') return collapse(child.textContent);
      }
      return null;
    }
    case 'fieldset': return childText(element, 'legend', state);
    case 'table': return childText(element, 'caption', state) || collapse(attribute(element, 'summary')) || null;
    case 'figure': return childText(element, 'figcaption', state);
    case 'option': return collapse(element.label);
    case 'optgroup': return collapse(element.label);
    default: return tag.includes('-') && INTERACTIVE_ROLES.has(role) && labelsText(element, state) || null;
  }
}

const PLACEHOLDERS = /^(text|search|url|tel|email|password|number)$/;
function placeholderOf(element) {
  if (element.localName === 'input' && !PLACEHOLDERS.test(element.type)) return '';
  return collapse(attribute(element, 'placeholder') || attribute(element, 'aria-placeholder'));
}

function childText(element, tag, state) {
  for (const child of element.children) {
    if (child.localName === tag) return textOf(child, tag, state || undefined) || null;
  }
  return null;
}

function nameOf(element, role) {
  const labelled = element.hasAttribute('aria-labelledby') && labelledbyText(element);
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
