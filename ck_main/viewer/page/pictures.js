// The screenshots of a step: one per action, with what the action acts on.
import { html, useState } from '/static/ui.js';
import { asText, visible } from '/static/inert.js';
import { blobUrl } from './data.js';
import { useKeys } from './keys.js';

/** The screenshots to show: one without an action is left out if the next one shows the same. */
export function picturesOf(page) {
  const all = page.pictures && page.pictures.length ? page.pictures
    : page.screens && page.screens.some((screen) => screen.picture) ? page.screens.filter((screen) => screen.picture)
      : page.picture ? [page] : [];
  return all.filter((one, at) => typeof one.call === 'number' || !all[at + 1] || all[at + 1].picture !== one.picture);
}

function source(key, picture) {
  return picture.startsWith('data:') ? picture : blobUrl(key, picture);
}

/** Where a box is outside of the picture, in words; empty if a part of it is inside. */
function outside(picture, [x, y, width, height]) {
  if (y >= picture.height) return 'below the screenshot';
  if (y + height < 0) return 'above the screenshot';
  if (x >= picture.width) return 'right of the screenshot';
  return x + width < 0 ? 'left of the screenshot' : '';
}

function Mark({ box, number, unit }) {
  const [x, y, width, height] = box;
  const shape = (name, stroke) => (width < 1 || height < 1
    ? html`<circle class=${name} cx=${x} cy=${y} r=${10 * unit} stroke-width=${stroke * unit} />`
    : html`<rect class=${name} x=${x} y=${y} width=${width} height=${height} rx=${2 * unit}
        stroke-width=${stroke * unit} />`);
  return html`<g>${shape('target-halo', 4.5)}${shape('target', 2)}
    ${number > 0 && html`<circle class="target-dot" cx=${x} cy=${y} r=${9 * unit} />
      <text class="target-number" x=${x} y=${y} font-size=${11 * unit} dy="0.35em" text-anchor="middle">${number}</text>`}
  </g>`;
}

function Screenshot({ picture, runKey }) {
  const [large, setLarge] = useState(false);
  const targets = (picture.targets || []).filter((target) => target.box);
  const unit = picture.width / 640; // marks keep their size at the usual width
  const shown = picture.width > 0 ? targets.filter((target) => !outside(picture, target.box)) : [];
  const places = targets.map((target) => outside(picture, target.box)).filter(Boolean);
  const words = picture.label ? `Screenshot before: ${asText(picture.label)}` : 'Screenshot';
  const ratio = picture.width > 0 && picture.height > 0 ? `${picture.width} / ${picture.height}` : undefined;
  return html`<div class="picture">
    <div class="picture-box"><button type="button" class=${`picture-frame ${large ? 'large' : ''}`} aria-pressed=${String(large)}
      aria-label=${large ? 'Shrink the screenshot' : 'Enlarge the screenshot'} onClick=${() => setLarge(!large)}>
      <img src=${source(runKey, picture.picture)} width=${picture.width || undefined}
        height=${picture.height || undefined} alt=${words} style=${{ aspectRatio: ratio }} /></button>
      ${shown.length > 0 && html`<svg class="targets" viewBox=${`0 0 ${picture.width} ${picture.height}`}
        aria-hidden="true">${shown.map((target, at) => html`<${Mark} key=${at} box=${target.box} unit=${unit}
          number=${shown.length > 1 ? at + 1 : 0} />`)}</svg>`}
    </div>
    ${places.length > 0 && html`<p class="muted">The target is ${places[0]}.</p>`}
  </div>`;
}

/** The screenshots of a step, one at a time. */
export function Pictures({ pictures, runKey }) {
  const [chosen, setChosen] = useState(0);
  const at = Math.min(chosen, pictures.length - 1);
  const picture = pictures[at];
  const move = (by) => setChosen(Math.max(0, Math.min(pictures.length - 1, at + by)));
  useKeys({ p: () => move(1), P: () => move(-1) });
  return html`
    ${picture.url && html`<p class="address"><span class="hidden-text">Address </span>${visible(picture.url)}</p>`}
    <${Screenshot} picture=${picture} runKey=${runKey} />
    <div class="picture-caption">
      ${pictures.length > 1 && html`<span class="picture-steps" role="group" aria-label="Screenshots of this step">
        <button type="button" aria-label="Previous screenshot" disabled=${at === 0} onClick=${() => move(-1)}>‹</button>
        <span>${at + 1} of ${pictures.length}</span>
        <button type="button" aria-label="Next screenshot" disabled=${at === pictures.length - 1}
          onClick=${() => move(1)}>›</button></span>`}
      <p aria-live="polite">${picture.label ? html`<code>${visible(picture.label)}</code>`
        : pictures.length > 1 ? (at ? 'After the last action' : 'Before the first action') : ''}</p>
    </div>`;
}
