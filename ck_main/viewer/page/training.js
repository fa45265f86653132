// What an export would train on: rows with their trained part marked, and their lengths in tokens.
import { html, useEffect, useMemo } from '/static/ui.js';
import { InertText, visible } from '/static/inert.js';
import { invalidate, useJson } from './data.js';
import { count, plural, short } from './format.js';
import { Facts, Pending, Section } from './parts.js';
import { go, runHash, trainingHash } from './route.js';

const FORMATS = ['sft', 'dpo', 'kto', 'sharegpt', 'axolotl', 'verl'];
const ROWS = 20;
const USES = { trained: 'trained on', chosen: 'chosen', rejected: 'rejected', context: '' };

function Choices({ params, sources, change }) {
  const select = (name, title, value, options) => html`<label>${title} <select value=${value}
    onChange=${(event) => change({ [name]: event.target.value, skip: '' })}>${options.map(([one, text]) => html`
      <option key=${one} value=${one}>${text}</option>`)}</select></label>`;
  return html`<div class="filters">
    ${select('format', 'Format', params.format || 'sft', FORMATS.map((name) => [name, name]))}
    ${sources.length > 1 && select('source', 'Output', params.source || '0',
      sources.map(({ name }, at) => [String(at), visible(name)]))}
    ${select('labels', 'Labels', params.labels || '', [['', 'obeyed'], ['no', 'ignored']])}
  </div>`;
}

function Lengths({ preview }) {
  const most = Math.max(...preview.histogram.map(([, , number]) => number), 1);
  return html`<${Section} title="Tokens per row">
    <${Facts} name="Tokens" facts=${['median', 'p90', 'max'].map((name) => [name, count(preview.tokens[name])])} />
    <table class="plain lengths"><caption class="hidden-text">Rows by number of tokens</caption>
      <thead class="hidden-text"><tr><th scope="col">Tokens</th><th scope="col">Rows</th><th scope="col">Share</th></tr></thead>
      <tbody>${preview.histogram.map(([low, high, number]) => html`<tr key=${low}>
        <th scope="row" class="number">${count(low)} – ${count(high - 1)}</th><td class="number">${count(number)}</td>
        <td class="wide"><span class="length-bar" style=${{ width: `${(100 * number) / most}%` }}></span></td></tr>`)}
      </tbody></table></${Section}>`;
}

function Dropped({ preview }) {
  const facts = [...Object.entries(preview.dropped).map(([name, number]) => [`dropped: ${name}`, number]),
    ...Object.entries(preview.labelled)];
  return html`<${Section} title="Model calls">
    ${facts.length ? html`<${Facts} name="Model calls" facts=${facts.map(([name, number]) => [name, count(number)])} />`
      : html`<p class="muted">Nothing is dropped.</p>`}
    ${preview.lost.length > 0 && html`<details><summary>${plural(preview.lost.length, 'label')} without a call</summary>
      <ul>${preview.lost.map((line) => html`<li key=${line}>${visible(line)}</li>`)}</ul></details>`}</${Section}>`;
}

function Segment({ segment }) {
  return html`<div class=${`segment ${segment.use}`}><header><span class="role">${visible(segment.role)}</span>
    ${USES[segment.use] && html` <span class="mark ${segment.use === 'rejected' ? 'bad' : 'good'}">${USES[segment.use]}</span>`}
    </header><${InertText} value=${segment.text} lines=${40} name=${segment.role} /></div>`;
}

