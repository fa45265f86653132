// The tree of agents and steps: one focus, rows drawn only where they are in view.
import { html, memo, useEffect, useMemo } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { useJson } from './data.js';
import { plural, seconds, short, Status } from './format.js';
import { stepSigns } from './labels.js';
import { useRows } from './virtual.js';

const HEIGHT = 30; // pixels

function StepRow({ row, longest, signs }) {
  const { data } = row;
  const share = longest && data.seconds ? `${Math.max(3, (data.seconds / longest) * 100)}%` : '0%';
  return html`<span class="index">${row.step}</span>
    <span class="title">${visible(data.title) || html`<span class="muted">no text</span>`}</span>
    <span class="signs">
      ${signs && signs.map(([sign, name]) => html`<span key=${name} class=${`sign label ${name}`} role="img"
        aria-label=${`label: ${name}`} title=${`label: ${name}`}>${sign}</span>`)}
      ${data.error && html`<span class="sign bad" role="img" aria-label="error" title="error">✕</span>`}
      ${data.picture && html`<span class="sign" role="img" aria-label="screenshot" title="screenshot">▣</span>`}
      ${data.calls > 0 && html`<span class="sign" title=${plural(data.calls, 'call')}><span
        class="hidden-text">${plural(data.calls, 'call')}</span><span aria-hidden="true">ƒ${data.calls}</span></span>`}
    </span>
    <span class="time" title=${`${seconds(data.seconds)}, ${short(data.tokens)} tokens`}><span class="bar"
      style=${{ width: share }}></span></span>`;
}

function SessionRow({ row, live }) {
  const { session } = row;
  return html`<span class="agent">${visible(session.agent)}</span>
    <span class="signs"><${Status} status=${session.status} live=${live} />
      <span class="muted facts">${plural(session.steps.length, 'step')}</span></span>`;
}

const Row = memo(({ row, index, total, selected, open, longest, signs, live }) => html`<div id=${`row-${index}`} role="treeitem"
  data-at=${index} aria-level=${row.depth + 1} aria-setsize=${total} aria-posinset=${index + 1} aria-expanded=${open}
  aria-selected=${String(selected)} class=${`row ${row.kind}`}
  style=${{ paddingLeft: `${6 + Math.min(row.depth, 12) * 12}px` }}>
  ${row.kind === 'session' && html`<span class="caret" aria-hidden="true">${open === 'true' ? '▾' : '▸'}</span>`}
  ${row.kind === 'session' ? html`<${SessionRow} row=${row} live=${live} />` : html`<${StepRow} row=${row} longest=${longest}
    signs=${signs} />`}
</div>`);

/** The tree. `select(row)` opens a row; `toggle(sid)` folds a session. */
export function Tree({ runKey, rows, closed, at, live, select, toggle, register }) {
  const { data: labels } = useJson(`/api/labels/${runKey}`);
  const signs = useMemo(() => stepSigns(labels), [labels]);
  const view = useRows(rows.length, HEIGHT);
  useEffect(() => { view.show(at); }, [at, rows.length]);
  useEffect(() => { register(() => view.ref.current?.focus({ preventScroll: true })); }, []);
  const longest = useMemo(() => rows.reduce((most, row) => Math.max(most, row.data?.seconds || 0), 0), [rows]);
  const active = at >= view.start && at < view.end ? `row-${at}` : undefined;
  const press = (event) => {
    const row = rows[event.target.closest('.row')?.dataset.at];
    if (row && event.target.closest('.caret')) toggle(row.sid);
    else if (row) select(row);
  };
  return html`<div class="tree scroll" role="tree" aria-label="Agents and steps" tabindex="0" ref=${view.ref}
    aria-activedescendant=${active} onClick=${press}>
    <div role="none" style=${{ height: `${view.before}px` }}></div>
    ${rows.slice(view.start, view.end).map((row, offset) => html`<${Row} key=${`${row.sid}/${row.step ?? ''}`} row=${row}
      index=${view.start + offset} total=${rows.length} selected=${view.start + offset === at} longest=${longest}
      live=${live} signs=${row.kind === 'session' ? undefined : signs[`${row.sid}/${row.step}`]}
      open=${row.kind === 'session' ? String(!closed.has(row.sid)) : undefined} />`)}
    <div role="none" style=${{ height: `${view.after}px` }}></div>
  </div>`;
}
