// When the model, code and pages worked: a lane per agent, gaps stay empty.
import { html, useEffect, useMemo, useRef, useState } from '/static/ui.js';
import { visible } from '/static/inert.js';
import { percent, seconds } from './format.js';
import { lanesOf, startSpans, tickName, ticks, timeByKind } from './timeline_lanes.js';

const LANE = 17; // pixels
const AXIS = 20;
const TALL = 9; // lanes in view; more scroll
const NAMES = {
  model: 'Model', code: 'Code', page: 'Page', call: 'Other calls', start: 'Start of agents', gap: 'Gaps',
};
const HINTS = {
  start: 'From the start of an agent to its first step: its browser and worker start',
  gap: 'Nothing is recorded: the work between model calls, code and page, or a wait',
};
const COLOURS = ['model', 'code', 'page', 'other', 'line', 'line-strong', 'muted', 'raised', 'accent-soft', 'accent'];
const INSET = { code: 2, call: 5, page: 5, model: 2, start: 6 };
const ORDER = { code: 0, call: 1, page: 2, model: 3 };

function colours() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement('span');
  document.body.append(probe);
  const found = {};
  for (const name of COLOURS) {
    probe.style.color = style.getPropertyValue(`--${name}`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return { ...found, call: found.other, start: found['line-strong'] };
}

function drawAxis(pen, { from, to, width, height, x, paint }) {
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.fillStyle = paint.muted;
  pen.strokeStyle = paint.line;
  for (const at of ticks(from, to, Math.max(2, Math.floor(width / 110)))) {
    const left = Math.round(x(at)) + 0.5;
    pen.beginPath();
    pen.moveTo(left, 0);
    pen.lineTo(left, height);
    pen.stroke();
    if (left < width - 30) pen.fillText(tickName(at), left + 4, AXIS / 2);
  }
}

function draw(canvas, { lanes, agents, from, to, sid, step }) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = AXIS + lanes.length * LANE;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  const paint = colours();
  const x = (at) => ((at - from) / (to - from || 1)) * width;
  drawAxis(pen, { from, to, width, height, x, paint });
  lanes.forEach((lane, number) => {
    const top = AXIS + number * LANE;
    for (const { session, start, end } of lane.sessions) {
      pen.fillStyle = session.sid === sid ? paint['accent-soft'] : paint.raised;
      pen.fillRect(x(start), top + 1, Math.max(1, x(end) - x(start)), LANE - 2);
    }
    for (const span of lane.sorted) {
      const left = x(span.start);
      const wide = Math.max(1, x(span.start + (span.seconds || 0)) - left);
      if (left > width || left + wide < 0) continue;
      const waits = span.kind === 'call' && agents.has(span.name); // for a sub-agent in another lane
      const inset = waits ? LANE / 2 - 1 : INSET[span.kind] ?? 5;
      pen.fillStyle = paint[span.kind] || paint.other;
      pen.globalAlpha = span.kind === 'code' ? 0.45 : 1;
      pen.fillRect(left, top + inset, wide, LANE - 2 * inset);
      pen.globalAlpha = 1;
      if (span.sid === sid && span.step === step) {
        pen.fillStyle = paint.accent;
        pen.fillRect(left, top + LANE - 3, Math.max(2, wide), 3);
      }
    }
  });
}

function useRedraw(canvas, picture, inputs) {
  useEffect(() => {
    let pending = 0;
    const paint = () => {
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => { if (canvas.current) draw(canvas.current, picture); });
    };
    paint();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const theme = new MutationObserver(paint);
    const size = new ResizeObserver(paint);
    dark.addEventListener('change', paint);
    theme.observe(document.documentElement, { attributes: true });
    size.observe(canvas.current);
    return () => {
      dark.removeEventListener('change', paint);
      theme.disconnect();
      size.disconnect();
      cancelAnimationFrame(pending);
    };
  }, inputs);
}

/** The span or session under a point of the canvas. */
function hit(event, { lanes, from, to }) {
  const box = event.currentTarget.getBoundingClientRect();
  const lane = lanes[Math.floor((event.clientY - box.top - AXIS) / LANE)];
  if (!lane) return null;
  const scale = (to - from) / box.width;
  const at = from + (event.clientX - box.left) * scale;
  const slack = 2 * scale;
  const span = lane.sorted.findLast((one) => one.start - slack <= at && at <= one.start + (one.seconds || 0) + slack);
  const owner = lane.sessions.find((one) => one.start - slack <= at && at <= one.end + slack);
  return span || owner ? { span, session: owner?.session } : null;
}

function Legend({ times, end, lanes }) {
  const parts = Object.entries(NAMES).filter(([kind]) => times[kind] >= 0.0005);
  return html`<ul class="legend" aria-label="Time by kind">
    <li><strong>${seconds(end)}</strong>${lanes > 1 ? ` in ${lanes} lanes` : ''}</li>
    ${parts.map(([kind, name]) => html`<li key=${kind} title=${HINTS[kind]}><span class=${`swatch swatch-${kind}`}
      aria-hidden="true"></span>${name}
      ${' '}<strong>${seconds(times[kind])}</strong> <span
        class="muted">${percent(times[kind] / end)}</span></li>`)}</ul>`;
}

