// When the workers of a task were queued, at work, blocked or parked: a picture, and the same as a table.
import { get, segments } from './api.js';
import { html, useEffect, useRef, useState } from './dom.js';
import { NotYet, useFetched } from './pieces.js';
import { workerHref } from './router.js';
import { oneLine, plain } from './safe_text.js';
import { events, fleet, useTopics } from './store.js';
import { clock, costWords, counted, duration, endWords, shortNumber, signOf } from './words.js';

const AGAIN_MS = 2000;
const ROW = 26;
const LABEL_MOST = 250;
const STEPS = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200,
  86400, 172800, 604800,
];
const MOST_TICKS = 8;
/** @type {Sent.Shade[]} */
const SHADES = ['queued', 'running', 'blocked', 'parked'];
const MOST_ROWS = 2000;

/** @param {string} at */
const seconds = (at) => Date.parse(at) / 1000;

/** @param {number} length */
function ticksOf(length) {
  const step = STEPS.find((one) => length / one <= MOST_TICKS) ?? length / MOST_TICKS;
  const found = [];
  for (let at = 0; at <= length; at += step) found.push(at);
  return { step, found };
}

/**
 * @param {number} at
 * @param {number} step
 */
const tickWords = (at, step) => (at === 0 ? '0' : step < 1 ? `${at.toFixed(step < 0.1 ? 2 : 1)}s` : duration(at, true).replace(/m00s$/, 'm').replace(/h00m$/, 'h'));

/** @param {{ task: string, instance?: string | null }} props */
export function TimelineTab({ task, instance = null }) {
  const { data, error, isLoading } = useTimeline(task);
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  return html`<${Timeline} data=${data} task=${task} instance=${instance} />`;
}

/**
 * The timeline of a task, fetched again while it is not over.
 * @param {string} task
 */
function useTimeline(task) {
  useTopics('events');
  const [isOpen, setOpen] = useState(true);
  const came = events.lastSeq.get(task);
  const found = useFetched(/** @returns {Promise<Sent.Timeline>} */ () => get(`/tasks/${segments(task)}/timeline`), [task], isOpen ? AGAIN_MS : 0);
  useEffect(() => {
    if (found.data) setOpen(Boolean(found.data.open));
  }, [found.data]);
  useEffect(() => {
    if (came && !isOpen) found.again();
  }, [came]);
  return found;
}

/**
 * Which rows belong to a worker: it, and those below it.
 * @param {Sent.TimelineRow[]} workers
 * @param {string | null} instance
 */
function rowsOf(workers, instance) {
  if (!instance) return workers;
  const at = workers.findIndex((one) => one.agentInstance === instance);
  if (at < 0) return [];
  let end = at + 1;
  while (end < workers.length && workers[end].depth > workers[at].depth) end += 1;
  return workers.slice(at, end);
}

