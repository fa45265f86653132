// All data of the page: from the server, or embedded in a shared file. Nothing else reads either.
import { useEffect, useState } from '/static/ui.js';
import { LongText } from '/static/inert.js';

const CACHE = 400; // answers kept, the oldest leave first
const WAIT_AFTER_ERROR = 2000; // milliseconds

function embedded() {
  const element = document.getElementById('ck-data');
  return element ? JSON.parse(element.textContent) : null;
}

const shared = embedded();
const cache = new Map();
const listeners = new Set();

/** False in a shared file: nothing can be sent. */
export const canPost = shared === null;

function fromShared(path) {
  const found = shared.responses[path];
  if (found === undefined) throw new Error('This part is not in the shared file.');
  if (!found || !Array.isArray(found.messages)) return found;
  const messages = found.messages.map((one) => (typeof one === 'number' ? shared.messages[one] : one));
  return { ...found, messages };
}

async function answer(response) {
  const text = await response.text();
  let data;
  try {
    data = JSON.parse(text);
  } catch (cause) {
    throw new Error(`The server's answer is not JSON (HTTP ${response.status}).`, { cause });
  }
  if (!response.ok) throw new Error(data.error || `The server answered HTTP ${response.status}.`);
  return data;
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (cause) {
    if (cause.name === 'AbortError') throw cause;
    throw new Error('The viewer does not answer. Is its command still running?', { cause });
  }
  return answer(response);
}

/** Put a LongText in the place of each shortened text that `more` of a response lists. */
function withLongTexts(path, data) {
  for (const { path: place, shown, chars } of (data && Array.isArray(data.more) && data.more) || []) {
    const load = (from) => request(`${path}?path=${encodeURIComponent(place)}&from=${from}`);
    let at = data;
    const names = place.split('.');
    while (names.length && at) {
      let length = 1; // a name may contain dots
      while (length < names.length && !Object.hasOwn(at, names.slice(0, length).join('.'))) length += 1;
      const name = names.splice(0, length).join('.');
      if (!names.length && typeof at[name] === 'string') at[name] = new LongText(at[name], shown, chars, load);
      at = at[name];
    }
  }
  return data;
}

/** The answer to a path, from the cache if it has been read before. */
export function getJson(path) {
  if (shared) return new Promise((resolve) => { resolve(fromShared(path)); });
  let found = cache.get(path);
  if (!found) {
    found = request(path).then((data) => withLongTexts(path, data));
    cache.set(path, found);
    found.catch(() => cache.delete(path));
    if (cache.size > CACHE) cache.delete(cache.keys().next().value);
  }
  return found;
}

/** Send JSON; the answer's JSON. */
export function postJson(path, body) {
  if (shared) return Promise.reject(new Error('A shared file cannot be changed.'));
  const headers = { 'Content-Type': 'application/json', 'X-CK': '1' };
  return request(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** The address of an image of a run. */
export function blobUrl(key, hash) {
  if (/^data:image\/(png|jpeg|webp|gif);base64,/.test(hash)) return hash;
  const path = `/api/run/${key}/blob/${encodeURIComponent(hash)}`;
  return shared ? shared.responses[path] : path;
}

/** Read a path again at its next use, and all paths below it; components that show them reload. */
export function invalidate(prefix) {
  for (const path of [...cache.keys()]) if (path.startsWith(prefix)) cache.delete(path);
  for (const listener of listeners) listener(prefix);
}

/** {data, error, loading} of a path. While it reloads, the data of before stays; another path starts empty. */
export function useJson(path) {
  const [state, setState] = useState({ path: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const listener = (prefix) => { if (path && path.startsWith(prefix)) setRound((now) => now + 1); };
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, [path]);
  useEffect(() => {
    let wanted = true;
    if (path) {
      getJson(path).then(
        (data) => { if (wanted) setState({ path, data }); },
        (error) => { if (wanted) setState({ path, error: error.message }); },
      );
    }
    return () => { wanted = false; };
  }, [path, round]);
  const current = state.path === path ? state : {};
  return { data: current.data, error: current.error, loading: Boolean(path) && !current.data && !current.error };
}

/** The sources with short names: the last parts of the path, as few as make it different from the others. */
export function namedSources(sources) {
  const parts = sources.map(({ name }) => String(name).split(/[\\/]/).filter(Boolean));
  const end = (at, length) => parts[at].slice(-length).join('/');
  return sources.map((one, at) => {
    const same = (length) => parts.some((_, other) => other !== at && end(other, length) === end(at, length));
    let length = 1;
    while (length < parts[at].length && same(length)) length += 1;
    return { ...one, name: same(length) ? String(one.name) : end(at, length) };
  });
}

/** Rows of /api/runs as objects; `sources` gives the name of a source's number. */
export function rowsOf({ columns, rows }, sources = []) {
  return rows.map((row) => {
    const object = {};
    for (let at = 0; at < columns.length; at += 1) object[columns[at]] = row[at];
    if (typeof object.source === 'number') object.source = sources[object.source]?.name ?? '';
    return object;
  });
}

/** All runs, or the only run of a shared file. */
export async function loadRuns() {
  if (!shared || shared.responses['/api/runs']) return getJson('/api/runs');
  const outlines = Object.entries(shared.responses).filter(([path]) => /^\/api\/run\/[^/]+$/.test(path));
  return { version: 0, columns: ['key', 'id'], rows: outlines.map(([, run]) => [run.key, run.id]), only: true };
}

const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** Follow the server's changes until `stop()`: `take(changes)` for each answer, `lost(isLost)` for the connection. */
export function follow(version, take, lost) {
  const control = new AbortController();
  const loop = async () => {
    let since = version;
    while (!control.signal.aborted) {
      try {
        const changes = await request(`/api/changes?since=${since}`, { signal: control.signal });
        lost(false);
        const fresh = changes.version !== since;
        since = changes.version;
        if (fresh) {
          for (const key of changes.keys) {
            invalidate(`/api/run/${key}`);
            invalidate(`/api/labels/${key}`);
          }
          cache.delete('/api/runs');
          take(changes);
        }
      } catch {
        if (control.signal.aborted) return;
        lost(true);
        await sleep(WAIT_AFTER_ERROR);
      }
    }
  };
  if (canPost) loop();
  return { stop: () => control.abort() };
}
