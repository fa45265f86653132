// Give the rest of an agent or a run to a model, and take it back.
import { html, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { post } from './queue.js';

/** Ask for the model. `send` returns whether it was accepted; else the problem is shown. */
export function HandOverDialog({ area, call, done }) {
  const [target, setTarget] = useState('');
  const [scope, setScope] = useState('run');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const close = () => area.current.close();
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await post(`/api/call/${call.id}/hand_over`, { target, scope });
      setProblem('');
      close();
      done(`${target} completes the next calls`);
    } catch (error) {
      setProblem(error.message || 'the seat does not answer');
    }
    setBusy(false);
  };
  const choice = (value, text) => html`<label class="choice"><input type="radio" name="scope" checked=${scope === value}
    onChange=${() => setScope(value)} /> <span>${text}</span></label>`;
  return html`<dialog ref=${area} aria-labelledby="hand-over"><form onSubmit=${send}>
    <h2 id="hand-over">Give the rest to a model</h2>
    <p>The model completes this call and the next ones. Your replies so far are kept. You can take it back.</p>
    <label class="field"><span>Model</span><input class="mono" value=${target} required autocomplete="off"
      spellcheck=${false} aria-describedby="model-forms" aria-invalid=${Boolean(problem)}
      onInput=${(event) => { setTarget(event.target.value); setProblem(''); }} /></label>
    <p class="muted" id="model-forms">As for the option --model: ${(call.models || []).map((one, n) => html`${n ? ', ' : ''}
      <code>${one}</code>`)}</p>
    ${problem && html`<p class="problem" role="alert">${visible(problem)}</p>`}
    <fieldset class="scope"><legend>For</legend>
      ${choice('run', 'all agents of this task')}
      ${choice('agent', html`only ${visible(call.agent || 'this agent')}, in its present task`)}</fieldset>
    <div class="send"><button class="primary" disabled=${busy}>Hand over</button>
      <button type="button" class="quiet" onClick=${close}>Cancel</button></div></form></dialog>`;
}

/** What models complete, with a button to take it back. */
export function Handed({ handed, say }) {
  if (!handed || !handed.length) return null;
  const back = (one) => post(`/api/handed/${one.id}/take_back`, {})
    .then(() => say('The next prompt comes to you'), (error) => say(error.message));
  return html`<section class="handed" aria-label="Handed over"><h2>Handed over</h2><ul>${handed.map((one) => html`
    <li key=${one.id}><span class="mono">${visible(one.target)}</span>
      <span class="muted">${one.completed ? `${one.completed} call${one.completed > 1 ? 's' : ''} completed`
    : 'no reply yet'}, ${one.scope === 'run' ? 'all agents' : visible(one.agent)}</span>
      <span class="task">${visible(one.task.slice(0, 120))}</span>
      <button type="button" onClick=${() => back(one)}>Take back</button></li>`)}</ul></section>`;
}
