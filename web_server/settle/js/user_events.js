// Part of settling: effects of an action that change no node of a document.
/* global countChange -- changes.js */
/* exported clickedDownloads, listenForActions, startAction, takeCopied */

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

function listenForActions(doc) {
  if (listening.has(doc)) return;
  listening.add(doc);
  doc.addEventListener('click', noteLinkClick, true);
  for (const kind of ['copy', 'cut']) doc.addEventListener(kind, noteCopy, true);
}

function startAction() {
  linkClicks = [];
}

function takeCopied() {
  const found = copied;
  copied = false;
  return found;
}

function clickedDownloads() {
  return linkClicks.filter(([event]) => !event.defaultPrevented).map(([, url]) => url);
}
