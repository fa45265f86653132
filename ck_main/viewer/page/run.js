// One run: its tree, its timeline, and the step, session or model call of the address.
import { html, useEffect, useMemo, useRef, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { CallView } from './call.js';
import { useJson } from './data.js';
import { count, isNumber, money, percent, plural, Score, seconds, short, Status } from './format.js';
import { useKeys } from './keys.js';
import { neighbour, order } from './order.js';
import { RunOverview, SessionOverview } from './overview.js';
import { Facts, Pending } from './parts.js';
import { go, runHash, runsHash } from './route.js';
import { StepView } from './step.js';
import { Timeline } from './timeline.js';
import { Tree } from './tree.js';
import { ancestors, calledBy, firstClosed, indexSessions, rowIndex, treeRows } from './tree_rows.js';

const PHONE = matchMedia('(max-width: 700px)');

function modelCalls(run) {
  return run.sessions.flatMap((one) => one.steps.flatMap((step) => Array.from({ length: step.model_calls || 0 },
    (_, n) => ({ sid: one.sid, step: step.i, n }))));
}

/** What the keys and buttons do in a run. */
function commands({ run, index, rows, at, route, open, setClosed, setFollowing, toggleTimeline }) {
  const { sid, step, call } = route;
  const move = (to) => { if (rows[to]) open(rows[to].sid, rows[to].step); };
  const session = index.byId.get(sid);
  const into = () => {
    const [child] = step === undefined ? [] : calledBy(index, sid, step);
    if (child) open(child.sid, child.steps[0]?.i);
    else if (session && step === undefined && session.steps.length) open(sid, session.steps[0].i);
    else return false;
    return true;
  };
  const up = () => {
    if (call !== undefined) open(sid, step);
    else if (session?.called_by) open(session.called_by.sid, session.called_by.step);
    else if (step !== undefined) open(sid);
    else go(runHash(run.key));
  };
  const toError = (by) => {
    for (let to = at + by; rows[to]; to += by) if (rows[to].data?.error) return move(to);
    return false;
  };
  const toCall = (by) => {
    const own = modelCalls(run).filter((one) => one.sid === sid);
    const here = own.findIndex((one) => one.step === step && one.n === (call ?? 0));
    const to = own[call === undefined && by > 0 && here >= 0 ? here : here + by];
    if (to) go(runHash(run.key, to.sid, to.step, to.n));
  };
  const foldRow = (close) => {
    const folded = (now) => (close ? new Set([...now, sid]) : new Set([...now].filter((one) => one !== sid)));
    if (sid) setClosed(folded);
    if (sid && close && step !== undefined) open(sid);
  };
  const nextRun = (by) => () => {
    const to = order.keys.includes(run.key) && neighbour(run.key, by);
    if (to) go(runHash(to));
  };
  return { move, into, up, toError, toCall, foldRow, nextRun, setFollowing, toggleTimeline };
}

function keyTable(act, at, last) {
  return {
    j: () => act.move(at + 1), k: () => act.move(at - 1), ArrowDown: () => act.move(at + 1),
    ArrowUp: () => act.move(at - 1), g: () => act.move(0), G: () => act.move(last), Home: () => act.move(0),
    End: () => act.move(last), u: act.up, e: () => act.toError(1), E: () => act.toError(-1),
    ']': () => act.toCall(1), '[': () => act.toCall(-1), ArrowLeft: () => act.foldRow(true),
    ArrowRight: () => act.foldRow(false), t: act.toggleTimeline, f: () => act.setFollowing((now) => !now),
    Enter: (event) => (event.target.closest('a, button, summary') ? false : act.into()),
    J: act.nextRun(1), K: act.nextRun(-1),
    Escape: () => (act.escape ? act.escape() : false),
  };
}

/** The newest step of a run: of the session that started last among those still running. */
function newest(run) {
  const running = run.sessions.filter((one) => !one.status || ['running', 'in_progress'].includes(one.status));
  const [last] = [...(running.length ? running : run.sessions)].filter((one) => one.steps.length)
    .sort((a, b) => (b.steps.at(-1).start ?? 0) - (a.steps.at(-1).start ?? 0));
  return last && { sid: last.sid, step: last.steps.at(-1).i };
}

function useFollow(run, route, following, open) {
  const total = run.sessions.reduce((sum, one) => sum + one.steps.length, 0);
  const before = useRef(total);
  const [unseen, setUnseen] = useState(0);
  useEffect(() => {
    const more = total - before.current;
    before.current = total;
    if (following) {
      setUnseen(0);
      const to = newest(run);
      if (to && (to.sid !== route.sid || to.step !== route.step)) open(to.sid, to.step, { replace: true });
    } else if (more > 0) {
      setUnseen((now) => now + more);
    }
  }, [total, following]);
  return [unseen, () => setUnseen(0)];
}

function Head({ run, source, following, setFollowing, unseen, showNewest }) {
  const sums = run.sessions.reduce((found, one) => ({
    steps: found.steps + one.steps.length, calls: found.calls + (one.calls || 0),
    tokens: found.tokens + (one.tokens || 0), prompt: found.prompt + (one.prompt_tokens || 0),
    cached: isNumber(one.cached_tokens) ? (found.cached || 0) + one.cached_tokens : found.cached,
    money: isNumber(one.money) ? (found.money || 0) + one.money : found.money,
    end: Math.max(found.end, ...one.steps.slice(-1).map((step) => (step.start || 0) + (step.seconds || 0))),
  }), { steps: 0, calls: 0, tokens: 0, prompt: 0, cached: null, money: null, end: 0 });
  const main = run.sessions[0];
  return html`<header class="run-head">
    <div class="run-title"><h1>${visible(run.id)}</h1><${Status} status=${run.status} live=${run.live} />
      <${Score} score=${run.score} />
      ${run.stop_reason && run.stop_reason !== 'finished' && html`<span
        class="muted">${visible(run.stop_reason)}</span>`}
      ${(run.tries || []).length > 1 && html`<select aria-label="Try" value=${run.key}
        onChange=${(event) => go(runHash(event.target.value))}>${run.tries.map((one) => html`
        <option key=${one.key} value=${one.key}>try ${one.try}${one.score === null ? '' : `: ${one.score}`}
        </option>`)}</select>`}
      ${run.live && html`<button type="button" class="follow" aria-pressed=${String(following)}
        onClick=${() => setFollowing(!following)}>Follow</button>`}
      <span aria-live="polite">${unseen > 0 && html`<button type="button" class="primary" onClick=${showNewest}
        >${plural(unseen, 'new step')}</button>`}</span></div>
    <${Facts} name="Sums" facts=${[
      ['Steps', count(sums.steps)], ['Model calls', count(sums.calls)], ['Tokens', short(sums.tokens)],
      ['Cached', sums.prompt && sums.cached !== null ? percent(sums.cached / sums.prompt) : ''],
      ['Cost', money(sums.money) || '–'],
      ['Time', seconds(run.live ? Math.max(sums.end, main?.seconds || 0) : main?.seconds)], ['Output', visible(source)]]} />
  </header>`;
}

function Crumbs({ run, index, route }) {
  const { sid, step, call } = route;
  const path = sid ? ancestors(index, sid) : [];
  return html`<nav class="crumbs" aria-label="Place in the run"><ol>
    <li><a href=${runHash(run.key)} aria-current=${sid ? undefined : 'page'}>Run</a></li>
    ${path.map((one, at) => {
      const child = path[at + 1];
      const from = child?.called_by?.step;
      return html`<li key=${one.sid}><a href=${runHash(run.key, one.sid)}>${visible(one.agent)}</a>${child
        && from !== undefined && html` <a href=${runHash(run.key, one.sid, from)}>step ${from}</a>`}</li>`;
    })}
    ${step !== undefined && html`<li><a href=${runHash(run.key, sid, step)} aria-current=${call === undefined ? 'page'
      : undefined}>step ${step}</a></li>`}
    ${call !== undefined && html`<li><span aria-current="page">model call ${call}</span></li>`}</ol></nav>`;
}

function Buttons({ act, at, last, canEnter, showTree }) {
  const button = (title, key, press, disabled) => html`<button type="button" disabled=${disabled} onClick=${press}
    title=${`${title} (${key})`} aria-keyshortcuts=${key}>${title}</button>`;
  return html`<div class="stepping" role="group" aria-label="Move between steps">
    ${button('Steps', 'Home', showTree, false)}
    ${button('Previous', 'k', () => act.move(at - 1), at <= 0)}
    ${button('Next', 'j', () => act.move(at + 1), at >= last)}
    ${button('Up', 'u', act.up, at < 0)}${button('Enter', 'Enter', act.into, !canEnter)}</div>`;
}

function Detail({ run, index, route }) {
  const { sid, step, call } = route;
  const session = sid && index.byId.get(sid);
  if (!sid) return html`<${RunOverview} run=${run} />`;
  if (!session) return html`<${Pending} error="This run has no such session." />`;
  if (call !== undefined) return html`<${CallView} key=${`${sid}/${step}/${call}`} run=${run} sid=${sid} step=${step}
    number=${call} />`;
  if (step !== undefined) return html`<${StepView} run=${run} sid=${sid} number=${step} />`;
  return html`<${SessionOverview} run=${run} session=${session} />`;
}

function Loaded({ run, route, source }) {
  const index = useMemo(() => indexSessions(run.sessions), [run]);
  const [closed, setClosed] = useState(() => firstClosed(run.sessions));
  const [timeline, setTimeline] = useState(!PHONE.matches);
  const [following, setFollowing] = useState(false);
  const [treeShown, setTreeShown] = useState(false);
  const focusTree = useRef(() => {});
  const detail = useRef(null);
  const { sid, step } = route;
  const above = sid ? ancestors(index, sid).slice(0, step === undefined ? -1 : undefined) : [];
  const folded = useMemo(() => {
    const opened = new Set(above.map((one) => one.sid)); // the selected row is always in the tree
    return new Set([...closed].filter((one) => !opened.has(one)));
  }, [closed, sid, step, index]);
  const rows = useMemo(() => treeRows(index, folded), [index, folded]);
  const at = sid ? rowIndex(rows, sid, step) : -1;
  const open = (to, number, options) => {
    setTreeShown(false);
    go(runHash(run.key, to, number), options);
  };
  const act = commands({ run, index, rows, at, route, open, setFollowing,
    setClosed: (change) => setClosed(change(folded)), toggleTimeline: () => setTimeline((now) => !now) });
  act.escape = () => (sid ? act.up() : go(runsHash()));
  useKeys(keyTable(act, at, rows.length - 1));
  const [unseen, seen] = useFollow(run, route, following && run.live, open);
  useEffect(() => { focusTree.current(); }, []);
  useEffect(() => { if (detail.current) detail.current.scrollTop = 0; }, [sid, step, route.call]);
  const showNewest = () => {
    const to = newest(run);
    seen();
    if (to) open(to.sid, to.step);
  };
  return html`<main class=${`run ${treeShown ? 'tree-shown' : ''}`} id="main">
    <${Head} run=${run} source=${source} following=${following} setFollowing=${setFollowing} unseen=${unseen}
      showNewest=${showNewest} />
    ${timeline && html`<${Timeline} run=${run} sid=${sid} step=${step} open=${open} />`}
    <div class="panes">
      <${Tree} runKey=${run.key} rows=${rows} closed=${folded} at=${at} live=${run.live} select=${(row) => open(row.sid, row.step)}
        register=${(focus) => { focusTree.current = focus; }} toggle=${(one) => setClosed(folded.has(one)
          ? new Set([...folded].filter((other) => other !== one)) : new Set([...folded, one]))} />
      <div class="detail scroll" ref=${detail} role="region" aria-label="Selected step" tabindex="0">
        <div class="detail-head"><${Crumbs} run=${run} index=${index} route=${route} />
          <${Buttons} act=${act} at=${at} last=${rows.length - 1} showTree=${() => setTreeShown(!treeShown)}
            canEnter=${step !== undefined && calledBy(index, sid, step).length > 0} /></div>
        <${Detail} run=${run} index=${index} route=${route} />
      </div>
    </div>
  </main>`;
}

/** The page of one run. */
export function Run({ route, sources }) {
  const { data: run, error } = useJson(`/api/run/${encodeURIComponent(route.key)}`);
  if (!run) return html`<main class="run" id="main"><h1 class="hidden-text">Run</h1>
    <${Pending} error=${error} /></main>`;
  const source = typeof run.source === 'number' ? sources[run.source]?.name : run.source;
  return html`<${Loaded} key=${run.key} run=${run} source=${source} route=${route} />`;
}