function Row({ row, keyOf, about }) {
  const { metadata } = row;
  const label = metadata.corrected ? 'corrected' : metadata.label || metadata.chosen_label;
  const key = keyOf(metadata.task_id);
  const name = `${row.row + 1}. ${metadata.task_id}, ${metadata.agent}, step ${metadata.step}, ${metadata.phase}`;
  const context = row.segments.filter((one) => one.use === 'context');
  const rest = row.segments.filter((one) => one.use !== 'context');
  return html`<section class="part" aria-label=${name}><header><h3>${key ? html`<a
      href=${runHash(key, metadata.session, metadata.step)}>${visible(name)}</a>` : visible(name)}</h3>
      <span>${label && html`<span class=${`mark ${label}`}>${visible(label)}</span>`} <span class="muted">
        ${about}${count(row.tokens)} tokens, ${about}${count(row.trained)} trained</span></span></header>
    ${context.length > 0 && html`<details><summary>Prompt: ${plural(context.length, 'turn')}</summary>
      ${context.map((segment, at) => html`<${Segment} key=${at} segment=${segment} />`)}</details>`}
    ${rest.map((segment, at) => html`<${Segment} key=${at} segment=${segment} />`)}</section>`;
}

function Pages({ preview, skip, change }) {
  if (skip === 0 && preview.rows <= ROWS) return null;
  const to = (at) => () => change({ skip: at > 0 ? String(at) : '' });
  return html`<p class="label-buttons"><button type="button" disabled=${skip === 0}
      onClick=${to(skip - ROWS)}>Previous rows</button>
    <button type="button" disabled=${skip + ROWS >= preview.rows} onClick=${to(skip + ROWS)}>Next rows</button>
    <span class="muted">${count(skip + 1)} – ${count(skip + preview.shown.length)} of
      ${preview.partial ? 'more than ' : ''}${count(preview.rows)}</span></p>`;
}

const quoted = (path) => (/^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

function commandOf(preview, source) {
  const labels = preview.labels ? ` --labels ${quoted(preview.labels)}` : '';
  return visible(`ck-pro export -f ${preview.format} -i ${quoted(source?.path || '')}${labels} -o OUTPUT`);
}

/** The page of training data. */
export function Training({ rows, info, params }) {
  const sources = info.sources || [];
  const skip = Number(params.skip) || 0;
  const query = new URLSearchParams({ format: params.format || 'sft', source: params.source || '0',
    labels: params.labels || '', rows: ROWS, skip });
  const { data: preview, error } = useJson(`/api/preview?${query}`);
  useEffect(() => () => invalidate('/api/preview'), []); // labels may change before the next visit
  const change = (more) => go(trainingHash({ ...params, ...more }), { replace: true });
  const about = preview?.tokenizer === 'estimate' ? 'about ' : '';
  const source = sources[Number(params.source) || 0]?.name;
  const keys = useMemo(() => new Map(rows.filter((row) => row.source === source).map((row) => [row.id, row.key])),
    [rows, source]);
  return html`<main class="scroll training" id="main"><h1>Training data</h1>
    <${Choices} params=${params} sources=${sources} change=${change} />
    ${!preview ? html`<${Pending} error=${error} />` : html`
      <p class="muted">${preview.labels ? html`With the labels in ${visible(preview.labels)}.` : 'Without labels.'}
        ${' '}An export writes these rows: <code>${commandOf(preview, sources[Number(params.source) || 0])}</code></p>
      ${about && html`<p class="muted">Tokens are estimated at 3.5 bytes each. <code>ck-pro preview --tokenizer NAME</code>
        ${' '}counts them.</p>`}
      <div class="sums-row"><${Facts} name="Sums" facts=${[
        ['Rows', `${count(preview.rows)}${preview.partial ? ' and more' : ''}`],
        ['Tokens', about + short(preview.tokens.sum)], ['Trained', about + short(preview.trained.sum)]]} /></div>
      ${preview.rows > 0 ? html`<${Lengths} preview=${preview} />` : html`<p class="empty">No rows.</p>`}
      <${Dropped} preview=${preview} />
      ${preview.shown.map((row) => html`<${Row} key=${row.row} row=${row} about=${about}
        keyOf=${(id) => keys.get(id)} />`)}
      <${Pages} preview=${preview} skip=${skip} change=${change} />`}</main>`;
}
