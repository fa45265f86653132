// The reply: its parts, the dry run, and sending.
import { html, useEffect, useRef, useState } from '/static/ui.js';
import { InertText, visible } from '/static/inert.js';
import { highlight } from '/static/python.js';
import { CodeField } from './code_field.js';
import { callOf, signatureOf } from './calls.js';
import { post } from './queue.js';

const LABELS = {
  code: 'This code runs', call: 'This call runs', plan: 'The plan becomes', answer: 'The answer', text: 'The reply',
  warning: 'Note', error: 'Nothing runs. The model would read', refused: 'Not a reply yet',
};
const CHECK_AFTER = 400;
const FEW_FUNCTIONS = 8; // so many are listed at once

/** The parts of a draft that make the reply. */
export function partsOf(draft) {
  if (draft.mode === 'text') return { text: draft.text || '' };
  const parts = { thought: draft.thought || '', code: draft.code || '' };
  return draft.plan ? { ...parts, plan: draft.plan } : parts;
}

export function isEmpty(draft, guide) {
  const example = guide.example || '';
  return !Object.values(partsOf(draft)).some((text) => text.trim() && text.trim() !== example.trim());
}

function Outcome({ seen }) {
  if (!seen) return html`<p class="muted">The dry run by the agent's parser appears here. Nothing runs before you
    send.</p>`;
  return seen.parts.map((part) => {
    const bad = part.kind === 'error' || part.kind === 'refused';
    const tone = bad ? 'bad' : part.kind === 'warning' ? 'warn' : 'good';
    const render = part.kind === 'code' || part.kind === 'call' ? highlight : visible;
    return html`<div class=${`outcome ${tone}`}><p class="what">${LABELS[part.kind] || part.kind}</p>
      <${InertText} value=${part.text} render=${render} lines=${12} /></div>`;
  });
}

function Functions({ functions, insert }) {
  const [filter, setFilter] = useState('');
  const wanted = filter.toLowerCase();
  const shown = functions.filter((one) => one.name.toLowerCase().includes(wanted)
    || one.help.toLowerCase().includes(wanted));
  if (!functions.length) return null;
  return html`<details class="functions" open=${functions.length <= FEW_FUNCTIONS}><summary>Functions (${functions.length})</summary>
    <input type="search" aria-label="Filter functions" placeholder="filter" value=${filter}
      onInput=${(event) => setFilter(event.target.value)} />
    <ul>${shown.map((one) => html`<li key=${one.name}><button type="button" class="quiet mono"
      onClick=${() => insert(callOf(one))}>${signatureOf(one)}</button>
      <span class="help">${visible(one.help)}</span></li>`)}</ul></details>`;
}

/** Check the draft a moment after each change; the server also keeps it. */
function useDryRun(call, draft, ended) {
  const [seen, setSeen] = useState(null);
  const last = useRef(0);
  useEffect(() => {
    if (ended || isEmpty(draft, call.guide)) {
      setSeen(null);
      return undefined;
    }
    last.current += 1;
    const number = last.current;
    const timer = setTimeout(() => {
      post(`/api/call/${call.id}/check`, partsOf(draft)).then((found) => {
        if (number === last.current && found.parts) setSeen(found);
      }, () => {});
    }, CHECK_AFTER);
    return () => clearTimeout(timer);
  }, [call.id, draft, ended]);
  return [seen, setSeen];
}

function Field({ name, label, value, change, rows, hint }) {
  return html`<label class="field"><span>${label}</span><textarea name=${name} rows=${rows} value=${value}
    placeholder=${hint} onInput=${(event) => change(event.target.value)}></textarea></label>`;
}

function PlanField({ draft, edit, example }) {
  const start = () => { if (!draft.plan) edit({ plan: example }); };
  return html`<details class="plan" open=${Boolean(draft.plan)} onToggle=${(event) => event.target.open && start()}>
    <summary>Plan (optional)</summary>
    <textarea class="mono" rows="7" spellcheck=${false} aria-label="Plan" value=${draft.plan || ''}
      onInput=${(event) => edit({ plan: event.target.value })}></textarea>
    <button type="button" class="quiet" onClick=${(event) => {
    edit({ plan: '' });
    event.target.closest('details').open = false;
  }}>without a plan</button></details>`;
}

function Parts({ call, draft, edit, area, elements }) {
  const { guide } = call;
  const kind = guide.form === 'calls' ? 'Calls, one below the other' : guide.form === 'data' ? 'Data' : 'Code';
  return html`<${Field} name="thought" label="Thought" rows="3" value=${draft.thought || ''}
      hint="why this step" change=${(thought) => edit({ thought })} />
    ${guide.plan && html`<${PlanField} draft=${draft} edit=${edit} example=${guide.plan_example} />`}
    <div class="field"><span>${kind} <span class="muted">(<kbd>Ctrl</kbd> <kbd>Space</kbd> completes)</span></span>
      <${CodeField} label=${kind} value=${draft.code || ''} area=${area} rows="9" functions=${guide.functions}
        elements=${elements} change=${(code) => edit({ code })} /></div>`;
}

function ModeSwitch({ draft, edit, seen, guide }) {
  if (guide.form === 'text') return null;
  const whole = draft.mode === 'text';
  const toText = () => edit({ mode: 'text', text: draft.text || (seen && seen.text) || '' });
  return html`<div class="modes" role="group" aria-label="How to write">
    <button type="button" class="quiet" aria-pressed=${!whole} onClick=${() => edit({ mode: 'parts' })}>Parts</button>
    <button type="button" class="quiet" aria-pressed=${whole} onClick=${toText}>Whole reply</button></div>`;
}

/** The editor of one waiting call. */
export function Editor({ call, draft, edit, area, elements, insert, send, fail, give, ended, problem }) {
  const [seen, setSeen] = useDryRun(call, draft, ended);
  const [asked, setAsked] = useState(false);
  useEffect(() => setAsked(false), [draft, call.id]);
  const press = async (anyway) => {
    const found = await send(partsOf(draft), anyway);
    if (found) {
      setSeen(found);
      setAsked(!found.sent && !found.parts.some((part) => part.kind === 'refused'));
    }
  };
  const keys = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); press(false); }
  };
  const { guide } = call;
  return html`<form class="editor" id="reply" onKeyDown=${keys} onSubmit=${(event) => { event.preventDefault(); press(false); }}>
    <div class="head"><h2>Your reply</h2><${ModeSwitch} draft=${draft} edit=${edit} seen=${seen} guide=${guide} /></div>
    ${draft.mode === 'text' ? html`<label class="field"><span>Whole reply, as the model writes it</span>
      <textarea class="mono" rows="14" spellcheck=${false} value=${draft.text || ''} ref=${area}
        onInput=${(event) => edit({ text: event.target.value })}></textarea></label>`
    : html`<${Parts} call=${call} draft=${draft} edit=${edit} area=${area} elements=${elements} />`}
    <div class="send"><button class="primary" disabled=${ended}>Send <kbd>Ctrl</kbd> <kbd>Enter</kbd></button>
      ${asked && html`<button type="button" onClick=${() => press(true)}>Send anyway</button>`}
      <button type="button" class="quiet" onClick=${give} disabled=${ended}>Give the rest to a model …</button>
      <button type="button" class="quiet" onClick=${fail} disabled=${ended}>No reply …</button></div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <section aria-label="Dry run" aria-live="polite" class="dry-run"><${Outcome} seen=${seen} /></section>
    <${Functions} functions=${guide.functions} insert=${insert} /></form>`;
}
