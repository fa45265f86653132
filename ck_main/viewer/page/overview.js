// A run as a whole, and one agent's session: result, task, where tokens and time went.
import { html } from '/static/ui.js';
import { asText, CopyButton, InertText, visible } from '/static/inert.js';
import { barWidth, count, isNumber, money, percent, plural, Score, seconds, short, Status } from './format.js';
import { Labels } from './labels.js';
import { Facts, Section, TextSection } from './parts.js';
import { runHash } from './route.js';
import { TakeOver } from './take_over.js';

function share(session) {
  return session.prompt_tokens > 0 && isNumber(session.cached_tokens)
    ? percent(session.cached_tokens / session.prompt_tokens) : '';
}

function AgentTable({ run }) {
  const most = Math.max(...run.sessions.map((one) => one.tokens || 0));
  return html`<${Section} title=${`Agents (${run.sessions.length})`}><div class="table-scroll" tabindex="0" role="region"
    aria-label="Agents"><table class="plain">
    <thead><tr><th scope="col">Agent</th><th scope="col">Status</th><th scope="col" class="number">Steps</th>
      <th scope="col" class="number">Model calls</th><th scope="col" class="number wide">Tokens</th>
      <th scope="col" class="number">Cost</th><th scope="col" class="number">Time</th></tr></thead>
    <tbody>${run.sessions.slice(0, 200).map((one) => html`<tr key=${one.sid}>
      <td style=${{ paddingLeft: `${6 + Math.min(one.depth || 0, 8) * 14}px` }}><a href=${runHash(run.key, one.sid)}
        >${visible(one.agent)}</a></td>
      <td><${Status} status=${one.status} live=${run.live} /></td>
      <td class="number">${count(one.steps.length)}</td><td class="number">${count(one.calls)}</td>
      <td class="number wide"><span class="bar"
        style=${{ width: barWidth(one.tokens, most) }}></span
        >${short(one.tokens)}</td>
      <td class="number">${money(one.money)}</td><td class="number">${seconds(one.seconds)}</td></tr>`)}</tbody>
  </table></div></${Section}>`;
}

function Errors({ run }) {
  const found = run.sessions.flatMap((one) => one.steps.filter((step) => step.error).map((step) => ({ one, step })));
  if (!found.length) return null;
  return html`<${Section} title=${`Steps with errors (${found.length})`} tone="bad"><ul class="plain-list">
    ${found.slice(0, 50).map(({ one, step }) => html`<li key=${`${one.sid}/${step.i}`}>
      <a href=${runHash(run.key, one.sid, step.i)}>${visible(one.agent)}, step ${step.i}</a>
      <span class="muted"> ${visible(step.title)}</span></li>`)}</ul></${Section}>`;
}

function Result({ run }) {
  return html`<div class="results">
    <${Section} title="Answer" tools=${html`<${Score} score=${run.score} /><${CopyButton} text=${run.output}
      name="answer" />`}>
      <${InertText} value=${asText(run.output) || 'none'} className="text prose" lines=${12} /></${Section}>
    ${run.answer !== null && run.answer !== undefined && run.answer !== '' && html`<${Section} title="Expected answer"
      tools=${html`<${CopyButton} text=${run.answer} name="expected answer" />`}>
      <${InertText} value=${run.answer} className="text prose" lines=${12} /></${Section}>`}</div>`;
}

function Limits({ budget }) {
  if (!budget) return null;
  const names = { steps: count, seconds, tokens: count, money };
  const facts = Object.entries(names).map(([name, write]) => [name, budget[`max_${name}`] !== null
    && budget[`max_${name}`] !== undefined ? `${write(budget[name])} of ${write(budget[`max_${name}`])}` : '']);
  return facts.some(([, value]) => value) ? html`<${Section} title="Limits"><${Facts} name="Limits" facts=${facts} />
    </${Section}>` : null;
}

/** The run as a whole. */
export function RunOverview({ run }) {
  return html`<div class="overview">
    <${Result} run=${run} />
    <${TakeOver} run=${run} />
    <${Labels} runKey=${run.key} />
    ${run.message && html`<${TextSection} title="Message" value=${run.message}
      tone=${run.status === 'done' ? '' : 'warn'} />`}
    <${TextSection} title="Waits for a person" value=${run.asked?.question ?? run.asked} tone="warn" prose />
    <${TextSection} title="Problems of the record" value=${(run.problems || []).join('\n')} tone="warn" />
    <${TextSection} title="Task" value=${run.task} lines=${20} prose />
    <${TextSection} title="Log" value=${run.log} prose />
    <${AgentTable} run=${run} />
    <${Errors} run=${run} />
    <${TextSection} title="Score" value=${run.eval && Object.keys(run.eval).length > 3 ? run.eval : ''} />
    <${Limits} budget=${run.budget} />
    ${run.settings && Object.keys(run.settings).length > 0 && html`<${Section} title="Settings"><details>
      <summary>Show the settings</summary><${InertText} value=${run.settings} lines=${400} characters=${40000} />
      </details></${Section}>`}
    ${run.info && Object.keys(run.info).length > 0 && html`<${Section} title="Record"><details>
      <summary>Show what the row records</summary><${InertText} value=${run.info} lines=${400} characters=${40000} />
      </details></${Section}>`}
  </div>`;
}

/** One agent's session as a whole. */
export function SessionOverview({ run, session }) {
  return html`<div class="overview">
    <${Facts} name="Session" facts=${[['Status', html`<${Status} status=${session.status} live=${run.live} />`],
      ['Stop reason', visible(session.stop_reason)], ['Steps', count(session.steps.length)],
      ['Model calls', count(session.calls)], ['Tokens', short(session.tokens)], ['Cached', share(session)],
      ['Cost', money(session.money)], ['Time', seconds(session.seconds)]]} />
    ${session.called_by && html`<p>Called by <a href=${runHash(run.key, session.called_by.sid, session.called_by.step)}
      >step ${session.called_by.step} of ${visible(run.sessions.find((one) => one.sid === session.called_by.sid)?.agent
        || 'its caller')}</a> <kbd>u</kbd></p>`}
    <${TextSection} title="Task" value=${session.task} lines=${20} prose />
    <${Section} title=${plural(session.steps.length, 'step')}><ul class="plain-list">
      ${session.steps.slice(0, 100).map((step) => html`<li key=${step.i}><span class="step-number">${step.i}</span>
        <a href=${runHash(run.key, session.sid, step.i)}>${visible(step.title) || 'no text'}</a>
        ${step.error && html` <span class="mark bad">error</span>`}
        <span class="muted"> ${seconds(step.seconds)}</span></li>`)}</ul>
      ${session.steps.length > 100 && html`<p
        class="muted">The tree lists the other ${count(session.steps.length - 100)}.</p>`}
    </${Section}></div>`;
}
