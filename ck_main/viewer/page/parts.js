// Small parts that several views of a run use: sections, code, facts.
import { html } from '/static/ui.js';
import { asText, CopyButton, InertText } from '/static/inert.js';
import { highlight } from '/static/python.js';

/** A titled section with room for buttons. */
export function Section({ title, tools, tone = '', children, id }) {
  return html`<section class=${`part ${tone}`} id=${id} aria-label=${title}>
    <header><h2>${title}</h2>${tools}</header>${children}</section>`;
}

/** Python with line numbers and a copy button. */
export function Code({ source, title = 'Code' }) {
  const text = asText(source);
  return html`<${Section} title=${title} tools=${html`<${CopyButton} text=${text} name=${title.toLowerCase()} />`}>
    <${InertText} value=${text} render=${highlight} className="code" lines=${80} name=${title} /></${Section}>`;
}

/** A titled, foldable text with a copy button; nothing for an empty one. */
export function TextSection({ title, value, tone, lines, prose }) {
  const text = asText(value);
  if (!text) return null;
  return html`<${Section} title=${title} tone=${tone} tools=${html`<${CopyButton} text=${text}
    name=${title.toLowerCase()} />`}>
    <${InertText} value=${text} lines=${lines} name=${title}
      className=${`text ${tone || ''} ${prose ? 'prose' : ''}`} /></${Section}>`;
}

/** Pairs of name and value in a row; empty values are left out. */
export function Facts({ facts, name }) {
  const known = facts.filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return html`<dl class="facts-row" aria-label=${name}>${known.map(([title, value]) => html`
    <div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** What is shown while data loads, or why it cannot be shown. */
export function Pending({ error }) {
  return error ? html`<p class="problem" role="alert">${error}</p>` : html`<p class="loading"
    role="status">Loading</p>`;
}
