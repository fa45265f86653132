// Lanes of the timeline: sessions that overlap in time lie side by side. No page, no network.

const PRIORITY = ['model', 'page', 'call', 'code', 'start'];
const SHORT = 0.005; // seconds; a shorter start is not shown

/** Sessions packed into lanes: [{depth, sessions: [{session, start, end}], spans}], and the run's end in seconds. */
export function lanesOf(sessions, spans) {
  const placed = sessions.filter((one) => typeof one.start === 'number');
  const bySession = new Map(placed.map((one) => [one.sid, []]));
  for (const span of spans) bySession.get(span.sid)?.push(span);
  const lanes = [];
  let end = 0;
  const inOrder = [...placed].sort((a, b) => (a.depth || 0) - (b.depth || 0) || a.start - b.start);
  for (const session of inOrder) {
    const own = bySession.get(session.sid);
    const stop = own.reduce((most, span) => Math.max(most, span.start + (span.seconds || 0)),
      session.start + (session.seconds || 0));
    end = Math.max(end, stop);
    let lane = lanes.find((one) => one.depth === session.depth && one.end <= session.start);
    if (!lane) {
      lane = { depth: session.depth, end: 0, sessions: [], spans: [] };
      lanes.push(lane);
    }
    lane.end = stop;
    lane.sessions.push({ session, start: session.start, end: stop });
    for (const span of own) lane.spans.push(span);
  }
  return { lanes, end };
}

/** The time from the start of each session to its first step or span: its browser and worker start. */
export function startSpans(sessions, spans) {
  return sessions.flatMap((one) => {
    if (typeof one.start !== 'number') return [];
    const firsts = spans.filter((span) => span.sid === one.sid).map((span) => span.start);
    const length = Math.min(...firsts, one.start + (one.seconds || 0)) - one.start;
    if (!(length > SHORT)) return [];
    return [{ sid: one.sid, kind: 'start', name: 'start of the agent', start: one.start, seconds: length }];
  });
}

/** Seconds by kind; each moment counts once, for the first kind of PRIORITY that is active then, else as "gap".
 *  The code of an agent that waits for a sub-agent is not active. */
export function timeByKind(sessions, spans, end) {
  const changes = []; // [seconds, kind or 'wait', session, +1 or -1]
  const add = (start, seconds, kind, sid) => {
    if (seconds > 0) changes.push([start, kind, sid, 1], [start + seconds, kind, sid, -1]);
  };
  const names = new Set(sessions.map((one) => one.agent));
  for (const span of spans) {
    if (span.kind !== 'call' || !names.has(span.name)) add(span.start, span.seconds, span.kind, span.sid);
  }
  for (const one of sessions) if (typeof one.start === 'number') add(one.start, one.seconds, 'wait', one.parent);
  changes.sort((a, b) => a[0] - b[0]);
  const found = { model: 0, page: 0, call: 0, code: 0, start: 0, gap: 0 };
  const active = new Map();
  const waits = new Map();
  let before = 0;
  for (const [at, kind, sid, by] of [...changes, [end, 'model', '', 0]]) {
    const works = (one) => [...(active.get(one)?.keys() || [])].some((owner) => one !== 'code' || !waits.get(owner));
    const now = PRIORITY.find(works);
    found[now || 'gap'] += Math.max(0, Math.min(at, end) - before);
    before = Math.max(before, Math.min(at, end));
    const counts = kind === 'wait' ? waits : active.get(kind) || active.set(kind, new Map()).get(kind);
    const left = (counts.get(sid) || 0) + by;
    if (left) counts.set(sid, left);
    else counts.delete(sid);
  }
  return found;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]; // seconds

/** Moments for the ticks of an axis, in seconds, at round distances. */
export function ticks(from, to, most = 8) {
  const rough = (to - from) / most;
  if (!(rough > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = rough < 1 ? [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough)
    : STEPS.find((one) => one >= rough) || Math.ceil(rough / 86400) * 86400;
  const found = [];
  for (let at = Math.ceil(from / step); at * step <= to; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/** The text of a tick: 500 ms, 20 s, 1:30, 2:05:00. */
export function tickName(at) {
  if (at === 0) return '0';
  if (at < 1) return `${Number((at * 1000).toPrecision(3))} ms`;
  if (at < 60) return `${Number(at.toPrecision(4))} s`;
  const pad = (number) => String(Math.floor(number)).padStart(2, '0');
  if (at < 3600) return `${Math.floor(at / 60)}:${pad(at % 60)}`;
  return `${Math.floor(at / 3600)}:${pad((at % 3600) / 60)}:${pad(at % 60)}`;
}
