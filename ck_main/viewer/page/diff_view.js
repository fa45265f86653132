// Lines of a difference.
import { html } from '/static/ui.js';
import { visible } from '/static/inert.js';

/** One line of `diffLines` or `foldEqual`. */
export function DiffLine({ line: [kind, text, number] }) {
  if (kind === '…') {
    return html`<details class="diff-fold"><summary>${number} equal lines</summary>
      <pre>${visible(text)}</pre></details>`;
  }
  const tone = { '+': 'added', '-': 'removed' }[kind] || '';
  return html`<div class=${`diff-line ${tone}`}>
    <span class="diff-sign" aria-hidden="true">${kind === '=' ? ' ' : kind}</span>
    ${tone && html`<span class="hidden-text">${tone}: </span>`}<span class="diff-text">${visible(text)}</span></div>`;
}
