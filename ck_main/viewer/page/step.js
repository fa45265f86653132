// One step: plan, thought, code, what each call did, observation, page, model calls.
import { html } from '/static/ui.js';
import { asText, CopyButton, InertText, visible } from '/static/inert.js';
import { highlight } from '/static/python.js';
import { useJson } from './data.js';
import { diffLines, valueLines } from './diff.js';
import { DiffLine } from './diff_view.js';
import { count, money, percent, plural, seconds, short } from './format.js';
import { Labels } from './labels.js';
import { PageView } from './page_view.js';
import { Code, Facts, Pending, Section, TextSection } from './parts.js';
import { runHash } from './route.js';

function sourceOf(value) {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return JSON.stringify(value);
  return JSON.stringify(value);
}

/** A call as Python: name(key="value", ...). */
export function callSource({ name, arguments: given }) {
  if (given === null || given === undefined) return `${name}()`;
  if (Array.isArray(given)) return `${name}(${given.map(sourceOf).join(', ')})`;
  if (typeof given !== 'object') return `${name}(${asText(given)})`;
  return `${name}(${Object.entries(given).map(([key, value]) => `${key}=${sourceOf(value)}`).join(', ')})`;
}

function Call({ call, run }) {
  const session = call.sid && run.sessions.find((one) => one.sid === call.sid);
  const result = call.error ?? call.value;
  return html`<li class=${call.error ? 'call failed' : 'call'}>
    <div class="call-head">
      <${InertText} value=${callSource(call)} render=${highlight} className="code inline" lines=${4}
        characters=${400} />
      <span class="muted number">${seconds(call.seconds)}</span></div>
    ${call.error && html`<strong class="call-error">Error</strong>`}
    ${result !== null && result !== undefined && result !== ''
      ? html`<${InertText} value=${result} lines=${8} characters=${1200}
        className=${call.error ? 'text bad' : 'text'} />`
      : html`<p class="muted">${result === '' ? 'empty text' : call.interrupted ? 'interrupted'
        : run.live ? 'in progress' : 'no result recorded'}</p>`}
    ${session && html`<a class="button enter" href=${runHash(run.key, session.sid, session.steps[0]?.i)}
      >Enter ${visible(session.agent)} <span class="muted">${count(session.steps.length)} steps</span> →</a>`}
  </li>`;
}

function Calls({ step, run }) {
  if (!step.calls || !step.calls.length) return null;
  return html`<${Section} title=${`Calls (${step.calls.length})`}>
    <ol class="calls">${step.calls.map((call) => html`<${Call} key=${call.n} call=${call} run=${run} />`)}</ol>
  </${Section}>`;
}

function Changes({ changed }) {
  return html`<h3>Changed since the last plan</h3><dl class="changes">${changed.map(([key, [before, now]]) => html`
    <div key=${key}><dt>${visible(key)}</dt><dd class="diff">${diffLines(valueLines(before), valueLines(now))
      .filter(([, line]) => line).map((line, at) => html`<${DiffLine} key=${at} line=${line} />`)}</dd></div>`)}</dl>`;
}

function Plan({ plan }) {
  const changed = Object.entries(plan.changed || {});
  const keys = Object.keys(plan.state || {}).length;
  return html`<${Section} title="Plan">
    ${plan.thought && html`<${InertText} value=${plan.thought} className="text prose" />`}
    ${plan.code && html`<${InertText} value=${plan.code} render=${highlight} className="code" />`}
    ${changed.length > 0 && html`<${Changes} changed=${changed} />`}
    ${keys > 0 && html`<details><summary>Whole state (${plural(keys, 'key')})</summary>
      <${InertText} value=${plan.state} lines=${60} /></details>`}
  </${Section}>`;
}

function Observation({ parts, run }) {
  if (!parts || !parts.length) return null;
  const whole = parts.length === 1 ? parts[0].text : parts.map((part) => asText(part.text)).join('\n');
  return html`<${Section} title="Observation" tools=${html`<${CopyButton} text=${whole} name="observation" />`}>
    ${parts.map((part, at) => html`<div key=${at} class=${part.session ? 'from-agent' : ''}>
      ${part.session && html`<a href=${runHash(run.key, part.session)}>Result of a sub-agent</a>`}
      <${InertText} value=${part.text} name="Observation" /></div>`)}
  </${Section}>`;
}

