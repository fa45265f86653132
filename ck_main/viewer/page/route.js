// The address after "#": what is shown, so that links and the back button work.

const TEXT = encodeURIComponent;

/** {name: 'runs'|'run'|'compare'|'training', ...} of a hash. */
export function parseRoute(hash) {
  const [path, query = ''] = hash.replace(/^#/, '').split('?');
  const params = Object.fromEntries(new URLSearchParams(query));
  let parts;
  try {
    parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    parts = [];
  }
  if (parts[0] === 'run' && parts[1]) {
    const [, key, sid, step, word, call] = parts;
    const number = (text) => (text === undefined || !/^\d+$/.test(text) ? undefined : Number(text));
    return {
      name: 'run', key, sid, step: number(step), call: word === 'call' ? number(call) : undefined, params,
    };
  }
  return { name: ['compare', 'training'].includes(parts[0]) ? parts[0] : 'runs', params };
}

function queryOf(params) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value)).toString();
  return query ? `?${query}` : '';
}

export function runsHash(params = {}) {
  return `#/${queryOf(params)}`;
}

export function compareHash(params) {
  return `#/compare${queryOf(params)}`;
}

export function trainingHash(params) {
  return `#/training${queryOf(params)}`;
}

/** The link to a run, session, step or model call. */
export function runHash(key, sid, step, call, params = {}) {
  let path = `#/run/${TEXT(key)}`;
  if (sid) path += `/${TEXT(sid)}`;
  if (sid && step !== undefined && step !== null) path += `/${step}`;
  if (sid && call !== undefined && call !== null) path += `/call/${call}`;
  return path + queryOf(params);
}

/** Show another place at once, so that the next key press already finds it. */
export function go(hash, { replace = false } = {}) {
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, '', hash);
  else history.pushState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}
