// Two or more outputs side by side, by task.
import { html, useMemo, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { compareRows, compareSums } from './compare_rows.js';
import { count, money, percent, plural, Score, seconds, short, signed } from './format.js';
import { useKeys } from './keys.js';
import { compareHash, go, runHash } from './route.js';
import { useRows } from './virtual.js';

const HEIGHT = 38;
const HEAD = 34;
const NAMES = { better: 'better', worse: 'worse', same: 'same', unknown: 'no score', missing: 'only in some' };
const TONES = { better: 'good', worse: 'bad', same: '', unknown: 'warn', missing: 'warn' };

function Choose({ sources, names, change }) {
  const toggle = (name) => change(names.includes(name) ? names.filter((one) => one !== name) : [...names, name]);
  return html`<fieldset class="choose"><legend>Outputs; the last is compared with the first</legend>
    ${sources.map(({ name }) => html`<label key=${name}><input type="checkbox" checked=${names.includes(name)}
      onChange=${() => toggle(name)} /> ${visible(name)}${names.includes(name)
        && html` <span class="muted">${names.indexOf(name) + 1}</span>`}</label>`)}
    ${names.length > 1 && html`<button type="button" onClick=${() => change([...names].reverse())}>Swap</button>`}
  </fieldset>`;
}

function Sums({ tasks, names }) {
  const { common, sums } = useMemo(() => compareSums(tasks, names), [tasks]);
  const [first] = sums;
  const change = (one, key, write = short) => (one === first || !first[key] ? ''
    : html` <span class="muted">${signed(one[key] - first[key], write)}</span>`);
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Sums"><table class="plain">
    <caption class="muted">${plural(common, 'task')} in all of these outputs</caption>
    <thead><tr><th scope="col">Output</th>${['Score', 'Steps', 'Tokens', 'Cost', 'Time'].map((title) => html`
      <th scope="col" class="number" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${sums.map((one) => html`<tr key=${one.name}><th scope="row">${visible(one.name)}</th>
      ${common ? '' : html`<td class="number">–</td><td class="number">–</td><td class="number">–</td>
        <td class="number">–</td><td class="number">–</td>`}${common > 0 && html`
      <td class="number">${percent(one.score)}${change(one, 'score', percent)}</td>
      <td class="number">${count(Math.round(one.steps))}${change(one, 'steps')}</td>
      <td class="number">${short(one.tokens)}${change(one, 'tokens')}</td>
      <td class="number">${money(one.money)}${change(one, 'money', money)}</td>
      <td class="number">${seconds(one.seconds)}${change(one, 'seconds', seconds)}</td>`}</tr>`)}</tbody></table></div>`;
}

function Cell({ cell }) {
  if (!cell) return html`<td class="muted">–</td><td></td><td></td>`;
  return html`<td><a href=${runHash(cell.key)} title=${cell.output}><${Score} score=${cell.score} />
      <span class="hidden-text">open</span></a>${cell.tries > 1 && html` <span
        class="muted">of ${cell.tries}</span>`}</td>
    <td class="number">${count(cell.steps === null ? null : Math.round(cell.steps * 10) / 10)}</td>
    <td class="number">${short(cell.tokens)}</td>`;
}

function Task({ task, at, most, selected }) {
  const width = most && task.tokens ? `${(Math.abs(task.tokens) / most) * 50}%` : '0%';
  return html`<tr aria-rowindex=${at + 3} class=${selected ? 'selected' : ''}>
    <th scope="row" class="task"><span class="open">${visible(task.id)}</span>
      <span class="under">${visible(task.text)}</span></th>
    <td><span class=${`mark ${TONES[task.outcome]}`}>${NAMES[task.outcome]}</span></td>
    ${task.cells.map((cell, number) => html`<${Cell} key=${number} cell=${cell} />`)}
    <td class="number delta"><span class=${`delta-bar ${task.tokens > 0 ? 'more' : 'less'}`} style=${{ width }}></span
      >${signed(task.tokens)}</td></tr>`;
}

function Columns({ names }) {
  return html`<colgroup><col /><col class="outcome-column" />${names.map((name) => html`<col key=${name}
    class="score-column" /><col
    class="steps-column" /><col class="tokens-column" />`)}<col class="delta-column" /></colgroup>`;
}

function Head({ names }) {
  return html`<thead><tr aria-rowindex="1"><th scope="col" rowspan="2" class="task">Task</th>
      <th scope="col" rowspan="2">Change</th>${names.map((name) => html`<th key=${name} scope="colgroup" colspan="3"
        class="group">${visible(name)}</th>`)}<th scope="col" rowspan="2" class="number">Tokens, change</th></tr>
    <tr aria-rowindex="2">${names.map((name) => html`<th scope="col" key=${`${name} score`}>Score</th>
      <th scope="col" class="number">Steps</th><th scope="col" class="number">Tokens</th>`)}</tr></thead>`;
}

function Filters({ counts, params, change }) {
  const press = (name) => change({ only: params.only === name ? '' : name });
  const chip = (name) => html`<button key=${name} type="button" class="chip"
    aria-pressed=${String(params.only === name)} onClick=${() => press(name)}>${NAMES[name]}
    <span class="muted"> ${count(counts[name])}</span></button>`;
  const known = Object.keys(NAMES).filter((name) => counts[name]);
  return html`<div class="filters"><div class="chips" role="group" aria-label="Change">${known.map(chip)}</div>
    <select aria-label="Sort" value=${params.sort || ''} onChange=${(event) => change({ sort: event.target.value })}>
      <option value="">Sort: worse first</option><option value="tokens">Sort: largest change in tokens</option>
      <option value="task">Sort: as recorded</option></select></div>`;
}

function order(tasks, by) {
  const rank = { worse: 0, better: 1, missing: 2, unknown: 3, same: 4 };
  const size = (task) => Math.abs(task.tokens || 0);
  if (by === 'tokens') return [...tasks].sort((a, b) => size(b) - size(a));
  if (by === 'task') return tasks;
  return [...tasks].sort((a, b) => rank[a.outcome] - rank[b.outcome]);
}

/** The page that compares outputs. */
export function Compare({ rows, info, params }) {
  const sources = info.sources || [];
  const known = sources.map((one) => one.name);
  const given = (params.of || [params.a, params.b].filter(Boolean).join('|') || known.slice(0, 2).join('|')).split('|');
  const names = given.filter((name) => known.includes(name));
  const tasks = useMemo(() => compareRows(rows, names), [rows, names.join('|')]);
  const { counts } = useMemo(() => compareSums(tasks, names), [tasks]);
  const shown = useMemo(() => order(tasks.filter((task) => !params.only || task.outcome === params.only), params.sort),
    [tasks, params.only, params.sort]);
  const most = shown.reduce((top, task) => Math.max(top, Math.abs(task.tokens || 0)), 0);
  const [selected, setSelected] = useState(0);
  const view = useRows(shown.length, HEIGHT, 2 * HEAD);
  const change = (more) => {
    go(compareHash({ ...params, a: '', b: '', of: names.join('|'), ...more }), { replace: true });
  };
  const move = (to) => {
    const at = Math.max(0, Math.min(shown.length - 1, to));
    setSelected(at);
    view.show(at);
  };
  useKeys({
    j: () => move(selected + 1), k: () => move(selected - 1), ArrowDown: () => move(selected + 1),
    ArrowUp: () => move(selected - 1), g: () => move(0), G: () => move(shown.length - 1),
    Enter: (event) => {
      const cell = shown[selected]?.cells.findLast(Boolean);
      if (!cell || event.target.closest('a, button, select, input')) return false;
      go(runHash(cell.key));
      return true;
    },
    Escape: () => go('#/'),
  });
  return html`<main class="compare" id="main"><h1>Compare outputs</h1>
    <${Choose} sources=${sources} names=${names} change=${(of) => change({ of: of.join('|') })} />
    ${names.length < 2 ? html`<p class="empty">Choose two or more outputs.</p>` : html`<${Sums} tasks=${tasks}
      names=${names} />`}
    <${Filters} counts=${counts} params=${params} change=${change} />
    <div class="scroll table-box" ref=${view.ref} tabindex="0" role="region" aria-label="Tasks">
      ${names.length > 1 && html`<table class="run-table compared" aria-rowcount=${shown.length + 2}
        aria-label="Tasks compared">
        <${Columns} names=${names} /><${Head} names=${names} /><tbody style=${{ '--row': `${HEIGHT}px` }}>
          <tr class="space" aria-hidden="true"><td style=${{ height: `${view.before}px` }}></td></tr>
          ${shown.slice(view.start, view.end).map((task, at) => html`<${Task} key=${task.id} task=${task} most=${most}
            at=${view.start + at} selected=${view.start + at === selected} />`)}
          <tr class="space" aria-hidden="true"><td style=${{ height: `${view.after}px` }}></td></tr></tbody></table>`}
    </div></main>`;
}
