// Requests to the seat, the queue, and drafts in this browser.

export class Refused extends Error {}

async function answerOf(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Refused(body.error || `the server answered ${response.status}`);
}

export async function get(path) {
  return answerOf(await fetch(path, { cache: 'no-store' }));
}

export async function post(path, body, keepalive = false) {
  const headers = { 'Content-Type': 'application/json', 'X-CK': '1' };
  return answerOf(await fetch(path, { method: 'POST', headers, body: JSON.stringify(body), keepalive }));
}

/** Follow the queue until `stop`: calls `changed` with each state, `lost` with an error. */
export function follow(changed, lost) {
  let stopped = false;
  const run = async () => {
    let version = null;
    while (!stopped) {
      try {
        const found = await get(version === null ? '/api/queue' : `/api/queue?since=${version}`);
        version = found.version;
        if (!stopped) changed(found);
      } catch (error) {
        version = null;
        if (!stopped) lost(error);
        await new Promise((wake) => { setTimeout(wake, 1500); });
      }
    }
  };
  run();
  return () => { stopped = true; };
}

const KEY = 'ck-seat ';
const KEPT = 50;

/** The place of a draft: the same prompt of a resumed run finds it again. */
function keyOf(call) {
  return `${KEY}${call.sid || call.id} ${call.phase} ${call.step}`;
}

export function keepDraft(call, draft) {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(KEY));
    if (keys.length > KEPT) localStorage.removeItem(keys[0]);
    localStorage.setItem(keyOf(call), JSON.stringify(draft));
  } catch { /* without storage, the server has the draft */ }
}

export function keptDraft(call) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(call)));
  } catch {
    return null;
  }
}

export function dropDraft(call) {
  try {
    localStorage.removeItem(keyOf(call));
  } catch { /* nothing was stored */ }
}
