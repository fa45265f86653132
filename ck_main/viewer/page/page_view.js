// The page of a step: the screenshot with the targets of the actions, and its text.
import { html, useState } from '/static/ui.js';
import { CopyButton, InertText, visible } from '/static/inert.js';
import { blobUrl } from './data.js';
import { Section } from './parts.js';

function Targets({ page }) {
  const box = `0 0 ${page.width} ${page.height}`;
  const unit = page.width / 640; // marks keep their size at the usual width
  return html`<svg class="targets" viewBox=${box} aria-hidden="true">${(page.targets || []).map((target, at) => {
    const [x, y, width, height] = target.box;
    return html`<g key=${at}>
      <rect class="target-halo" x=${x} y=${y} width=${width} height=${height} rx=${2 * unit}
        stroke-width=${4.5 * unit} />
      <rect class="target" x=${x} y=${y} width=${width} height=${height} rx=${2 * unit} stroke-width=${2 * unit} />
      <circle class="target-dot" cx=${x} cy=${y} r=${9 * unit} />
      <text class="target-number" x=${x} y=${y} font-size=${11 * unit} dy="0.35em" text-anchor="middle">${at + 1}</text>
    </g>`;
  })}</svg>`;
}

function Picture({ page, runKey }) {
  const [large, setLarge] = useState(false);
  const targets = page.targets || [];
  const names = targets.map((target) => `${target.name} ${target.label || ''}`).join(', ');
  return html`<div class="picture">
    <div class="picture-box"><button type="button" class=${`picture-frame ${large ? 'large' : ''}`} aria-pressed=${String(large)}
      aria-label=${large ? 'Shrink the screenshot' : 'Enlarge the screenshot'} onClick=${() => setLarge(!large)}>
      <img src=${blobUrl(runKey, page.picture)} width=${page.width} height=${page.height}
        alt=${`Screenshot before the action${names ? `; targets: ${names}` : ''}`} />
      </button>${page.width > 0 && html`<${Targets} page=${page} />`}</div>
    ${targets.length > 0 && html`<ol class="target-list">${targets.map((target, at) => html`<li key=${at}>
      <code>${visible(target.name)}</code> ${visible(target.label)}</li>`)}</ol>`}
  </div>`;
}

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
  const both = page.picture && page.text;
  const view = both ? shown : page.picture ? 'picture' : 'text';
  const tools = html`${both && html`<span class="tabs" role="group" aria-label="Show the page as">
    ${[['picture', 'Screenshot'], ['text', 'Text']].map(([name, title]) => html`<button key=${name} type="button"
      class="quiet" aria-pressed=${String(view === name)} onClick=${() => setShown(name)}>${title}</button>`)}</span>`}
    ${page.text && html`<${CopyButton} text=${page.text} name="page text" />`}`;
  return html`<${Section} title="Page" tools=${tools}>
    ${page.url && html`<p class="address"><span class="hidden-text">Address </span>${visible(page.url)}</p>`}
    ${view === 'picture' ? html`<${Picture} page=${page} runKey=${runKey} />`
      : html`<${InertText} value=${page.text} className="text page-text" render=${pageLines(page.targets || [])}
        lines=${60} name="Page text" />`}
  </${Section}>`;
}
