// Part of settling: effects of an action that change no node of a document.
/* global countChange -- changes.js */
/* exported clickedDownloads, invalidField, listenForActions, startAction, takeCopied */

// The content of a field, and a selection. A caret is not a selection.
for (const kind of ['input', 'change']) document.addEventListener(kind, countChange, true);
for (const kind of ['select', 'selectionchange']) document.addEventListener(kind, () => {
  const field = document.activeElement;
  const selected = field && typeof field.selectionStart === 'number'
    ? field.selectionStart !== field.selectionEnd : !getSelection().isCollapsed;
  if (selected) countChange();
}, true);

// Chromium reports a link with `download` only when its server has answered. Whether the page
// handles the click itself is known only after the page's own listeners.
let linkClicks = [];  // [event, URL]
let copied = false;   // whether the page copied something since `takeCopied`
let invalidEvents = [];
let focusedAsInvalid = null;
const listening = new WeakSet();

function noteCopy() {
  copied = true;
}

function noteLinkClick(event) {
  const link = event.composedPath().find((node) => node.localName === 'a' && node.href);
  if (link && link.hasAttribute('download') && /^https?:/.test(link.href)) {
    linkClicks.push([event, link.href]);
  }
}

// A browser that does not send a form finds its fields invalid, then moves the focus to the first one.
function noteFocus(event) {
  const field = event.composedPath()[0];
  if (invalidEvents.some((each) => each.target === field && !each.defaultPrevented)) focusedAsInvalid = field;
}

function listenForActions(doc) {
  if (listening.has(doc)) return;
  listening.add(doc);
  doc.addEventListener('click', noteLinkClick, true);
  doc.addEventListener('invalid', (event) => { invalidEvents.push(event); }, true);
  doc.addEventListener('focusin', noteFocus, true);
  for (const kind of ['copy', 'cut']) doc.addEventListener(kind, noteCopy, true);
}

function startAction() {
  linkClicks = [];
  invalidEvents = [];
  focusedAsInvalid = null;
}

// Name and message of the field because of which the browser did not send a form. It shows the message in
// a bubble that is not part of the document. null without one.
function invalidField() {
  const field = focusedAsInvalid;
  if (!field || field !== document.activeElement || !field.validationMessage) return null;
  const label = field.labels && field.labels[0];
  const name = label && label.innerText || field.getAttribute('aria-label') || field.getAttribute('name') || '';
  return [name.trim(), field.validationMessage];
}

function takeCopied() {
  const found = copied;
  copied = false;
  return found;
}

function clickedDownloads() {
  return linkClicks.filter(([event]) => !event.defaultPrevented).map(([, url]) => url);
}
