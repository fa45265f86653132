// The seat of the model: the waiting calls, the prompt of one of them, and its reply.
import { html, render, useCallback, useEffect, useMemo, useRef, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { ThemeSwitch } from '/static/theme.js';
import { contentOf, elementsIn, insertCall } from './calls.js';
import { Editor, isEmpty } from './editor.js';
import { Handed, HandOverDialog } from './hand_over.js';
import { PagePicture } from './picture.js';
import { Prompt } from './prompt.js';
import { Refused, dropDraft, follow, get, keepDraft, keptDraft, post } from './queue.js';

const ENDED = 'The command has ended or was stopped.';
const STAY = 4000; // milliseconds to wait for the next prompt of the same run, while other runs wait

function age(since, now) {
  const seconds = Math.max(0, Math.round(now / 1000 - since));
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function useClock() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function Queue({ queue, current, open, say, lost }) {
  const { waiting, handed } = queue;
  const now = useClock();
  return html`<nav class="queue" aria-label="Waiting agents">
    <h2>Waiting <span class="mark">${waiting.length}</span></h2>
    <ol>${waiting.map((one) => html`<li key=${one.id}><button type="button" aria-current=${one.id === current}
      onClick=${() => open(one.id)}>
      <span class="agent">${visible(one.agent || 'a model call')}</span>
      <span class="muted">${one.phase ? `${one.phase}, ` : ''}step ${one.step}, waits ${age(one.since, now)}${
      one.written ? ', draft' : ''}</span>
      <span class="task">${visible(one.task.slice(0, 120))}</span></button></li>`)}</ol>
    ${!waiting.length && !lost && html`<p class="muted">No agent waits. The next prompt appears here.</p>`}
    ${!lost && html`<${Handed} handed=${handed} say=${say} />`}</nav>`;
}

/** The queue, as the server reports it, and whether the server is there. */
function useQueue() {
  const [queue, setQueue] = useState({ waiting: [], answered: 0, version: null });
  const [lost, setLost] = useState('');
  useEffect(() => follow((found) => { setQueue(found); setLost(''); }, (error) => {
    setLost(error instanceof Refused ? error.message
      : ENDED);
  }), []);
  return [queue, lost];
}

function startOf(call) {
  const kept = keptDraft(call);
  const given = kept || call.draft || {};
  const code = call.guide.form === 'data' ? call.guide.example : '';
  const draft = { mode: given.text ? 'text' : 'parts', code, thought: '', plan: '', text: '', ...given };
  return call.guide.form === 'text' ? { ...draft, mode: 'text' } : draft;
}

/** The id of the call to open next: of the run that the person works on, else after a while the oldest. */
function useNext(queue) {
  const last = useRef({ id: null, run: null, until: 0 });
  const [, again] = useState(0);
  const stay = ({ id, run }) => {
    last.current = { id, run, until: Date.now() + STAY };
    setTimeout(() => again((n) => n + 1), STAY + 10);
  };
  const waiting = queue.waiting.filter((one) => one.id !== last.current.id); // the server may still list it
  const same = waiting.find((one) => one.run === last.current.run);
  const next = same || (Date.now() >= last.current.until ? waiting[0] : null);
  return [next ? next.id : null, stay];
}

/** The open call, its draft, and a function that opens another one. */
function useCall(queue) {
  const [call, setCall] = useState(null);
  const [draft, setDraft] = useState(null);
  const [problem, setProblem] = useState('');
  const open = useCallback(async (id) => {
    try {
      const found = await get(`/api/call/${id}`);
      setCall(found);
      setDraft(startOf(found));
      setProblem('');
    } catch (error) {
      setProblem(error.message);
    }
  }, []);
  const close = useCallback(() => { setCall(null); setDraft(null); }, []);
  const waits = call !== null && queue.waiting.some((one) => one.id === call.id);
  const [next, stay] = useNext(queue);
  useEffect(() => {
    const unused = call !== null && !waits && isEmpty(draft, call.guide);
    if (next && (call === null || unused)) open(next);
    else if (unused && queue.version !== null) close();
  }, [queue.version, call, next]);
  const edit = (change) => setDraft((before) => {
    const after = { ...before, ...change };
    keepDraft(call, after);
    return after;
  });
  return { call, draft, edit, open, close, waits, problem, setProblem, stay };
}

function FailDialog({ area, fail }) {
  const reason = useRef(null);
  const end = (run) => { fail(reason.current.value, run); area.current.close(); };
  return html`<dialog ref=${area} aria-labelledby="no-reply"><h2 id="no-reply">No reply</h2>
    <p>The run gets an error in place of a reply.</p>
    <label class="field"><span>Reason</span><input ref=${reason} maxlength="300" /></label>
    <div class="send"><button type="button" onClick=${() => end(false)}>Fail this call</button>
      <button type="button" onClick=${() => end(true)}>Stop the command</button>
      <button type="button" class="quiet" onClick=${() => area.current.close()}>Cancel</button></div></dialog>`;
}

function Heading({ call }) {
  return html`<header class="call-head"><h2>${visible(call.agent || 'A model call')}${' '}
      <span class="muted">${call.phase ? `${call.phase}, ` : ''}step ${call.step}</span></h2>
    ${call.task && html`<p class="task-text" title=${call.task}>${visible(call.task)}</p>`}</header>`;
}

/** What the person does with the open call: send, fail, insert a call. */
function useActions(state, area, say) {
  const { call, draft, edit, close, setProblem, stay } = state;
  const attempt = async (path, body) => {
    try {
      const found = await post(`/api/call/${call.id}/${path}`, body);
      setProblem('');
      if (found.sent) { dropDraft(call); stay(call); close(); }
      return found;
    } catch (error) {
      setProblem(error.message || 'the seat does not answer');
      return null;
    }
  };
  const insert = (one) => {
    const whole = draft.mode === 'text';
    const field = area.current;
    const part = whole ? 'text' : 'code';
    const before = draft[part] || '';
    const at = field && document.activeElement === field ? field.selectionStart : before.length;
    const next = insertCall(before, at, one);
    if (one.at >= 0 && field) {
      // at once, because the person may type before the next frame
      field.value = next.code;
      field.focus();
      field.setSelectionRange(next.cursor, next.cursor);
    }
    edit({ [part]: next.code });
    say(`${one.text} is in the reply`);
  };
  const send = (parts, anyway) => attempt('send', { ...parts, anyway });
  const fail = (reason, run) => attempt('fail', { reason, run });
  return { insert, send, fail };
}

function Work({ state, lost, say }) {
  const { call, draft, edit, waits, close, problem, stay } = state;
  const area = useRef(null);
  const dialog = useRef(null);
  const giving = useRef(null);
  const { insert, send, fail } = useActions(state, area, say);
  const elements = useMemo(() => elementsIn(contentOf(call.messages[call.messages.length - 1] || {}).text), [call]);
  useEffect(() => { if (area.current && document.activeElement === document.body) area.current.focus(); }, [call.id]);
  const ended = !waits && !lost;
  return html`<main><${Heading} call=${call} />
    ${call.notice && !ended && html`<p class="notice warn" role="alert">${visible(call.notice)}</p>`}
    ${ended && html`<p class="notice warn" role="alert">This call waits no longer: it has its reply, or its run ended.
      <button type="button" onClick=${() => { dropDraft(call); close(); }}>Discard the text</button></p>`}
    <a class="to-reply" href="#reply" onClick=${(event) => {
    event.preventDefault();
    area.current?.focus();
  }}>To the reply ↓</a>
    <div class="columns"><div class="left">
      <${PagePicture} call=${call} elements=${elements} insert=${insert} />
      <${Prompt} call=${call} insert=${insert} /></div>
    <${Editor} key=${call.id} call=${call} draft=${draft} edit=${edit} area=${area} elements=${elements}
      insert=${insert} send=${send} fail=${() => dialog.current.showModal()}
      give=${() => giving.current.showModal()} ended=${ended || Boolean(lost)}
      problem=${problem} /></div>
    <${HandOverDialog} area=${giving} call=${call} done=${(text) => { say(text); stay(call); close(); }} />
    <${FailDialog} area=${dialog} fail=${fail} /></main>`;
}

function move(waiting, current, step, open) {
  const at = waiting.findIndex((one) => one.id === current) + step;
  if (waiting[at]) open(waiting[at].id);
}

function App() {
  const [queue, lost] = useQueue();
  const [said, say] = useState('');
  const state = useCall(queue);
  const { call, draft, open } = state;
  const current = call && call.id;
  useEffect(() => { document.title = `${queue.waiting.length ? `(${queue.waiting.length}) ` : ''}Be the model`; },
    [queue.waiting.length]);
  useEffect(() => {
    const press = (event) => {
      if (!event.altKey || !['ArrowDown', 'ArrowUp'].includes(event.key)) return;
      event.preventDefault();
      move(queue.waiting, current, event.key === 'ArrowDown' ? 1 : -1, open);
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [queue, current]);
  return html`<header class="bar"><h1>Be the model</h1>
      <span class="muted">${queue.answered} answered</span>
      <span class="muted keys"><kbd>Alt</kbd> <kbd>↓</kbd> next agent</span><${ThemeSwitch} /></header>
    ${lost && html`<p class="notice bad" role="alert">${visible(lost)} ${call && draft
    ? 'Your text stays here until you close this page.' : 'You can close this page.'}</p>`}
    ${!queue.answered && !lost && html`<section class="introduction" aria-label="What to do"><p>Agents wait for the replies of their model, and you write
      them. Read the prompt, write a thought and the next code, look at the dry run, send. Elements of a page and
      functions write their calls when you click them.</p></section>`}
    <p class="hidden-text" role="status">${said}</p>
    <div class="seat"><${Queue} queue=${queue} current=${current} open=${open} say=${say} lost=${lost} />
      ${call && draft ? html`<${Work} state=${state} lost=${lost} say=${say} />`
    : html`<main class="empty"><p class="muted">${lost ? '' : 'Waiting for a prompt.'}</p></main>`}</div>`;
}

render(html`<${App} />`, document.getElementById('root'));
