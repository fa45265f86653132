// A picture of what the agent's environment shows, with a button on each element.
import { html, useEffect, useState } from '/static/ui.js';
import { callOf, functionsFor } from './calls.js';
import { get } from './queue.js';

function Box({ id, box, picture, element, functions, insert }) {
  const role = element ? element.role : '';
  const fitting = functionsFor(role, functions);
  if (!fitting.length) return null;
  const call = callOf(fitting[0], id);
  const part = (value, whole) => `${(100 * value) / whole}%`;
  const place = {
    left: part(box[0], picture.width), top: part(box[1], picture.height),
    width: part(box[2], picture.width), height: part(box[3], picture.height),
  };
  const name = element ? `[${id}] ${role}${element.rest}` : `[${id}]`;
  return html`<button type="button" class="box" style=${place} title=${`${name}: ${call.text}`} aria-label=${name}
    onClick=${() => insert(call)}></button>`;
}

/** The picture of a call; nothing if its environment gives none. */
export function PagePicture({ call, elements, insert }) {
  const [picture, setPicture] = useState(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let shown = true;
    setPicture(null);
    setProblem('');
    get(`/api/call/${call.id}/picture`).then((found) => { if (shown) setPicture(found.picture); },
      (error) => { if (shown) setProblem(error.message); });
    return () => { shown = false; };
  }, [call.id]);
  if (problem) return html`<p class="muted">No picture: ${problem}</p>`;
  if (!picture || !/^data:image\/(?:png|jpeg|webp);base64,/.test(picture.image || '')) return null;
  const boxes = Object.entries(picture.elements || {});
  return html`<details class="picture" open><summary>Picture of the page${boxes.length > 0
    && html` <span class="muted">(an element writes its call when you click it)</span>`}</summary>
    <div class="frame"><img src=${picture.image} alt="The page as the agent's browser shows it" />
      ${boxes.map(([id, box]) => html`<${Box} key=${id} id=${Number(id)} box=${box} picture=${picture}
        element=${elements.get(Number(id))} functions=${call.guide.functions} insert=${insert} />`)}</div></details>`;
}