function ModelCalls({ step, run }) {
  const calls = step.model_calls || [];
  if (!calls.length) return null;
  return html`<${Section} title=${`Model calls (${calls.length})`}>
    <ul class="model-calls">${calls.map((call) => {
      const usage = call.usage || {};
      return html`<li key=${call.n}><a href=${runHash(run.key, step.sid, step.i, call.n)}>
        <span class="phase">${visible(call.phase || 'call')}</span> <span
          class="muted">${visible(call.model)}</span></a>
        <span class="prefix" role="img" aria-label=${`${percent(call.prefix_share || 0)} of the prompt as before`}
          title="stable prefix of the prompt"><span
            style=${{ width: `${(call.prefix_share || 0) * 100}%` }}></span></span>
        <span class="number">${count(usage.prompt)} → ${count(usage.completion)} tokens</span>
        <span class="number muted">${[usage.cached > 0 && `${percent(usage.cached / usage.prompt)} cached`,
          seconds(call.seconds), money(call.money), call.attempts > 1 && `${call.attempts} attempts`,
          call.finish_reason !== 'stop' && visible(call.finish_reason)].filter(Boolean).join(' · ')}</span></li>`;
    })}</ul></${Section}>`;
}

function Notes({ notes }) {
  if (!notes || !notes.length) return null;
  return html`<${Section} title="Events"><ul class="plain-list">${notes.map(({ kind, data }, at) => html`<li key=${at}>
    <strong>${visible(asText(kind).replaceAll('_', ' '))}</strong>
    ${data && Object.keys(data).length > 0 && html`<${InertText} value=${data} lines=${12} />`}</li>`)}</ul></${Section}>`;
}

function Narrative({ step, run }) {
  return html`${step.plan && html`<${Plan} plan=${step.plan} />`}
    ${step.unreadable && html`<${TextSection} title="Unreadable reply" value=${step.unreadable} tone="bad" />`}
    ${step.thought && html`<${Section} title="Thought"><${InertText} value=${step.thought} className="text prose"
      name="Thought" /></${Section}>`}
    ${step.code && html`<${Code} source=${step.code} />`}
    <${Calls} step=${step} run=${run} />
    <${TextSection} title="Error" value=${step.error} tone="bad" />
    <${Observation} parts=${step.observation} run=${run} />
    <${Notes} notes=${step.notes} />
    ${step.end && html`<${Section} title="End">
      ${step.end.thought && html`<${InertText} value=${step.end.thought} className="text prose" />`}
      ${step.end.code && html`<${InertText} value=${step.end.code} render=${highlight} className="code" />`}
      <${Facts} name="Result" facts=${[['Output', visible(step.end.output)], ['Log', visible(step.end.log)]]} />
      </${Section}>`}
    <${ModelCalls} step=${step} run=${run} />`;
}

/** The view of one step. */
export function StepView({ run, sid, number }) {
  const path = `/api/run/${run.key}/step/${encodeURIComponent(sid)}/${number}`;
  const { data: step, error } = useJson(path);
  if (!step) return html`<${Pending} error=${error} />`;
  const state = !step.page && step.state_before && Object.keys(step.state_before).length > 0;
  const page = step.page && (step.page.text || step.page.picture || step.page.screens?.length > 0);
  const outline = run.sessions.find((one) => one.sid === sid)?.steps.find((one) => one.i === number) || {};
  return html`<${Facts} name="Step" facts=${[['Time', seconds(outline.seconds)], ['Tokens', short(outline.tokens)],
    ['Calls', count(step.calls?.length)], ['Error', step.error ? 'yes' : '']]} />
  <div class=${page ? 'step with-page' : 'step'}>
    <div class="narrative"><${Narrative} step=${step} run=${run} />
      <${Labels} runKey=${run.key} sid=${sid} step=${number} /></div>
    ${page && html`<div class="beside"><${PageView} key=${path} page=${step.page} runKey=${run.key} /></div>`}
    ${state && html`<${TextSection} title="State before" value=${step.state_before} lines=${20} />`}
  </div>`;
}
