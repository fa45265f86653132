// The page: the bar above, and the view that the address names.
import { html, render, useEffect, useRef, useState } from '/static/ui.js';
import { copy } from '/static/inert.js';
import { ThemeSwitch } from '/static/theme.js';
import { Compare } from './compare.js';
import { canPost, follow, getJson, loadRuns, namedSources, rowsOf } from './data.js';
import { KeyHelp, useKeys } from './keys.js';
import { order } from './order.js';
import { Pending } from './parts.js';
import { compareHash, go, parseRoute, runHash, runsHash, trainingHash } from './route.js';
import { Run } from './run.js';
import { Runs } from './runs.js';
import { Training } from './training.js';

function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const change = () => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

/** Rows with the changed ones replaced in place and the new ones at the end. */
function merged(rows, changed, gone = []) {
  const left = new Set(gone);
  const byKey = new Map(changed.map((row) => [row.key, row]));
  const kept = rows.map((row) => {
    const now = byKey.get(row.key);
    byKey.delete(row.key);
    return now || row;
  });
  return [...kept, ...byKey.values()].filter((row) => !left.has(row.key));
}

function useRuns() {
  const [state, setState] = useState({});
  const [lost, setLost] = useState(false);
  useEffect(() => {
    let stop = () => {};
    Promise.all([loadRuns(), getJson('/api/info').catch(() => ({}))]).then(([runs, about]) => {
      const sources = namedSources(about.sources || []);
      const info = { ...about, sources };
      setState({ rows: rowsOf(runs, sources), info, only: runs.only });
      const take = ({ runs: changed, gone }) => setState((now) => ({ ...now,
        rows: merged(now.rows, rowsOf({ columns: runs.columns, rows: changed }, sources), gone) }));
      ({ stop } = follow(runs.version, take, setLost));
    }, (error) => setState({ error: error.message }));
    return () => stop();
  }, []);
  return { ...state, lost };
}

function Search({ route }) {
  const field = useRef(null);
  const text = route.name === 'runs' ? route.params.q || '' : '';
  useKeys({
    '/': () => {
      field.current.focus();
      field.current.select();
    },
  });
  const change = (event) => {
    const q = event.target.value;
    const params = route.name === 'runs' ? { ...route.params, q } : { q };
    go(runsHash(params), { replace: route.name === 'runs' });
  };
  const key = (event) => {
    if (event.key === 'Escape' || event.key === 'Enter') {
      event.preventDefault();
      field.current.blur();
    }
  };
  return html`<form class="search" role="search" onSubmit=${(event) => event.preventDefault()}>
    <input ref=${field} type="search" aria-label="Search in all runs" placeholder="Search in all runs  ( / )"
      value=${text}
      onInput=${change} onKeyDown=${key} /></form>`;
}

function Bar({ route, rows, lost, help }) {
  const live = rows ? rows.filter((row) => row.live).length : 0;
  const link = (name, hash, title) => html`<a href=${hash}
    aria-current=${route.name === name ? 'page' : undefined}>${title}</a>`;
  return html`<header class="bar">
    <a class="button skip" href=${location.hash || '#/'} onClick=${(event) => {
      event.preventDefault();
      document.querySelector('#main a, #main [tabindex="0"], #main button')?.focus();
    }}>Skip to the content</a>
    ${canPost && html`<nav aria-label="Pages">${link('runs', '#/', 'Runs')}${link('compare', compareHash({}), 'Compare')}${
      link('training', trainingHash({}), 'Training data')}</nav>`}
    ${canPost && html`<${Search} route=${route} />`}
    <span class="bar-end">
      <span role="status" class="live-state">${lost ? html`<span class="mark bad">not connected</span>` : live > 0
        && html`<span class="mark live"><span class="pulse" aria-hidden="true">●</span>${live} running</span>`}</span>
      <button type="button" class="icon" aria-label="Keys" title="Keys (?)" onClick=${help}>?</button>
      <${ThemeSwitch} /></span>
  </header>`;
}

async function copyLink(setNotice) {
  setNotice((await copy(location.href)) ? 'Link copied' : 'The link cannot be copied');
  setTimeout(() => setNotice(''), 1500);
}

function titleOf(route, rows) {
  if (route.name !== 'run') return { compare: 'Compare outputs', training: 'Training data' }[route.name] || 'Runs';
  const row = rows?.find((one) => one.key === route.key);
  return [route.call !== undefined && `Call ${route.call}`, route.step !== undefined && `Step ${route.step}`,
    row ? row.id : 'Run'].filter(Boolean).join(' · ');
}

function App() {
  const route = useRoute();
  const { rows, info, error, lost, only } = useRuns();
  const [help, setHelp] = useState(false);
  const [notice, setNotice] = useState('');
  useKeys({
    '?': () => setHelp(true),
    c: () => copyLink(setNotice),
    C: () => document.querySelector('.bar-end > button:last-child').click(),
  });
  useEffect(() => { if (rows && !order.keys.length) order.keys = rows.map((row) => row.key); }, [rows]);
  useEffect(() => { document.title = titleOf(route, rows); }, [route, rows]);
  useEffect(() => {
    if (only && route.name === 'runs') go(runHash(rows[0].key), { replace: true });
  }, [only, route.name]);
  let view;
  if (route.name === 'run') view = html`<${Run} route=${route} sources=${info?.sources || []} />`;
  else if (!rows) view = html`<main id="main"><h1 class="hidden-text">Runs</h1><${Pending} error=${error} /></main>`;
  else if (route.name === 'compare') view = html`<${Compare} rows=${rows} info=${info} params=${route.params} />`;
  else if (route.name === 'training') view = html`<${Training} rows=${rows} info=${info} params=${route.params} />`;
  else view = html`<${Runs} rows=${rows} info=${info} params=${route.params} />`;
  return html`<${Bar} route=${route} rows=${rows} lost=${lost} help=${() => setHelp(true)} />${view}
    <p class="notice" role="status" hidden=${!notice}>${notice}</p>
    ${help && html`<${KeyHelp} close=${() => setHelp(false)} />`}`;
}

const place = document.getElementById('app');
place.replaceChildren();
render(html`<${App} />`, place);
