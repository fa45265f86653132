// Outputs compared by task: no page, no network.
import { isNumber } from './format.js';

function mean(rows, name) {
  const values = rows.map((row) => row[name]).filter(isNumber);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function cell(rows) {
  if (!rows || !rows.length) return null;
  return { key: rows[0].key, tries: rows.length, score: mean(rows, 'score'), steps: mean(rows, 'steps'),
    tokens: mean(rows, 'tokens'), money: mean(rows, 'money'), seconds: mean(rows, 'seconds'), output: rows[0].output };
}

/** better, worse, same, unknown or missing: the last output against the first, by score. */
export function outcome(cells) {
  const [first, last] = [cells[0], cells.at(-1)];
  if (!first || !last) return 'missing';
  if (!isNumber(first.score) || !isNumber(last.score)) return 'unknown';
  if (first.score === last.score) return 'same';
  return last.score > first.score ? 'better' : 'worse';
}

/** [{id, cells, outcome, tokens}] for the named sources; tries of a task are averaged. */
export function compareRows(rows, names) {
  const byTask = new Map();
  const texts = new Map();
  for (const row of rows) {
    const at = names.indexOf(row.source);
    if (at < 0) continue;
    if (!byTask.has(row.id)) byTask.set(row.id, names.map(() => []));
    if (!texts.has(row.id)) texts.set(row.id, row.task);
    byTask.get(row.id)[at].push(row);
  }
  return [...byTask].map(([id, lists]) => {
    const cells = lists.map(cell);
    const [first, last] = [cells[0], cells.at(-1)];
    const tokens = first && last && isNumber(first.tokens) && isNumber(last.tokens) ? last.tokens - first.tokens : null;
    return { id, text: texts.get(id), cells, outcome: outcome(cells), tokens };
  });
}

/** Sums of the tasks that all named outputs have. */
export function compareSums(tasks, names) {
  const common = tasks.filter((task) => task.cells.every(Boolean));
  const sums = names.map((name, at) => {
    const cells = common.map((task) => task.cells[at]);
    const total = (key) => cells.reduce((sum, one) => sum + (one[key] || 0), 0);
    return { name, score: mean(cells, 'score'), steps: total('steps'), tokens: total('tokens'), money: total('money'),
      seconds: total('seconds') };
  });
  const counts = { better: 0, worse: 0, same: 0, unknown: 0, missing: 0 };
  for (const task of tasks) counts[task.outcome] += 1;
  return { common: common.length, sums, counts };
}
