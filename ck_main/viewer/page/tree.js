// The tree of agents and steps: one focus, rows drawn only where they are in view.
import { html, useEffect } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { plural, seconds, short, Status } from './format.js';
import { useRows } from './virtual.js';

const HEIGHT = 30; // pixels

function StepRow({ row, longest }) {
  const { data } = row;
  const share = longest && data.seconds ? `${Math.max(3, (data.seconds / longest) * 100)}%` : '0%';
  return html`<span class="index">${row.step}</span>
    <span class="title">${visible(data.title) || html`<span class="muted">no text</span>`}</span>
    <span class="signs">
      ${data.error && html`<span class="sign bad" role="img" aria-label="error" title="error">✕</span>`}
      ${data.picture && html`<span class="sign" role="img" aria-label="screenshot" title="screenshot">▣</span>`}
      ${data.calls > 0 && html`<span class="sign" title=${plural(data.calls, 'call')}><span
        class="hidden-text">${plural(data.calls, 'call')}</span><span aria-hidden="true">ƒ${data.calls}</span></span>`}
    </span>
    <span class="time" title=${`${seconds(data.seconds)}, ${short(data.tokens)} tokens`}><span class="bar"
      style=${{ width: share }}></span></span>`;
}

function SessionRow({ row }) {
  const { session } = row;
  return html`<span class="agent">${visible(session.agent)}</span>
    <span class="signs"><${Status} status=${session.status} live=${session.live} />
      <span class="muted facts">${plural(session.steps.length, 'step')}</span></span>`;
}

/** The tree. `select(row)` opens a row; `toggle(sid)` folds a session. */
export function Tree({ rows, closed, at, select, toggle, register }) {
  const view = useRows(rows.length, HEIGHT);
  useEffect(() => { view.show(at); }, [at, rows.length]);
  useEffect(() => { register(() => view.ref.current?.focus({ preventScroll: true })); }, []);
  const longest = rows.reduce((most, row) => Math.max(most, row.data?.seconds || 0), 0);
  const active = at >= view.start && at < view.end ? `row-${at}` : undefined;
  return html`<div class="tree scroll" role="tree" aria-label="Agents and steps" tabindex="0" ref=${view.ref}
    aria-activedescendant=${active}>
    <div role="none" style=${{ height: `${view.before}px` }}></div>
    ${rows.slice(view.start, view.end).map((row, offset) => {
      const index = view.start + offset;
      const isSession = row.kind === 'session';
      const open = isSession ? String(!closed.has(row.sid)) : undefined;
      return html`<div key=${`${row.sid}/${row.step ?? ''}`} id=${`row-${index}`} role="treeitem"
        aria-level=${row.depth + 1} aria-setsize=${rows.length} aria-posinset=${index + 1} aria-expanded=${open}
        aria-selected=${String(index === at)} class=${`row ${row.kind}`} onClick=${() => select(row)}
        style=${{ paddingLeft: `${6 + Math.min(row.depth, 12) * 12}px` }}>
        ${isSession && html`<span class="caret" aria-hidden="true" onClick=${(event) => {
          event.stopPropagation();
          toggle(row.sid);
        }}>${closed.has(row.sid) ? '▸' : '▾'}</span>`}
        ${isSession ? html`<${SessionRow} row=${row} />` : html`<${StepRow} row=${row} longest=${longest} />`}
      </div>`;
    })}
    <div role="none" style=${{ height: `${view.after}px` }}></div>
  </div>`;
}
