// The tree of agents and steps as a list of rows: no page, no network.

/** {byId, children} of the sessions of a run; children of a session by the step that called them. */
export function indexSessions(sessions) {
  const byId = new Map(sessions.map((session) => [session.sid, session]));
  const children = new Map();
  for (const session of sessions) {
    if (session.parent === null || session.parent === undefined || !byId.has(session.parent)) continue;
    const caller = session.called_by && session.called_by.sid === session.parent ? session.called_by.step : null;
    const key = `${session.parent}/${caller ?? ''}`;
    if (!children.has(key)) children.set(key, []);
    children.get(key).push(session);
  }
  return { byId, children, roots: sessions.filter((one) => !byId.has(one.parent)) };
}

/** Sub-agents that a step called, in order. */
export function calledBy(index, sid, step) {
  return index.children.get(`${sid}/${step}`) || [];
}

/** Rows in view: {kind: 'session'|'step', sid, step, depth, session, last}; sessions in `closed` show no steps. */
export function treeRows(index, closed) {
  const rows = [];
  const seen = new Set();
  const add = (session, depth) => {
    if (seen.has(session.sid)) return; // a record may name a session twice
    seen.add(session.sid);
    rows.push({ kind: 'session', sid: session.sid, depth, session });
    if (closed.has(session.sid)) return;
    for (const step of session.steps) {
      rows.push({ kind: 'step', sid: session.sid, step: step.i, depth: depth + 1, session, data: step });
      for (const child of calledBy(index, session.sid, step.i)) add(child, depth + 2);
    }
    for (const child of index.children.get(`${session.sid}/`) || []) add(child, depth + 1);
  };
  for (const root of index.roots) add(root, 0);
  return rows;
}

/** The row of a session or step, or -1. */
export function rowIndex(rows, sid, step) {
  return rows.findIndex((row) => row.sid === sid && (step === undefined ? row.kind === 'session' : row.step === step));
}

/** Sessions above one, from the run's main session down. */
export function ancestors(index, sid) {
  const path = [];
  for (let at = index.byId.get(sid); at && !path.includes(at); at = index.byId.get(at.parent)) path.unshift(at);
  return path;
}

/** Sub-agents are folded at first in large runs, so that the main agent's steps fit. */
export function firstClosed(sessions, limit = 300) {
  const steps = sessions.reduce((sum, session) => sum + session.steps.length, 0);
  return new Set(steps <= limit ? [] : sessions.filter((one) => one.depth > 0).map((one) => one.sid));
}
