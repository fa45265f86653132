// Labels of a run, a step or a model call: good, bad, exclude, a comment, a corrected reply.
import { html, useEffect, useRef, useState } from '/static/ui.js';
import { asText, InertText, LongText, visible } from '/static/inert.js';
import { canPost, getJson, invalidate, postJson, useJson } from './data.js';
import { diffLines, foldEqual } from './diff.js';
import { DiffLine } from './diff_view.js';
import { useKeys } from './keys.js';
import { Section } from './parts.js';

export const VERDICTS = [
  ['good', 'Good', 'y', 'a good example'],
  ['bad', 'Bad', 'n', 'a bad example: only in preferences'],
  ['exclude', 'Exclude', 'x', 'in no training data'],
];
const WHAT = { run: 'run', session: 'session', step: 'step', call: 'model call' };

function levelOf({ sid, step, call }) {
  if (call !== undefined) return 'call';
  if (step !== undefined) return 'step';
  return sid === undefined ? 'run' : 'session';
}

/** Label a run; the same label again takes it back. */
export async function toggleRunLabel(runKey, verdict) {
  const path = `/api/labels/${runKey}`;
  invalidate(path); // another person may have labelled it
  const { run } = await getJson(path);
  await postJson(path, { target: {}, label: run?.label === verdict ? null : verdict });
  invalidate(path);
}

/** The label of a part of a run in the answer of /api/labels/KEY. */
export function labelOf(labels, { sid, step, call }) {
  const level = levelOf({ sid, step, call });
  if (level === 'run') return labels.run || {};
  const places = { session: ['sessions', sid], step: ['steps', `${sid}/${step}`], call: ['calls', `${sid}/${step}/${call}`] };
  const [group, place] = places[level];
  return (labels[group] || {})[place] || {};
}

const SIGNS = { good: '+', bad: '−', exclude: '⊘', corrected: '✎', comment: '…' };

/** {"SID/STEP": [[sign, name], ...]}: the labels of each step and of its model calls, for the tree. */
export function stepSigns(labels) {
  const found = {};
  const add = (place, name) => {
    const signs = found[place] || (found[place] = []);
    if (!signs.some(([, known]) => known === name)) signs.push([SIGNS[name], name]);
  };
  const all = [...Object.entries(labels?.steps || {}), ...Object.entries(labels?.calls || {})];
  for (const [place, { label, reply, comment }] of all) {
    const step = place.split('/').slice(0, 2).join('/');
    if (label) add(step, label);
    if (reply !== null && reply !== undefined) add(step, 'corrected');
    if (comment && !label && !reply) add(step, 'comment');
  }
  return found;
}

/** A corrected reply as [text, tool calls as JSON]; the recorded one as well. */
function textsOf(reply) {
  if (reply === null || reply === undefined) return ['', ''];
  if (typeof reply === 'string') return [reply, ''];
  const calls = reply.tool_calls || [];
  return [reply.content || '', calls.length ? asText(calls.map(plainCall)) : ''];
}

function plainCall(call) {
  const { name, arguments: given } = call.function || call;
  let value = given;
  try {
    if (typeof given === 'string') value = JSON.parse(given);
  } catch {
    value = given; // not JSON: shown as text, and refused by the server
  }
  return { name, arguments: value };
}

/** The value of `reply` to send; throws if the tool calls are not JSON. */
function replyOf(text, calls) {
  if (!calls.trim()) return text;
  let parsed;
  try {
    parsed = JSON.parse(calls);
  } catch (cause) {
    throw new Error(`The tool calls are not JSON: ${cause.message}`, { cause });
  }
  return { content: text, tool_calls: parsed };
}

function Verdicts({ label, choose, name, busy }) {
  return html`<div class="verdicts" role="group" aria-label=${name}>${VERDICTS.map(([verdict, title, key, about]) => html`
    <button key=${verdict} type="button" class=${`verdict ${verdict}`} aria-pressed=${String(label === verdict)}
      aria-disabled=${String(busy)} title=${about} onClick=${() => choose(verdict)}>${title} <kbd aria-hidden="true">${key}</kbd>
    </button>`)}</div>`;
}

