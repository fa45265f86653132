// Numbers and marks as people read them.
import { html } from '/static/ui.js';

const GROUPS = new Intl.NumberFormat('en-US');

export function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

export function count(value) {
  return isNumber(value) ? GROUPS.format(value) : '';
}

/** 1,234 or 56.7 k or 1.2 M. */
export function short(value) {
  if (!isNumber(value)) return '';
  if (Math.abs(value) < 10000) return GROUPS.format(Math.round(value));
  if (Math.abs(value) < 1e6) return `${(value / 1e3).toFixed(1)} k`;
  return `${(value / 1e6).toFixed(1)} M`;
}

export function money(value) {
  if (!isNumber(value)) return '';
  if (value === 0) return '$0';
  if (value < 0.001) return '< $0.001';
  return value < 1 ? `$${value.toFixed(3)}` : `$${GROUPS.format(Number(value.toFixed(2)))}`;
}

/** 12 ms, 3.4 s, 2 m 05 s, 1 h 02 m. */
export function seconds(value) {
  if (!isNumber(value)) return '';
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  if (value < 59.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const pad = (number) => String(number).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} m`;
}

export function percent(value) {
  return isNumber(value) ? `${Math.round(value * 100)} %` : '';
}

export function signed(value, write = short) {
  if (!isNumber(value)) return '';
  return `${value > 0 ? '+' : value < 0 ? '−' : '±'}${write(Math.abs(value))}`;
}

export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

const OPEN = new Set(['running', 'in_progress', 'pending']);

/** good, bad, warn or live: the tone of a status. */
export function statusTone(status, live) {
  if (live && (!status || OPEN.has(status))) return 'live';
  if (status === 'done') return 'good';
  if (status === 'failed' || status === 'error') return 'bad';
  return status ? 'warn' : '';
}

const SIGNS = { good: '✓', bad: '✕', warn: '!', live: '●' };

export function Status({ status, live }) {
  const tone = statusTone(status, live);
  const word = tone === 'live' ? 'running' : OPEN.has(status) ? 'interrupted' : status || 'unknown';
  return html`<span class=${`mark ${tone}`}>
    <span aria-hidden="true" class=${tone === 'live' ? 'pulse' : ''}>${SIGNS[tone] || '·'}</span>${word}</span>`;
}

export function Score({ score }) {
  if (!isNumber(score)) return html`<span class="muted">–<span class="hidden-text"> no score</span></span>`;
  const tone = score >= 1 ? 'good' : score > 0 ? 'warn' : 'bad';
  const text = Number.isInteger(score) ? String(score) : score.toFixed(2);
  return html`<span class=${`mark ${tone}`}><span aria-hidden="true">${SIGNS[tone]}</span>${text}</span>`;
}

/** The width of a bar in a cell of a table, within the cell's padding. */
export const barWidth = (value, most) => `calc((100% - 16px) * ${most ? (value || 0) / most : 0})`;
