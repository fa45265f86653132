// One model call: exact output and input, and what changed in the input since the previous call.
import { html, useMemo, useState } from '/static/ui.js';
import { asText, CopyButton, InertText, LongText, size, visible } from '/static/inert.js';
import { highlightReply } from '/static/python.js';
import { blobUrl, useJson } from './data.js';
import { diffLines, foldEqual, sharedMessages, sharedStart } from './diff.js';
import { DiffLine } from './diff_view.js';
import { count, isNumber, money, percent, seconds } from './format.js';
import { useKeys } from './keys.js';
import { Labels } from './labels.js';
import { Facts, Pending, Section, TextSection } from './parts.js';
import { runHash } from './route.js';

const VIEWS = [['new', 'New messages'], ['all', 'All messages'], ['diff', 'Diff']];

/** The text of a message: its parts one below the other, tool calls as JSON. */
export function messageText(message) {
  const { content } = message;
  const parts = Array.isArray(content) ? content : [content];
  const texts = parts.map((part) => {
    if (part === null || part === undefined || typeof part === 'string') return part || '';
    if (part instanceof LongText) return part.text;
    if (part.image) return '';
    return asText(part.text ?? part);
  });
  if (message.tool_calls) texts.push(asText(message.tool_calls));
  return texts.filter(Boolean).join('\n');
}

function Message({ message, at, same, start, runKey }) {
  const text = messageText(message);
  const long = message.content instanceof LongText && !message.tool_calls;
  const images = (Array.isArray(message.content) ? message.content : []).filter((part) => part?.image);
  const from = same ? 0 : Math.min(start || 0, text.length);
  return html`<article class=${same ? 'message same' : 'message'}
    aria-label=${`Message ${at + 1}, ${asText(message.role)}`}>
    <header><span class="role">${visible(message.role)}</span> <span class="muted">${at + 1} · ${size(text.length)}
      ${same ? ' · as before' : ''}</span><${CopyButton} text=${long ? message.content : text}
      name=${`message ${at + 1}`} /></header>
    ${from > 400 && html`<details class="prefix-text"><summary>${size(from)} as before</summary>
      <${InertText} value=${text.slice(0, from)} /></details>`}
    <${InertText} value=${from > 400 ? text.slice(from) : long ? message.content : text} lines=${60}
      name=${`Message ${at + 1}`} />
    ${images.map((part, number) => html`<img key=${number} class="message-image" loading="lazy"
      src=${blobUrl(runKey, asText(part.image))} alt=${`Image ${number + 1} of message ${at + 1}`} />`)}</article>`;
}

const DIFF_LINES = 2000;

function Diff({ before, now }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => {
    const write = (messages) => messages.map((one) => `── ${asText(one.role)} ──\n${messageText(one)}`).join('\n');
    return foldEqual(diffLines(write(before), write(now)));
  }, [before, now]);
  const added = lines.filter(([kind]) => kind === '+').length;
  const removed = lines.filter(([kind]) => kind === '-').length;
  return html`<div class="diff"><p class="muted">${count(added)} lines added, ${count(removed)} removed</p>
    ${(all ? lines : lines.slice(0, DIFF_LINES)).map((line, at) => html`<${DiffLine} key=${at} line=${line} />`)}
    ${!all && lines.length > DIFF_LINES && html`<button class="quiet" type="button" onClick=${() => setAll(true)}>
      Show all ${count(lines.length)} lines</button>`}</div>`;
}

