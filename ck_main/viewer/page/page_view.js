// The page of a step: its screenshots, and its text.
import { html, useState } from '/static/ui.js';
import { CopyButton, InertText, visible } from '/static/inert.js';
import { Section } from './parts.js';
import { Pictures, picturesOf } from './pictures.js';

/** Lines of a page text; those of the elements that an action used are marked. */
function pageLines(targets) {
  const ids = new Set(targets.map((target) => `[${target.id ?? target.element ?? ''}]`));
  return (text) => text.split('\n').map((line, at) => {
    const found = line.match(/^(\s*)(\[\d+\]) ?(\S+)?(.*)$/s);
    const end = at ? '\n' : '';
    if (!found) return html`${end}${visible(line)}`;
    const [, indent, id, role = '', rest] = found;
    const words = html`<span class="page-id">${id}</span> <span
      class="page-role">${visible(role)}</span>${visible(rest)}`;
    return html`${end}${indent}${ids.has(id) ? html`<mark>${words}</mark>` : words}`;
  });
}

/** The page before the step's action. */
export function PageView({ page, runKey }) {
  const [shown, setShown] = useState('picture');
  const pictures = picturesOf(page);
  const both = pictures.length > 0 && page.text;
  const view = both ? shown : pictures.length ? 'picture' : 'text';
  const tools = html`${both && html`<span class="tabs" role="group" aria-label="Show the page as">
    ${[['picture', 'Screenshot'], ['text', 'Text']].map(([name, title]) => html`<button key=${name} type="button"
      class="quiet" aria-pressed=${String(view === name)} onClick=${() => setShown(name)}>${title}</button>`)}</span>`}
    ${page.text && html`<${CopyButton} text=${page.text} name="page text" />`}`;
  return html`<${Section} title="Page" tools=${tools}>
    ${view === 'text' && page.url && html`<p class="address"><span
      class="hidden-text">Address </span>${visible(page.url)}</p>`}
    ${view === 'picture'
      ? html`<${Pictures} key=${pictures[0].picture + pictures.length} pictures=${pictures} runKey=${runKey} />`
      : html`<${InertText} value=${page.text} className="text page-text" render=${pageLines(page.targets || [])}
        lines=${60} name="Page text" />`}
  </${Section}>`;
}
