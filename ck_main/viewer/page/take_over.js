// Take over a run that stopped: act in its browser, answer or approve, and resume it.
import { html, useEffect, useRef, useState } from '/static/ui.js';
import { CopyButton, InertText, visible } from '/static/inert.js';
import { canPost, getJson, invalidate, postJson } from './data.js';
import { Section } from './parts.js';
import { Remote } from './take_over_browser.js';

function useFacts(run) {
  const [facts, setFacts] = useState(null);
  const [problem, setProblem] = useState('');
  const path = `/api/take_over/${run.key}`;
  const load = async () => {
    if (!canPost || !run.journal) return;
    invalidate(path);
    try {
      setFacts(await getJson(path));
    } catch (error) {
      setProblem(error.message);
    }
  };
  useEffect(() => { load(); }, [run.key, run.live, run.status, run.journal]);
  const running = facts && facts.started && facts.started.code === null;
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(load, 1000);
    return () => clearInterval(timer);
  }, [running]);
  return { facts, problem, setProblem, load, path };
}

/** What the command that resumes the run has printed. */
function Started({ started }) {
  if (!started) return null;
  const running = started.code === null;
  const tone = running ? 'live' : started.code === 0 ? 'good' : 'warn';
  return html`<div class="started" aria-live="polite"><p><span class=${`mark ${tone}`}>${
    running ? 'resumed, in progress' : `ended with exit code ${started.code}`}</span></p>
    <${InertText} value=${started.lines.join('\n')} className="code" name="Output of the command" /></div>`;
}

function Reason({ facts }) {
  if (facts.question) {
    return html`<div class="reason"><p>The run asks:</p><${InertText} value=${facts.question} className="text prose" />
      </div>`;
  }
  if (facts.action) return html`<div class="reason"><p>This action waits for approval:</p>
    <${InertText} value=${facts.action} /></div>`;
  return html`<p>${facts.reason} You can resume it${facts.browsers.length ? ', and act in its browser before' : ''}.</p>`;
}

/** Browsers that closed with the command. */
function Closed({ browsers }) {
  if (!browsers.length) return null;
  const one = browsers.length === 1;
  return html`<p>${one ? 'The browser' : 'These browsers'} of this run closed with its command, so logins and typed text
    are lost. The resumed run opens ${one ? 'a new one' : 'new ones'} at ${browsers.map((closed, n) => html`${n ? ', ' : ''}
    <span class="mono">${visible(closed.url)}</span>`)}. If it needs you there, it stops again, and you can act in the
    browser here.</p>`;
}

/** What the person did, by browser. */
function Done({ facts }) {
  const { actions, browsers } = facts;
  if (!actions.length) return null;
  const many = new Set(actions.map((one) => one.sid)).size > 1;
  const task = (sid) => (browsers.find((one) => one.sid === sid) || { task: '' }).task;
  return html`<div><p>You did:</p><ol class="done-list">${actions.map((one) => html`<li>${visible(one.line)}${
    many && html` <span class="muted">(${visible(task(one.sid))})</span>`}</li>`)}</ol></div>`;
}

/** Answer or approval, the command, and the button that starts it. */
function HandBack({ facts, path, load, setProblem }) {
  const asking = facts.browsers.filter((one) => one.asks).map((one) => one.sid);
  const done = facts.actions.filter((one) => asking.includes(one.sid)).map((one) => one.line.split(': ')[0]);
  const summary = done.length ? `I acted in your browser: ${done.join('; ')}.` : '';
  const [answer, setAnswer] = useState('');
  const [approve, setApprove] = useState(false);
  const [command, setCommand] = useState('');
  const edited = useRef(false);
  useEffect(() => { if (!edited.current) setAnswer(summary); }, [summary]);
  const body = { answer, approve };
  const ready = !facts.question || answer.trim() !== '';
  useEffect(() => {
    let shown = ready;
    if (ready) {
      postJson(`${path}/command`, body).then((found) => { if (shown) setCommand(found.command); },
        (error) => { if (shown) { setCommand(''); setProblem(error.message); } });
    } else setCommand('');
    return () => { shown = false; };
  }, [answer, approve, path]);
  const press = async () => {
    try {
      await postJson(`${path}/hand_back`, body);
      setProblem('');
    } catch (error) {
      setProblem(error.message);
    }
    await load();
  };
  return html`<div class="hand-back">
    <h3>${facts.question ? 'Answer and hand back' : facts.action ? 'Decide and hand back' : 'Hand back'}</h3>
    ${facts.question && html`<label class="field"><span>Your answer</span><textarea rows="3" value=${answer}
      onInput=${(event) => { edited.current = true; setAnswer(event.target.value); }}></textarea></label>`}
    ${facts.action && html`<label class="choice"><input type="checkbox" checked=${approve}
      onChange=${(event) => setApprove(event.target.checked)} /> Approve this action, once</label>`}
    ${facts.question && !ready && html`<p class="muted" id="why-not">Write an answer first: the run waits for it.</p>`}
    ${command && html`<p class="muted">The button starts this command; you can also copy it and start it yourself:</p>
      <div class="command"><pre>${visible(command)}</pre><${CopyButton} text=${command} name="command" />
      </div>`}
    <button type="button" class="primary" onClick=${press} disabled=${!command}
      aria-describedby=${facts.question && !ready ? 'why-not' : undefined}>Hand back and resume</button></div>`;
}

/** A section for a run that stopped; nothing for other runs and in shared files. */
export function TakeOver({ run }) {
  const { facts, problem, setProblem, load, path } = useFacts(run);
  if (!canPost || !facts || !run.journal || !(facts.possible || facts.started)) return null;
  const running = facts.started && facts.started.code === null;
  return html`<${Section} title="Take over" tone=${facts.possible ? 'warn' : ''}><div class="take-over">
    <${Started} started=${facts.started} />
    ${facts.possible && !running && html`<${Reason} facts=${facts} />
      ${facts.browsers.length > 0 && html`<h3>Act in the browser, if the run needs it</h3><${Remote} path=${path} browsers=${facts.browsers} acted=${load} />`}
      <${Closed} browsers=${facts.closed} />
      <${Done} facts=${facts} />
      <${HandBack} facts=${facts} path=${path} load=${load} setProblem=${setProblem} />`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
  </div></${Section}>`;
}
