// Matches of the full-text search inside runs.
import { html, useEffect, useMemo, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { useJson } from './data.js';
import { runHash } from './route.js';

const DELAY = 200; // milliseconds after the last letter
const FIRST = 6;

function useSettled(text) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), DELAY);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function Hit({ hit, name }) {
  const where = [name, hit.step === null || hit.step === undefined ? '' : `step ${hit.step}`, hit.where];
  return html`<li><a href=${runHash(hit.key, hit.sid, hit.step)}>
    <span class="hit-where">${visible(where.filter(Boolean).join(' · '))}</span>
    <span class="hit-text">${(hit.snippet || []).map(([text, match]) => (
      match ? html`<mark>${visible(text)}</mark>` : visible(text)))}</span></a></li>`;
}

/** {query, data, error}: what the server finds for a text, once the reader stops typing. */
export function useSearch(text) {
  const query = useSettled((text || '').trim());
  const { data, error } = useJson(query ? `/api/search?q=${encodeURIComponent(query)}` : null);
  return { query, data, error };
}

/** What the search found inside runs, with links to the steps. */
export function SearchHits({ found: { query, data, error }, rows }) {
  const [all, setAll] = useState(false);
  const names = useMemo(() => new Map(rows.map((row) => [row.key, row.id])), [rows]);
  if (!query || (!data && !error)) return null;
  const hits = data ? data.hits : [];
  const title = `${hits.length}${data?.more ? ' or more' : ''} ${hits.length === 1 ? 'match' : 'matches'} inside runs`;
  const shown = all ? hits : hits.slice(0, FIRST);
  return html`<section class="hits" aria-label="Matches inside runs">
    <h2>${error ? 'Search' : title}</h2>
    ${error && html`<p role="alert">${error}</p>`}
    ${data?.indexing && html`<p class="muted">${data.indexing.done} of ${data.indexing.total} runs are read.</p>`}
    ${(data?.failures || []).map((text) => html`<p class="muted">${visible(text)}</p>`)}
    <ul>${shown.map((hit, at) => html`<${Hit} key=${at} hit=${hit} name=${names.get(hit.key) || hit.key} />`)}</ul>
    ${hits.length > FIRST && html`<button class="quiet" type="button" aria-expanded=${String(all)}
      onClick=${() => setAll(!all)}>${all ? 'Show fewer' : `Show all ${hits.length}`}</button>`}
  </section>`;
}
