// Differences of texts by line, and of the messages of two model calls: no page, no network.

const MOST = 4000000; // cells of the table; larger middles are shown as removed and added whole

function middle(before, after) {
  if (before.length * after.length > MOST) {
    return [...before.map((line) => ['-', line]), ...after.map((line) => ['+', line])];
  }
  const width = after.length + 1;
  const table = new Uint32Array((before.length + 1) * width); // lengths of common subsequences of the rests
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = before[i] === after[j] ? table[(i + 1) * width + j + 1] + 1
        : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      found.push(['=', before[i]]);
      i += 1;
      j += 1;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) {
      found.push(['-', before[i]]);
      i += 1;
    } else {
      found.push(['+', after[j]]);
      j += 1;
    }
  }
  return [...found, ...before.slice(i).map((line) => ['-', line]), ...after.slice(j).map((line) => ['+', line])];
}

/** [['='|'-'|'+', line], ...]: the lines of two texts, aligned. */
export function diffLines(before, after) {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start
    && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return [
    ...now.slice(0, start).map((line) => ['=', line]),
    ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...now.slice(now.length - end).map((line) => ['=', line]),
  ];
}

/** Runs of equal lines longer than 2 * `around` become ['…', count of the lines left out, text]. */
export function foldEqual(lines, around = 3) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    let end = at;
    while (end < lines.length && lines[end][0] === '=') end += 1;
    const head = at === 0 ? 0 : around;
    const tail = end === lines.length ? 0 : around;
    if (end - at > head + tail + 1) {
      const left = lines.slice(at + head, end - tail);
      found.push(...lines.slice(at, at + head), ['…', left.map(([, line]) => line).join('\n'), left.length],
        ...lines.slice(end - tail, end));
    } else {
      found.push(...lines.slice(at, end));
    }
    if (end < lines.length) found.push(lines[end]);
    at = end + 1;
  }
  return found;
}

/** How many leading characters two texts share. */
export function sharedStart(before, after) {
  const most = Math.min(before.length, after.length);
  let at = 0;
  while (at < most && before.charCodeAt(at) === after.charCodeAt(at)) at += 1;
  return at;
}

/** How many leading messages two calls share. */
export function sharedMessages(before, after) {
  let at = 0;
  while (at < before.length && at < after.length && JSON.stringify(before[at]) === JSON.stringify(after[at])) at += 1;
  return at;
}

/** A value of a plan's state as lines: an entry of a list or a key of a dictionary is one line. */
export function valueLines(value) {
  if (value === null || value === undefined || value === '') return '';
  const write = (one) => (typeof one === 'string' ? one : JSON.stringify(one));
  if (Array.isArray(value)) return value.map((one) => `• ${write(one)}`).join('\n');
  if (typeof value === 'object') return Object.entries(value).map(([key, one]) => `${key}: ${write(one)}`).join('\n');
  return String(value);
}
