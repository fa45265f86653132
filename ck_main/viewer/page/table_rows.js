// Filter, sort and sum the rows of the table: no page, no network.
import { isNumber } from './format.js';

const TEXTS = ['id', 'task', 'answer', 'output', 'agent', 'source', 'status', 'stop_reason'];

/** The share of prompt tokens that came from the cache, or null. */
export function cachedShare(row) {
  if (!isNumber(row.cached_tokens) || !row.prompt_tokens) return null;
  return row.cached_tokens / row.prompt_tokens;
}

export function statusOf(row) {
  return row.live ? 'running' : row.status === 'in_progress' ? 'interrupted' : row.status || 'unknown';
}

function scoreClass(score) {
  if (!isNumber(score)) return 'none';
  return score >= 1 ? 'right' : score > 0 ? 'part' : 'wrong';
}

/** The labels of a run as a list of texts. */
export function labelsOf(row) {
  if (Array.isArray(row.labels)) return row.labels.map((one) => (typeof one === 'string' ? one : one.label || ''));
  if (row.labels && typeof row.labels === 'object') return row.labels.label ? [row.labels.label] : [];
  return row.labels ? [String(row.labels)] : [];
}

function textOf(row) {
  if (row.searchText === undefined) {
    const tags = Array.isArray(row.tags) ? row.tags.join(' ') : row.tags || '';
    row.searchText = `${TEXTS.map((name) => row[name] ?? '').join('\n')}\n${tags}\n${labelsOf(row).join(' ')}`
      .toLowerCase();
  }
  return row.searchText;
}

/** The value that a column sorts by. */
export function sortValue(row, column) {
  if (column === 'cached') return cachedShare(row);
  if (column === 'status') return statusOf(row);
  if (column === 'labels') return labelsOf(row).join(' ');
  return row[column];
}

/** Rows that match the parameters of the address; `hits` are matches inside runs. */
export function filterRows(rows, params, hits = []) {
  const inside = new Set(hits.map((hit) => hit.key));
  const words = (params.q || '').toLowerCase().split(/\s+/).filter(Boolean);
  const is = (name, of) => {
    const wanted = params[name] ? new Set(params[name].split(',')) : null;
    return (row) => !wanted || wanted.has(of(row));
  };
  const tests = [
    is('status', statusOf),
    is('source', (row) => row.source),
    is('score', (row) => scoreClass(row.score)),
    is('level', (row) => String(row.level ?? '')),
    (row) => !params.label || labelsOf(row).includes(params.label),
    (row) => inside.has(row.key) || words.every((word) => textOf(row).includes(word)),
  ];
  return rows.filter((row) => tests.every((test) => test(row)));
}

const collator = new Intl.Collator('en', { numeric: true });

/** A sorted copy: `sort` is a column, with "-" in front for descending; unknown values come last. */
export function sortRows(rows, sort) {
  if (!sort) return rows;
  const down = sort.startsWith('-');
  const column = down ? sort.slice(1) : sort;
  const known = [];
  const unknown = [];
  for (const row of rows) {
    const value = sortValue(row, column);
    (value === null || value === undefined || value === '' ? unknown : known).push([value, row]);
  }
  const order = (a, b) => (isNumber(a[0]) && isNumber(b[0]) ? a[0] - b[0]
    : collator.compare(String(a[0]), String(b[0])));
  known.sort(down ? (a, b) => order(b, a) : order);
  return [...known, ...unknown].map((pair) => (Array.isArray(pair) ? pair[1] : pair));
}

/** Sums over rows: {runs, scored, score, tokens, cached, money, seconds, steps}. */
export function sumRows(rows) {
  const sums = { runs: rows.length, scored: 0, score: 0, tokens: 0, prompt: 0, cached: null, money: null, seconds: 0 };
  for (const row of rows) {
    if (isNumber(row.score)) {
      sums.scored += 1;
      sums.score += row.score;
    }
    sums.tokens += row.tokens || 0;
    sums.prompt += row.prompt_tokens || 0;
    if (isNumber(row.cached_tokens)) sums.cached = (sums.cached || 0) + row.cached_tokens;
    sums.seconds += row.seconds || 0;
    if (isNumber(row.money)) sums.money = (sums.money || 0) + row.money;
  }
  return sums;
}

/** How many rows have each value of a field: [[value, count], ...], most frequent first. */
export function countValues(rows, of) {
  const counts = new Map();
  for (const row of rows) {
    const value = of(row);
    if (value !== null && value !== undefined && value !== '') counts.set(value, (counts.get(value) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}