function onSubmit(save, close) {
  return (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      save();
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
}

function Comment({ value, save, close }) {
  const [text, setText] = useState(value);
  const field = useRef(null);
  useEffect(() => { field.current.focus(); }, []);
  const done = () => save(text, close);
  return html`<form class="label-form" onSubmit=${(event) => { event.preventDefault(); done(); }}>
    <label>Comment <textarea ref=${field} rows="3" value=${text} onInput=${(event) => setText(event.target.value)}
      onKeyDown=${onSubmit(done, close)}></textarea></label>
    <div class="label-buttons"><button type="submit" class="primary">Save</button>
      <button type="button" onClick=${close}>Cancel</button><span class="muted">Ctrl+Enter saves</span></div></form>`;
}

const LINES = 400;

function Changes({ before, now }) {
  if (before === now) return html`<p class="muted">Equal to the recorded reply.</p>`;
  const lines = foldEqual(diffLines(before, now));
  return html`<div class="diff" role="group" aria-label="Changes">${lines.slice(0, LINES).map((line, at) => html`
    <${DiffLine} key=${at} line=${line} />`)}
    ${lines.length > LINES && html`<p class="muted">… and ${lines.length - LINES} more lines</p>`}</div>`;
}

function Correction({ original, value, save, close }) {
  const [recorded, recordedCalls] = textsOf(original);
  const [text, setText] = useState(value ? textsOf(value)[0] : recorded);
  const [calls, setCalls] = useState(value ? textsOf(value)[1] : recordedCalls);
  const [error, setError] = useState('');
  const field = useRef(null);
  useEffect(() => { field.current.focus(); }, []);
  const done = () => {
    try {
      setError('');
      save(replyOf(text, calls), close);
    } catch (problem) {
      setError(problem.message);
    }
  };
  const keys = onSubmit(done, close);
  const longest = [text, recorded].map((one) => one.split('\n').length + one.length / 90);
  const rows = Math.round(Math.min(30, Math.max(6, ...longest) + 1));
  return html`<form class="label-form" onSubmit=${(event) => { event.preventDefault(); done(); }}>
    <div class="correction">
      <div><strong>Recorded reply</strong><${InertText} value=${recorded || 'no text'} lines=${30} />
        ${recordedCalls && html`<${InertText} value=${recordedCalls} lines=${30} name="Recorded tool calls" />`}</div>
      <div><label>Corrected reply <textarea ref=${field} class="mono" spellcheck=${false} rows=${rows} value=${text}
          onInput=${(event) => setText(event.target.value)} onKeyDown=${keys}></textarea></label>
        ${(recordedCalls || calls) && html`<label>Tool calls <textarea class="mono" spellcheck=${false} rows="6"
          value=${calls} onInput=${(event) => setCalls(event.target.value)} onKeyDown=${keys}></textarea></label>`}</div>
    </div>
    <${Changes} before=${[recorded, recordedCalls].join('\n')} now=${[text, calls].join('\n')} />
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    <div class="label-buttons"><button type="submit" class="primary">Save</button>
      <button type="button" onClick=${close}>Cancel</button><span class="muted">Ctrl+Enter saves</span></div></form>`;
}

/** {send(changes, then), attempt(failure, act), busy, error}: saves changes of a label at once. */
function useSaving(path, target) {
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const attempt = async (failure, act) => {
    if (busy) return false;
    setBusy(true);
    setError('');
    let done = true;
    try {
      await act();
    } catch (problem) {
      done = false;
      setError(`${failure}: ${problem.message}`);
    }
    setBusy(false);
    return done;
  };
  const send = (changes, then) => attempt('Not saved', async () => {
    await postJson(path, { target, ...changes });
    invalidate(path);
    if (then) then();
  });
  return { send, busy, error, attempt };
}

function Editor({ target, reply: recorded, toolCalls, label, path, file }) {
  const [open, setOpen] = useState('');
  const { send, busy, error, attempt } = useSaving(path, target);
  const level = levelOf(target);
  const original = { content: asText(recorded), tool_calls: toolCalls || [] };
  const whole = async () => { if (recorded instanceof LongText) await recorded.whole(); };
  const buttons = useRef(null);
  const choose = (verdict) => { send({ label: label.label === verdict ? null : verdict }); };
  const close = () => {
    setOpen('');
    buttons.current?.querySelector('button')?.focus();
  };
  const toggle = (name) => async () => {
    if (name === open || name !== 'reply' || await attempt('Not loaded', whole)) setOpen(open === name ? '' : name);
  };
  const keys = Object.fromEntries(VERDICTS.map(([verdict, , key]) => [key, () => choose(verdict)]));
  useKeys({ ...keys, m: toggle('comment'), ...(level === 'call' ? { r: toggle('reply') } : {}) });
  const corrected = label.reply !== null && label.reply !== undefined;
  return html`<${Section} title="Label" tools=${html`<span class="muted">${label.label || label.comment || corrected
    ? visible([label.who, (label.when || '').slice(0, 16).replace('T', ' ')].filter(Boolean).join(', ')) : ''}</span>`}>
    <div class="label-bar" ref=${buttons}>
      <${Verdicts} label=${label.label} choose=${choose} busy=${busy} name=${`Label of the ${WHAT[level]}`} />
      <button type="button" aria-expanded=${String(open === 'comment')} onClick=${toggle('comment')}>
        ${label.comment ? 'Edit comment' : 'Comment'} <kbd aria-hidden="true">m</kbd></button>
      ${level === 'call' && html`<button type="button" aria-expanded=${String(open === 'reply')}
        onClick=${toggle('reply')}>${corrected ? 'Edit correction' : 'Correct reply'} <kbd aria-hidden="true">r</kbd></button>`}
      ${corrected && html`<span class="mark good">corrected</span><button type="button" class="quiet"
        onClick=${() => send({ reply: null })}>Remove correction</button>`}
    </div>
    ${label.outdated && html`<p class="mark warn">This label is about an earlier reply of the call; exports ignore it.</p>`}
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    ${label.comment && open !== 'comment' && html`<${InertText} value=${label.comment} className="text prose"
      lines=${8} name="Comment" />`}
    ${open === 'comment' && html`<${Comment} value=${label.comment || ''} close=${close}
      save=${(comment, then) => send({ comment }, then)} />`}
    ${corrected && open !== 'reply' && html`<details><summary>Correction</summary>
      <${Changes} before=${textsOf(original).join('\n')} now=${textsOf(label.reply).join('\n')} /></details>`}
    ${open === 'reply' && html`<${Correction} original=${original} value=${label.reply} close=${close}
      save=${(reply, then) => send({ reply }, then)} />`}
    ${file}</${Section}>`;
}

function Fixed({ label, original }) {
  const corrected = label.reply !== null && label.reply !== undefined;
  if (!label.label && !label.comment && !corrected) return null;
  return html`<${Section} title="Label"><div class="label-bar">
    ${label.label && html`<span class=${`mark ${label.label}`}>${visible(label.label)}</span>`}
    ${corrected && html`<span class="mark good">corrected</span>`}
    ${label.comment && html`<${InertText} value=${label.comment} className="text prose" name="Comment" />`}</div>
    ${corrected && html`<details><summary>Correction</summary>
      <${Changes} before=${textsOf(original).join('\n')} now=${textsOf(label.reply).join('\n')} /></details>`}</${Section}>`;
}

function FileState({ path, problems }) {
  if (!problems.length) return html`<p class="muted label-file">Saved in ${visible(path)}</p>`;
  return html`<details class="label-file"><summary>Some lines of the label file are not labels</summary>
    <ul>${problems.map((line) => html`<li key=${line}>${visible(line)}</li>`)}</ul></details>`;
}

/** The label of a run, a step (`sid`, `step`) or a model call (`call`, with its recorded `reply` and `toolCalls`). */
export function Labels({ runKey, sid, step, call, reply, toolCalls }) {
  const path = `/api/labels/${runKey}`;
  const { data, error } = useJson(path);
  const target = Object.fromEntries(Object.entries({ sid, step, call }).filter(([, value]) => value !== undefined));
  if (error && canPost) return html`<p class="problem" role="alert">Labels: ${error}</p>`;
  if (!data) return null;
  const label = labelOf(data, target);
  const original = { content: asText(reply), tool_calls: toolCalls || [] };
  if (!canPost) return html`<${Fixed} label=${label} original=${original} />`;
  return html`<${Editor} key=${[runKey, sid, step, call].join('/')} target=${target} label=${label} path=${path}
    reply=${reply} toolCalls=${toolCalls} file=${levelOf(target) === 'run' && html`<${FileState} path=${data.path} problems=${data.problems} />`} />`;
}