function Tip({ tip }) {
  if (!tip) return null;
  const { span, session } = tip.found;
  return html`<div class="tip" style=${{ left: `${tip.x}px`, top: `${tip.y}px` }}>
    ${span ? html`<strong>${visible(span.name || span.kind)}</strong> ${seconds(span.seconds)}<br />` : ''}
    ${visible(session?.agent)}${span && span.step !== undefined ? html`, step ${span.step}` : ''}</div>`;
}

/** {zoom, scale, pan}: the part of the time in view, from 0 to 1. */
function useZoom() {
  const [zoom, setZoom] = useState([0, 1]);
  const width = zoom[1] - zoom[0];
  const show = (start, wide) => {
    const from = Math.min(1 - wide, Math.max(0, start));
    setZoom([from, from + wide]);
  };
  const scale = (factor, centre = (zoom[0] + zoom[1]) / 2) => {
    const wide = Math.min(1, width * factor);
    show(centre - (wide * (centre - zoom[0])) / width, wide);
  };
  return { zoom, scale, pan: (share) => show(zoom[0] + share * width, width) };
}

function ZoomButtons({ zoom, scale, pan }) {
  const button = (name, sign, press, disabled) => html`<button type="button" class="icon" aria-label=${name}
    title=${name} disabled=${disabled} onClick=${press}>${sign}</button>`;
  return html`<span class="zoom" role="group" aria-label="Zoom">
    ${button('Earlier', '‹', () => pan(-0.5), zoom[0] <= 0)}${button('Later', '›', () => pan(0.5), zoom[1] >= 1)}
    ${button('Zoom out', '−', () => scale(2), zoom[1] - zoom[0] >= 1)}${button('Zoom in', '+', () => scale(0.5), false)}
  </span>`;
}

function pictureOf(run) {
  const recorded = (run.timeline || []).filter((one) => typeof one.start === 'number');
  if (!recorded.length && run.sessions.some((one) => one.steps.length)) return { lanes: [] }; // rows have no times
  const spans = [...recorded, ...startSpans(run.sessions, recorded)];
  const { lanes, end } = lanesOf(run.sessions, spans);
  for (const lane of lanes) {
    lane.sorted = lane.spans.sort((a, b) => (ORDER[a.kind] ?? 1) - (ORDER[b.kind] ?? 1) || a.start - b.start);
  }
  const agents = new Set(run.sessions.map((one) => one.agent));
  return { lanes, end, agents, times: timeByKind(run.sessions, spans, end) };
}

function Canvas({ picture, open, zooming, inputs, setTip }) {
  const canvas = useRef(null);
  useRedraw(canvas, picture, inputs);
  const { zoom, scale, pan } = zooming;
  const move = (event) => {
    const found = hit(event, picture);
    const box = event.currentTarget.closest('.timeline').getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 12, box.width - 240);
    setTip(found && { found, x, y: event.clientY - box.top + 14 });
  };
  const press = (event) => {
    const found = hit(event, picture);
    if (found?.span) open(found.span.sid, found.span.step);
    else if (found) open(found.session.sid);
  };
  const wheel = (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const at = zoom[0] + (event.offsetX / canvas.current.clientWidth) * (zoom[1] - zoom[0]);
    if (event.shiftKey) pan((event.deltaY || event.deltaX) / 800);
    else scale(event.deltaY > 0 ? 1.25 : 0.8, at);
  };
  const { length } = picture.lanes;
  return html`<canvas ref=${canvas} role="img" style=${{ height: `${AXIS + length * LANE}px` }} onPointerMove=${move}
    onPointerLeave=${() => setTip(null)} onClick=${press} onWheel=${wheel}
    aria-label=${`Timeline of ${length} lanes; the tree lists the same steps`}></canvas>`;
}

/** The timeline; `open(sid, step)` shows a step. */
export function Timeline({ run, sid, step, open }) {
  const zooming = useZoom();
  const [tip, setTip] = useState(null);
  const { lanes, end, agents, times } = useMemo(() => pictureOf(run), [run]);
  if (!lanes.length || !end) return html`<p class="muted timeline-none">No times: there is no journal.</p>`;
  const picture = { lanes, agents, from: zooming.zoom[0] * end, to: zooming.zoom[1] * end, sid, step };
  const scrolls = lanes.length > TALL;
  return html`<section class="timeline" aria-label="Timeline">
    <div class="timeline-head"><${Legend} times=${times} end=${end} lanes=${lanes.length} />
      <${ZoomButtons} ...${zooming} /></div>
    <div class="timeline-box scroll" style=${{ maxHeight: `${AXIS + TALL * LANE}px` }}
      tabindex=${scrolls ? 0 : undefined}
      role=${scrolls ? 'group' : undefined} aria-label=${scrolls ? 'Lanes' : undefined}>
      <${Canvas} picture=${picture} open=${open} zooming=${zooming} setTip=${setTip}
        inputs=${[run, zooming.zoom, sid, step]} /></div>
    <${Tip} tip=${tip} />
  </section>`;
}
