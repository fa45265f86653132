// The table of runs: filter, sort, search, and open one.
import { html, memo, useEffect, useMemo, useRef, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { barWidth, count, money, percent, plural, Score, seconds, short, Status } from './format.js';
import { canPost } from './data.js';
import { useKeys } from './keys.js';
import { toggleRunLabel, VERDICTS } from './labels.js';
import { order } from './order.js';
import { compareHash, go, runHash, runsHash } from './route.js';
import { SearchHits, useSearch } from './search.js';
import { cachedShare, countValues, filterRows, labelsOf, sortRows, statusOf, sumRows } from './table_rows.js';
import { useRows } from './virtual.js';

const COLUMNS = [
  ['id', 'Task', 'task'], ['output', 'Answer', 'answer'], ['score', 'Score', 'small'], ['status', 'Status', 'status'],
  ['stop_reason', 'Stop reason', 'reason'], ['steps', 'Steps', 'number'], ['calls', 'Calls', 'number'],
  ['tokens', 'Tokens', 'number wide'], ['cached', 'Cached', 'number'], ['money', 'Cost', 'number'],
  ['seconds', 'Time', 'number time'], ['labels', 'Labels', 'labels'],
];
const HEAD = 34; // pixels
const ARROWS = { ascending: '▲', descending: '▼' };
const PHONE = matchMedia('(max-width: 700px)');
const place = { hash: null, top: 0, selected: 0 }; // where the reader was, for the way back

function useRowHeight() {
  const [phone, setPhone] = useState(PHONE.matches);
  useEffect(() => {
    const change = () => setPhone(PHONE.matches);
    PHONE.addEventListener('change', change);
    return () => PHONE.removeEventListener('change', change);
  }, []);
  return phone ? 62 : 38;
}

function Head({ sort, onSort }) {
  return html`<thead role="rowgroup"><tr role="row" aria-rowindex="1">${COLUMNS.map(([name, title, kind]) => {
    const state = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;
    const next = state === 'descending' ? name : state === 'ascending' ? '' : `-${name}`;
    return html`<th key=${name} role="columnheader" scope="col" class=${kind} aria-sort=${state}>
      <button type="button" class="quiet sort" onClick=${() => onSort(next)}>${title}
        <span aria-hidden="true" class="arrow">${ARROWS[state] || ''}</span></button></th>`;
  })}</tr></thead>`;
}

const Row = memo(({ row, at, most, selected, several }) => {
  const cached = cachedShare(row);
    const facts = [plural(row.steps ?? 0, 'step'), row.tokens && `${short(row.tokens)} tokens`, money(row.money),
    seconds(row.seconds)].filter(Boolean).join(' · ');
  return html`<tr role="row" aria-rowindex=${at + 2} data-at=${at} class=${selected ? 'selected' : ''}>
    <td role="cell" class="task"><a class="open" data-at=${at} href=${runHash(row.key)} tabindex=${selected ? 0 : -1}
      >${visible(row.id)}${
        several ? html`<span class="muted"> #${visible(String(row.try))}</span>` : ''}</a>
      <span class="under">${visible(row.task)}</span>
      <span class="facts">${statusOf(row)} · ${facts}</span></td>
    <td role="cell" class="answer">${visible(row.output)}</td>
    <td role="cell" class="small"><${Score} score=${row.score} /></td>
    <td role="cell" class="status"><${Status} status=${row.status} live=${row.live} /></td>
    <td role="cell" class="reason">${visible(row.stop_reason)}</td>
    <td role="cell" class="number">${count(row.steps)}</td>
    <td role="cell" class="number">${count(row.calls)}</td>
    <td role="cell" class="number wide"><span class="bar" 
      style=${{ width: barWidth(row.tokens, most) }}></span>${short(row.tokens)}</td>
    <td role="cell" class="number">${percent(cached)}</td>
    <td role="cell" class="number">${money(row.money)}</td>
    <td role="cell" class="number time">${seconds(row.seconds)}</td>
    <td role="cell" class="labels" title=${labelsOf(row).join(', ')}>${labelsOf(row).map((label) => html`
      <span class=${`mark ${label}`}>${visible(label)}</span>`)}</td>
  </tr>`;
});

function Sums({ rows, total }) {
  const sums = useMemo(() => sumRows(rows), [rows]);
  const all = rows.length === total ? '' : ` of ${count(total)}`;
  const facts = [
    ['Runs', `${count(sums.runs)}${all}`],
    ['Score', sums.scored ? `${percent(sums.score / sums.scored)} (${count(Math.round(sums.score * 100) / 100)} of `
      + `${count(sums.scored)})` : '–'],
    ['Tokens', short(sums.tokens)],
    ['Cached', sums.prompt && sums.cached !== null ? percent(sums.cached / sums.prompt) : '–'],
    ['Cost', money(sums.money) || '–'], ['Time', seconds(sums.seconds)],
  ];
  return html`<dl class="sums" aria-label="Sums">${facts.map(([name, value]) => html`
    <div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function Problems({ problems }) {
  if (!problems.length) return null;
  return html`<details class="problems"><summary>${plural(problems.length, 'problem')} in the inputs</summary>
    <ul>${problems.slice(0, 100).map((one, at) => html`<li key=${at}>${visible(one)}</li>`)}</ul></details>`;
}

function Chips({ name, title, options, params, change }) {
  const chosen = new Set((params[name] || '').split(',').filter(Boolean));
  if (options.length < 2 && !chosen.size) return null;
  const press = (value) => {
    if (!chosen.delete(value)) chosen.add(value);
    change({ [name]: [...chosen].join(',') });
  };
  return html`<div class="chips" role="group" aria-label=${title}>${options.map(([value, number, text]) => html`
    <button key=${value} type="button" class="chip" aria-pressed=${String(chosen.has(value))}
      onClick=${() => press(value)}>${visible(text || value)} <span
        class="muted">${count(number)}</span></button>`)}</div>`;
}

/** The report of the chosen output, or of the first two. */
function reportUrl(sources, params) {
  const chosen = sources.findIndex((one) => one.name === params.source);
  return chosen < 0 ? `/report?a=0${sources.length > 1 ? '&b=1' : ''}` : `/report?a=${chosen}`;
}

const HIDDEN = /[\p{Cc}\p{Cf}]/gu; // an option has no room for marks

function optionText(value) {
  const text = String(value).replace(HIDDEN, '\ufffd');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function Filters({ rows, params, change, sources }) {
  const scores = useMemo(() => countValues(rows, (row) => (row.score === null || row.score === undefined ? 'none'
    : row.score >= 1 ? 'right' : row.score > 0 ? 'part' : 'wrong')), [rows]);
  const names = { right: 'right', wrong: 'wrong', part: 'partly right', none: 'no score' };
  const labels = useMemo(() => countValues(rows.flatMap((row) => labelsOf(row).map((label) => ({ label }))),
    (one) => one.label), [rows]);
  const levels = useMemo(() => countValues(rows, (row) => row.level), [rows]);
  const select = (name, title, options) => options.length > 0 && html`
    <select aria-label=${title} value=${params[name] || ''}
      onChange=${(event) => change({ [name]: event.target.value })}>
      <option value="">${title}: all</option>${options.map(([value, number]) => html`
        <option value=${value}>${optionText(value)} (${count(number)})</option>`)}</select>`;
  return html`<div class="filters">
    <${Chips} name="status" title="Status" options=${countValues(rows, statusOf)} params=${params} change=${change} />
    <${Chips} name="score" title="Score" params=${params} change=${change}
      options=${scores.map(([value, number]) => [value, number, names[value]])} />
    ${sources.length > 1 && select('source', 'Output', countValues(rows, (row) => row.source))}
    ${levels.length > 1 && select('level', 'Level', levels)}
    ${select('label', 'Label', labels)}
    <select class="sorting" aria-label="Sort" value=${params.sort || ''}
      onChange=${(event) => change({ sort: event.target.value })}>
      <option value="">Sort: as recorded</option>${COLUMNS.flatMap(([name, title]) => [
        html`<option value=${`-${name}`}>${title} ▼</option>`, html`<option
          value=${name}>${title} ▲</option>`])}</select>
    ${sources.length > 1 && html`<a class="button" href=${compareHash({ of: sources.slice(0, 2)
      .map((one) => one.name).join('|') })}>Compare outputs</a>`}
    ${canPost && sources.length > 0 && html`<a class="button" href=${reportUrl(sources, params)}>Report</a>`}
  </div>`;
}

function keyTable(select, selected, shown) {
  const to = (index) => () => select(index);
  const enter = (event) => {
    if (event.target !== document.body || !shown[selected]) return false;
    go(runHash(shown[selected].key));
    return true;
  };
  return {
    j: to(selected + 1), k: to(selected - 1), ArrowDown: to(selected + 1), ArrowUp: to(selected - 1), g: to(0),
    G: to(shown.length - 1), Home: to(0), End: to(shown.length - 1), PageDown: to(selected + 15),
    PageUp: to(selected - 15), Enter: enter,
  };
}

/** Keys that label the selected run, and what went wrong. */
function useLabelKeys(row) {
  const [problem, setProblem] = useState('');
  const label = (verdict) => () => {
    if (!row) return;
    setProblem('');
    toggleRunLabel(row.key, verdict).catch((error) => setProblem(`Not saved: ${error.message}`));
  };
  return [Object.fromEntries(VERDICTS.map(([verdict, , key]) => [key, label(verdict)])), problem];
}

function openRow(event) {
  const link = event.target.closest('tr')?.querySelector('a.open');
  if (link && !event.target.closest('a') && !String(getSelection())) go(link.getAttribute('href'));
}

/** The page of all runs. */
export function Runs({ rows, info, params }) {
  const height = useRowHeight();
  const table = useRef(null);
  const hash = runsHash(params);
  const found = useSearch(params.q);
  const inside = found.query === (params.q || '').trim() ? found.data : null;
  const shown = useMemo(() => sortRows(filterRows(rows, params, inside?.hits), params.sort), [rows, hash, inside]);
  const most = useMemo(() => shown.reduce((top, row) => Math.max(top, row.tokens || 0), 0), [shown]);
  const several = useMemo(() => rows.some((row) => row.try && String(row.try) !== '1'), [rows]);
  const [selected, setSelected] = useState(place.hash === hash ? place.selected : 0);
  const view = useRows(shown.length, height, HEAD);
  const change = (more) => go(runsHash({ ...params, ...more }), { replace: true });
  const select = (index, focus = true) => {
    const at = Math.max(0, Math.min(shown.length - 1, index));
    setSelected(at);
    view.show(at);
    if (focus) requestAnimationFrame(() => table.current?.querySelector(`a[data-at="${at}"]`)?.focus());
  };
  useEffect(() => {
    if (place.hash === hash) view.ref.current.scrollTop = place.top;
    return () => Object.assign(place, { hash, top: view.ref.current?.scrollTop ?? place.top });
  }, [hash]);
  useEffect(() => { Object.assign(place, { hash, selected }); }, [selected]);
  useEffect(() => { order.keys = shown.map((row) => row.key); }, [shown]);
  const [labelKeys, problem] = useLabelKeys(shown[selected]);
  useKeys({ ...keyTable(select, selected, shown), ...labelKeys });
  return html`<main class="runs" id="main">
    <h1 class="hidden-text">Runs</h1>
    <${Sums} rows=${shown} total=${rows.length} />
    <${Filters} rows=${rows} params=${params} change=${change} sources=${info.sources || []} />
    <${Problems} problems=${info.problems || []} />
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <${SearchHits} found=${found} rows=${rows} />
    <div class="scroll table-box" ref=${view.ref} tabindex="-1">
      <table ref=${table} role="table" class="run-table grid" aria-rowcount=${shown.length + 1} aria-label="Runs">
        <${Head} sort=${params.sort} onSort=${(sort) => change({ sort })} />
        <tbody role="rowgroup" style=${{ '--row': `${height}px` }} onClick=${openRow}>
          <tr class="space" aria-hidden="true" style=${{ height: `${view.before}px` }}></tr>
          ${shown.slice(view.start, view.end).map((row, at) => html`<${Row} key=${row.key} row=${row}
            at=${view.start + at} most=${most} several=${several} selected=${view.start + at === selected} />`)}
          <tr class="space" aria-hidden="true" style=${{ height: `${view.after}px` }}></tr>
        </tbody>
      </table>
      ${!shown.length && html`<p class="empty">${rows.length ? 'No run matches.' : 'No runs yet.'}
        ${rows.length > 0 && html` <a href="#/">Show all</a>`}</p>`}
    </div>
  </main>`;
}