/** @param {{ data: Sent.Timeline, task: string, instance: string | null }} props */
function Timeline({ data, task, instance }) {
  const box = useRef(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const all = rowsOf(data.workers ?? [], instance);
  const rows = all.slice(0, MOST_ROWS);
  const isNarrow = width < 560;
  const labelWidth = isNarrow ? 0 : Math.min(LABEL_MOST, width * 0.26);
  const right = isNarrow ? 0 : 150;
  const rowHeight = isNarrow ? 40 : ROW;
  const barTop = isNarrow ? 17 : 0;
  const begin = instance && rows[0] ? seconds(rows[0].from) : seconds(data.from);
  const end = instance && rows[0] ? Math.max(...rows.map((one) => seconds(one.to))) : seconds(data.to);
  const length = Math.max(0.001, end - begin);
  const room = Math.max(80, width - labelWidth - right - 8);
  /** @param {string} at */
  const x = (at) => labelWidth + (Math.min(Math.max(seconds(at), begin), end) - begin) / length * room;
  const { step, found: ticks } = ticksOf(length);
  const top = 24;
  const height = top + rows.length * rowHeight + 6;
  /** @param {{ taskId: string, agentInstance: string }} one */
  const keyOf = (one) => `${one.taskId}/${one.agentInstance}`;
  const places = new Map(rows.map((one, at) => [keyOf(one), at]));
  /** @param {{ taskId: string, agentInstance: string }} one */
  const path = (data.criticalPath ?? []).filter((one) => places.has(keyOf(one)));
  // From the end of what a worker waited for to its start.
  const arrows = rows.flatMap((one, at) => (one.after ?? []).flatMap((other) => {
    const from = places.get(keyOf(other));
    return from === undefined || !one.startedAt ? [] : [{ from, to: at, x: x(rows[from].to), start: x(one.startedAt) }];
  }));
  /** @param {number} at */
  const middle = (at) => top + at * rowHeight + barTop + (rowHeight - barTop) / 2;
  const tokens = data.total?.tokens ?? 0;
  const cost = costWords(data.total?.costUsd);
  return html`<div class="timeline">
    <p class="facts-line">${!instance && html`<strong>${duration(length)}</strong>`}<span>from ${clock(data.from)}</span>${data.open && html`<span class="running">still open</span>`}
      <span>${counted(all.length, 'worker')}</span>${!instance && tokens > 0 && html`<span>${data.total?.atLeast?.includes('tokens') ? '≥' : ''}${shortNumber(tokens)} tokens</span>`}${!instance && cost && html`<span>${cost}</span>`}</p>
    <ul class="legend" aria-label="Shades">${SHADES.map((shade) => html`<li key=${shade}><svg width="26" height="14" aria-hidden="true"><${Piece} shade=${shade} x=${1} width=${24} y=${0} height=${14} /></svg>${shade}</li>`)}
      <li><svg width="26" height="14" aria-hidden="true"><rect class="critical" x="1.5" y="1.5" width="23" height="11" rx="2" /></svg>critical path</li></ul>
    <div class="picture" ref=${box}>
      <svg width=${width} height=${height} role="group" aria-label=${`Timeline of ${counted(rows.length, 'worker')} over ${duration(length)}; the table below has the same`}>
        ${ticks.map((at) => html`<g key=${at}><line class="grid" x1=${labelWidth + at / length * room} x2=${labelWidth + at / length * room} y1=${top - 4} y2=${height - 6} />
          <text class="tick" x=${labelWidth + at / length * room} y="13" text-anchor=${at === 0 ? 'start' : 'middle'}>${tickWords(at, step)}</text></g>`)}
        ${arrows.slice(0, 400).map((one, at) => html`<path key=${at} class="after" d=${`M${one.x} ${middle(one.from)} V${middle(one.to)} H${one.start}`} />`)}
        ${rows.map((one, at) => html`<${Bar} key=${keyOf(one)} row=${one} y=${top + at * rowHeight} x=${x} labelWidth=${labelWidth} width=${width} rowHeight=${rowHeight} barTop=${barTop} isForeign=${one.taskId !== task} isNarrow=${isNarrow} />`)}
        ${path.map((one, at) => html`<rect key=${`c${at}`} class="critical" x=${x(one.from)} y=${top + (places.get(keyOf(one)) ?? 0) * rowHeight + barTop + 4} width=${Math.max(2, x(one.to) - x(one.from))} height=${rowHeight - barTop - 8} rx="2"><title>critical path: ${plain(one.because)}</title></rect>`)}
        ${data.open && html`<line class="now" x1=${labelWidth + room} x2=${labelWidth + room} y1=${top - 6} y2=${height - 4} />`}
      </svg>
    </div>
    ${all.length > rows.length && html`<p class="quiet">The first ${rows.length} of ${all.length} workers are drawn.</p>`}
    <details class="as-table"><summary>As a table</summary><div class="table-box"><table>
      <thead><tr><th>Worker</th><th>State</th><th>From</th><th>Started</th><th class="number">Queued</th><th class="number">Running</th><th class="number">Blocked</th><th class="number">Parked</th><th class="number">Tokens</th><th class="number">Cost</th><th>Critical</th></tr></thead>
      <tbody>${rows.map((one) => html`<tr key=${keyOf(one)}><td class="foreign"><a href=${workerHref(one.taskId, one.agentInstance)}>${plain(one.agentInstance)}</a></td><td>${endWords(one)}</td><td>${clock(one.from)}</td><td>${one.startedAt ? clock(one.startedAt) : ''}</td>
        ${SHADES.map((shade) => html`<td class="number" key=${shade}>${timeIn(one, shade)}</td>`)}<td class="number">${one.tokens ? shortNumber(one.tokens) : ''}</td><td class="number">${costWords(one.costUsd)}</td><td>${one.critical ? 'yes' : ''}</td></tr>`)}</tbody>
    </table></div></details>
  </div>`;
}

/**
 * @param {Sent.TimelineRow} row
 * @param {Sent.Shade} shade
 */
function timeIn(row, shade) {
  /**
   * @param {{ taskId: string, agentInstance: string }} one
   * @param {number} total
   * @param {{ taskId: string, agentInstance: string }} one
   */
  const pieces = (row.pieces ?? []).filter((one) => one.shade === shade);
  const sum = pieces.reduce((total, one) => total + seconds(one.to) - seconds(one.from), 0);
  return sum ? duration(sum) : '';
}

/**
 * @param {{ row: Sent.TimelineRow, y: number, x: (at: string) => number, labelWidth: number, width: number,
 *   rowHeight: number, barTop: number, isForeign: boolean, isNarrow: boolean }} props
 */
function Bar({ row, y, x, labelWidth, width, rowHeight, barTop, isForeign, isNarrow }) {
  const sign = signOf(fleet.workers.get(`${row.taskId}/${row.agentInstance}`) ?? row);
  const indent = Math.min(row.depth ?? 0, 8) * 12;
  const name = oneLine(row.agentInstance, 64);
  const most = isNarrow ? Math.floor(width / 8) : Math.max(4, Math.floor((labelWidth - indent - 24) / 7.4));
  const full = `${isForeign ? `${plain(row.taskId)}/` : ''}${name}`;
  const height = rowHeight - barTop;
  const last = row.pieces?.[row.pieces.length - 1];
  return html`<g class="bar-row">
    <rect class="hover" x="0" y=${y} width=${width} height=${rowHeight}><title>${`${plain(row.taskId)}/${plain(row.agentInstance)}: ${endWords(row)}${row.command ? `\n${oneLine(row.command)}` : ''}`}</title></rect>
    <a href=${workerHref(row.taskId, row.agentInstance)}>
      <text class=${`sign-text ${sign.role}`} x=${2 + indent} y=${y + (isNarrow ? 14 : 17)}>${sign.glyph}</text>
      <text class="label" x=${18 + indent} y=${y + (isNarrow ? 14 : 17)}>${full.length > most ? `${full.slice(0, most - 1)}…` : full}</text></a>
    ${(row.pieces ?? []).map((piece, at) => html`<${Piece} key=${at} shade=${piece.shade} x=${x(piece.from)} width=${Math.max(1.5, x(piece.to) - x(piece.from))} y=${y + barTop} height=${height} attempt=${piece.attempt > 1 && piece.shade === 'running' ? piece.attempt : 0} />`)}
    ${last && row.status === 'failed' && html`<text class="end failed" x=${Math.min(x(last.to) + 4, width - 12)} y=${y + barTop + height / 2 + 5}>✗</text>`}
    ${!isNarrow && html`<text class="figure" x=${width - 90} y=${y + 17} text-anchor="end">${row.tokens ? shortNumber(row.tokens) : ''}</text>
      <text class="figure" x=${width - 48} y=${y + 17} text-anchor="end">${row.costUsd ? costWords(row.costUsd) : ''}</text>
      <text class="figure" x=${width - 2} y=${y + 17} text-anchor="end">${duration(seconds(row.to) - seconds(row.from))}</text>`}
  </g>`;
}

/** @param {{ shade: Sent.Shade, x: number, width: number, y: number, height: number, attempt?: number }} props */
function Piece({ shade, x, width, y, height, attempt = 0 }) {
  const middle = y + height / 2;
  if (shade === 'queued') return html`<rect class="piece queued-piece" x=${x} width=${width} y=${middle - 1} height="2" />`;
  if (shade === 'parked') return html`<rect class="piece parked-piece" x=${x} width=${width} y=${middle - 3} height="6" />`;
  const inset = Math.min(6, height / 4);
  return html`<rect class=${`piece ${shade}-piece`} x=${x} width=${width} y=${y + inset} height=${height - 2 * inset} rx="1.5" />
    ${attempt > 1 && width > 16 && html`<text class="attempt" x=${x + 4} y=${middle + 4}>${attempt}</text>`}`;
}