function Input({ messages, previous, view, runKey }) {
  const same = previous ? sharedMessages(previous.messages, messages) : 0;
  const [open, setOpen] = useState(false);
  const first = messages.slice(0, same);
  const characters = first.reduce((sum, one) => sum + messageText(one).length, 0);
  const total = messages.reduce((sum, one) => sum + messageText(one).length, 0);
  if (view === 'diff') {
    return previous ? html`<${Diff} before=${previous.messages} now=${messages} />`
      : html`<p class="muted">The first call of this session: there is no previous one.</p>`;
  }
  const folded = view === 'new' && same > 0 && !open;
  const start = previous?.messages[same] && messages[same]
    ? sharedStart(messageText(previous.messages[same]), messageText(messages[same])) : 0;
  return html`<div class="messages">
    ${view === 'new' && same > 0 && html`<button type="button" class="shared-prefix" aria-expanded=${String(open)}
      onClick=${() => setOpen(!open)}><span aria-hidden="true">${open ? '▾' : '▸'}</span>
      <span>${count(same)} ${same === 1 ? 'message' : 'messages'} as in the previous call</span>
      <span class="muted">${size(characters)}, ${percent(characters / total)} of the input</span></button>`}
    ${messages.map((message, at) => !(folded && at < same) && html`<${Message} key=${at} message=${message} at=${at} runKey=${runKey}
      same=${at < same} start=${view === 'new' && at === same ? start : 0} />`)}
    ${folded && same === messages.length && html`<p class="muted">Nothing is new.</p>`}
  </div>`;
}

function Output({ call }) {
  return html`<${Section} title="Output" tools=${html`<${CopyButton} text=${call.output} name="output" />`}>
    ${call.reasoning && html`<details class="reasoning"><summary>Reasoning
      (${size(asText(call.reasoning).length)})</summary>
      <${InertText} value=${call.reasoning} className="text prose" /></details>`}
    ${asText(call.output) ? html`<${InertText} value=${call.output} render=${highlightReply} lines=${80}
      name="Output" />`
      : html`<p class="muted">No text.</p>`}
    ${call.tool_calls && call.tool_calls.length > 0 && html`<h3>Tool calls</h3><${InertText}
      value=${call.tool_calls} />`}
  </${Section}>`;
}

const nextView = (view) => VIEWS[(VIEWS.findIndex(([name]) => name === view) + 1) % VIEWS.length][0];
let lastView = 'new'; // the same view for the next call

/** The view of one model call. */
export function CallView({ run, sid, step, number }) {
  const pathOf = (at) => `/api/run/${run.key}/call/${encodeURIComponent(at.sid)}/${at.step}/${at.n}`;
  const { data: call, error } = useJson(pathOf({ sid, step, n: number }));
  const { data: previous } = useJson(call?.previous ? pathOf(call.previous) : null);
  const [view, setView] = useState(lastView);
  const choose = (name) => {
    lastView = name;
    setView(name);
  };
  useKeys({ d: () => choose(nextView(lastView)) });
  if (!call) return html`<${Pending} error=${error} />`;
  const usage = call.usage || {};
  const messages = call.messages || [];
  const before = call.previous;
  const tabs = html`<span class="tabs" role="group" aria-label="Show the input as">${VIEWS.map(([name, title]) => html`
    <button key=${name} type="button" class="quiet" aria-pressed=${String(view === name)}
      onClick=${() => choose(name)}>${title}</button>`)}</span>
    ${before && html`<a href=${runHash(run.key, before.sid, before.step, before.n)}>previous</a>`}`;
  return html`<div class="model-call">
    <${Facts} name="Model call" facts=${[
      ['Model', visible(call.model || '')], ['Handed over to', call.target && visible(call.target)],
      ['Prompt', usage.prompt > 0 && `${count(usage.prompt)} tokens`],
      ['Cached', usage.prompt > 0 && isNumber(usage.cached) && percent(usage.cached / usage.prompt)],
      ['Reply', usage.completion > 0 && `${count(usage.completion)} tokens`],
      ['Reasoning', usage.reasoning > 0 && `${count(usage.reasoning)} tokens`],
      ['Latency', seconds(call.seconds)], ['Cost', money(call.money)],
    ].map(([name, value]) => [name, value || ''])} />
    <${Output} call=${call} />
    <${Labels} runKey=${run.key} sid=${sid} step=${step} call=${number} reply=${call.output}
      toolCalls=${call.tool_calls} />
    <${Section} title=${`Input (${messages.length} messages)`} tools=${tabs}>
      <${Input} messages=${messages} previous=${previous} view=${view} runKey=${run.key} /></${Section}>
    ${call.params && Object.keys(call.params).length > 0 && html`<${TextSection} title="Parameters"
      value=${call.params} />`}
  </div>`;
}
