// Keyboard commands: one listener, the newest page's keys first.
import { html, useEffect, useLayoutEffect, useRef } from '/static/ui.js';

const layers = [];
const WRITES = 'input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]';

/** Whether a key belongs to the focused element: texts take all keys, a choice of one its arrows. */
function isTaken(event) {
  const focused = event.target;
  return Boolean(focused.closest?.(WRITES)) || (focused.type === 'radio' && event.key.startsWith('Arrow'));
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTaken(event) || document.querySelector('dialog[open]')) return;
  for (let at = layers.length - 1; at >= 0; at -= 1) {
    const command = layers[at].current[event.key];
    if (command && command(event) !== false) {
      event.preventDefault();
      return;
    }
  }
}

addEventListener('keydown', onKey);

/** Commands by key while the component is shown; one that returns false leaves the key to the browser. */
export function useKeys(commands) {
  const current = useRef(commands);
  current.current = commands;
  useLayoutEffect(() => { // a key works as soon as what it acts on is shown
    layers.push(current);
    return () => layers.splice(layers.indexOf(current), 1);
  }, []);
}

export const KEYS = [
  ['Everywhere', [
    ['/', 'Search'], ['?', 'Show the keys'], ['Escape', 'Close, leave a field, or go back to the page above'],
    ['c', 'Copy the link to what is shown'], ['C', 'Switch colours'],
  ]],
  ['Runs and comparison', [
    ['j k ↓ ↑', 'Next and previous run'], ['Enter', 'Open the run'], ['g G', 'First and last run'],
  ]],
  ['One run', [
    ['j k ↓ ↑', 'Next and previous step in the tree'], ['Enter', 'Enter the first sub-agent of the step'],
    ['u', 'Up to the step that called this agent'], ['J K', 'Next and previous run of the table'],
    ['← →', 'Fold and unfold an agent in the tree'],
    ['g G', 'First and last row of the tree'], ['e E', 'Next and previous step with an error'],
    ['] [', 'Next and previous model call of the session'], ['d', 'In a model call: the next way to show the input'],
    ['p P', 'Next and previous picture of the step'], ['t', 'Show or hide the timeline'], ['f', 'Follow a running run'],
  ]],
  ['Labels', [
    ['y n x', 'Good, bad, exclude: what is shown, or the selected run; the same key again takes it back'],
    ['m', 'Comment'],
    ['r', 'Correct the reply of a model call'],
  ]],
];

/** The list of keys. */
export function KeyHelp({ close }) {
  const dialog = useRef(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} onClose=${close} aria-label="Keys">
    <h1>Keys</h1>
    ${KEYS.map(([title, keys]) => html`<section key=${title}><h2>${title}</h2><dl class="keys">
      ${keys.map(([key, text]) => html`<div key=${key}><dt>${key.split(' ').map((one) => html`<kbd>${one}</kbd> `)}</dt>
        <dd>${text}</dd></div>`)}</dl></section>`)}
    <button type="button" class="primary" autofocus onClick=${() => dialog.current.close()}>Close</button>
  </dialog>`;
}
