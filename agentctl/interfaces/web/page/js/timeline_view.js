// When the workers of a task were queued, at work, blocked or parked: a picture, and the same as a table.
import { get, segments } from './api.js';
import { html, stamped, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useScrollKeys } from './following.js';
import { NotYet, useFetched } from './pieces.js';
import { workerHref } from './router.js';
import { RowPlaces } from './row_heights.js';
import { oneLine, plain } from './safe_text.js';
import { events, fleet, useTopics } from './store.js';
import { axisFor, rowKey, rowsNow, withNew } from './timeline_state.js';
import { useNear, VirtualTable } from './virtual_rows.js';
import { clock, costWords, counted, duration, endWords, shortNumber, signOf } from './words.js';

/** @import { Column } from './virtual_rows.js' */

/** So often the log itself is asked: for the critical path, and for instants to the millisecond. */
const AGAIN_MS = 60_000;
const ROW = 26;
const LABEL_MOST = 250;
const STEPS = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200,
  86400, 172800, 604800,
];
const MOST_TICKS = 8;
/** @type {Sent.Shade[]} */
const SHADES = ['queued', 'running', 'blocked', 'parked'];
const MOST_ARROWS = 400;
const NO_HEIGHTS = new Map();

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
  useScrollKeys();
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  return html`<${Timeline} data=${data} task=${task} instance=${instance} />`;
}

/**
 * What was fetched, when, and the rows as they have become since.
 * @typedef {{ base: Sent.Timeline | null, at: number, shape: number, rows: Sent.TimelineRow[] }} Known
 */

/**
 * The timeline of a task: fetched, and from then on as the stream says.
 * @param {string} task
 * @returns {{ data: Sent.Timeline | null, error: Refused | null, isLoading: boolean }}
 */
function useTimeline(task) {
  useTopics('fleet', 'now', 'events');
  const [isOpen, setOpen] = useState(false);
  const load = /** @returns {Promise<Sent.Timeline>} */ () => get(`/tasks/${segments(task)}/timeline`);
  const found = useFetched(load, [task], isOpen ? AGAIN_MS : 0, [events.epoch]);
  const state = useRef(/** @type {Known} */ ({ base: null, at: 0, shape: -1, rows: [] }));
  const { current } = state;
  const base = found.data;
  if (base && current.base !== base) {
    Object.assign(current, { base, at: performance.now(), shape: -1, rows: base.workers ?? [] });
  }
  const wasOpen = current.rows.some((one) => one.open);
  const to = base ? new Date(Date.parse(base.to) + (wasOpen ? performance.now() - current.at : 0)).toISOString() : '';
  if (base && fleet.isKnown && current.shape !== fleet.shape) {
    current.shape = fleet.shape;
    current.rows = withNew(current.rows, workersBelow(task), to);
  }
  if (base) current.rows = rowsNow(current.rows, fleet.workers, to);
  const open = current.rows.some((one) => one.open);
  useEffect(() => {
    if (isOpen && !open) found.again(); // What was critical is known at the end.
    setOpen(open);
  }, [open]);
  const data = base && { ...base, to: wasOpen ? to : base.to, open, workers: current.rows };
  return { ...found, data };
}

/**
 * The workers of a task and of those below it.
 * @param {string} task
 */
function workersBelow(task) {
  /** @param {string | null | undefined} id */
  const isBelow = (id) => {
    for (let depth = 0; id && depth < 64; depth += 1) {
      if (id === task) return true;
      id = fleet.tasks.get(id)?.parent;
    }
    return false;
  };
  const tasks = new Set([...fleet.tasks.keys()].filter(isBelow));
  return [...fleet.workers.values()].filter((one) => tasks.has(one.taskId) && !one.observed);
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
  const rows = rowsOf(data.workers ?? [], instance);
  const isNarrow = width < 560;
  const labelWidth = isNarrow ? 0 : Math.min(LABEL_MOST, width * 0.26);
  const right = isNarrow ? 0 : 150;
  const rowHeight = isNarrow ? 40 : ROW;
  const barTop = isNarrow ? 17 : 0;
  const list = useRef(null);
  const places = useRef(new RowPlaces([], NO_HEIGHTS, rowHeight));
  if (places.current.count !== rows.length || places.current.estimate !== rowHeight) {
    places.current = new RowPlaces(rows, NO_HEIGHTS, rowHeight);
  }
  const { range, look } = useNear(list, places);
  useLayoutEffect(look);
  const first = Math.max(0, range[0]);
  const near = rows.slice(first, Math.max(first, range[1]));
  const begin = instance && rows[0] ? seconds(rows[0].from) : seconds(data.from);
  const latest = () => rows.reduce((found, one) => Math.max(found, seconds(one.to)), 0);
  const end = instance && rows[0] ? latest() : seconds(data.to);
  const length = Math.max(0.001, end - begin);
  const axis = data.open ? axisFor(length) : length;
  const room = Math.max(80, width - labelWidth - right - 8);
  /** @param {string} at */
  const x = (at) => labelWidth + (Math.min(Math.max(seconds(at), begin), begin + axis) - begin) / axis * room;
  const { step, found: ticks } = ticksOf(axis);
  const top = 24;
  const height = top + rows.length * rowHeight + 6;
  /** What each bar is drawn by: while it is the same, a bar that does not grow stays as it is. */
  const scale = [begin, axis, width, labelWidth, rowHeight].join(' ');
  const indices = useIndices(rows);
  /**
   * Whether anything between two rows is near the screen.
   * @param {number} one
   * @param {number} other
   */
  const isNear = (one, other) => Math.max(one, other) >= range[0] && Math.min(one, other) <= range[1];
  const path = (data.criticalPath ?? []).flatMap((one) => {
    const at = indices.get(rowKey(one));
    if (at === undefined || !isNear(at, at)) return [];
    // What is critical at its end goes on with its worker.
    const isGoingOn = one === data.criticalPath?.at(-1) && rows[at].open;
    return [{ ...one, at, to: isGoingOn ? rows[at].to : one.to }];
  });
  // From the end of what a worker waited for to its start.
  const arrows = near.flatMap((one, offset) => (one.after ?? []).flatMap((other) => {
    const from = indices.get(rowKey(other));
    if (from === undefined || !one.startedAt) return [];
    return [{ from, to: first + offset, x: x(rows[from].to), start: x(one.startedAt) }];
  }));
  /** @param {number} at */
  const middle = (at) => top + at * rowHeight + barTop + (rowHeight - barTop) / 2;
  const now = labelWidth + Math.min(1, length / axis) * room;
  return html`<div class="timeline">
    <p class="facts-line">${!instance && html`<strong>${duration(length)}</strong>`}<span>from ${clock(data.from)}</span>${data.open && html`<span class="running">still open</span>`}
      ${instance && html`<span>${counted(rows.length, 'worker')}</span>`}</p>
    <ul class="legend" aria-label="Shades">${SHADES.map((shade) => html`<li key=${shade}><svg width="26" height="14" aria-hidden="true"><${Piece} shade=${shade} x=${1} width=${24} y=${0} height=${14} /></svg>${shade}</li>`)}
      <li><svg width="26" height="14" aria-hidden="true"><rect class="critical" x="1.5" y="1.5" width="23" height="11" rx="2" /></svg>critical path</li></ul>
    <div class="picture" ref=${box}>
      <svg ref=${list} width=${width} height=${height} role="group" aria-label=${`Timeline of ${counted(rows.length, 'worker')}; the table below has the same`}>
        ${ticks.map((at) => html`<g key=${`t${at}`}><line class="grid" x1=${labelWidth + at / axis * room} x2=${labelWidth + at / axis * room} y1=${top - 4} y2=${height - 6} />
          <text class="tick" x=${labelWidth + at / axis * room} y="13" text-anchor=${at === 0 ? 'start' : 'middle'}>${tickWords(at, step)}</text></g>`)}
        ${arrows.slice(0, MOST_ARROWS).map((one, at) => html`<path key=${`a${at}`} class="after" d=${`M${one.x} ${middle(one.from)} V${middle(one.to)} H${one.start}`} />`)}
        ${near.map((one, offset) => html`<${Bar} key=${rowKey(one)} row=${one} stamp=${stampOf(one, first + offset, scale)} y=${top + (first + offset) * rowHeight} x=${x} labelWidth=${labelWidth} width=${width} rowHeight=${rowHeight} barTop=${barTop} isForeign=${one.taskId !== task} isNarrow=${isNarrow} />`)}
        ${path.map((one) => html`<rect key=${`c${rowKey(one)} ${one.from}`} class="critical" x=${x(one.from)} y=${top + one.at * rowHeight + barTop + 4} width=${Math.max(2, x(one.to) - x(one.from))} height=${rowHeight - barTop - 8} rx="2"><title>critical path: ${plain(one.because)}</title></rect>`)}
        ${data.open && html`<line class="now" x1=${now} x2=${now} y1=${top - 6} y2=${height - 4} />`}
      </svg>
    </div>
    <${AsTable} rows=${rows} />
  </div>`;
}

/** @type {Column<Sent.TimelineRow>[]} */
const COLUMNS = [
  { head: 'Worker', cell: (one) => html`<a class="foreign" href=${workerHref(one.taskId, one.agentInstance)}>${plain(one.agentInstance)}</a>` },
  { head: 'State', cell: (one) => endWords(one) },
  { head: 'From', cell: (one) => clock(one.from) },
  { head: 'Started', cell: (one) => (one.startedAt ? clock(one.startedAt) : '') },
  ...SHADES.map((shade) => /** @type {Column<Sent.TimelineRow>} */ ({
    head: shade[0].toUpperCase() + shade.slice(1), isNumber: true, cell: (one) => timeIn(one, shade),
  })),
  { head: 'Tokens', isNumber: true, cell: (one) => (one.tokens ? shortNumber(one.tokens) : '') },
  { head: 'Cost', isNumber: true, cell: (one) => costWords(one.costUsd) },
  { head: 'Critical', cell: (one) => (one.critical ? 'yes' : '') },
];
const WIDTHS = 'minmax(130px, 2fr) minmax(90px, 1.4fr) 74px 74px repeat(4, 70px) 64px 64px 56px';

/** @param {{ rows: Sent.TimelineRow[] }} props */
function AsTable({ rows }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class="as-table" onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>As a table</summary>
    ${isOpen && html`<${VirtualTable} label="Timeline" rows=${rows} keyOf=${rowKey} columns=${COLUMNS} widths=${WIDTHS} />`}</details>`;
}

/**
 * Where each row is, by its key; worked out anew only if there are others.
 * @param {Sent.TimelineRow[]} rows
 * @returns {Map<string, number>}
 */
function useIndices(rows) {
  const known = useRef({ rows, indices: new Map() });
  const { rows: was, indices } = known.current;
  /**
   * @param {Sent.TimelineRow} one
   * @param {number} at
   */
  const isThere = (one, at) => one.agentInstance === was[at].agentInstance && one.taskId === was[at].taskId;
  const isSame = indices.size === rows.length && was.length === rows.length && rows.every(isThere);
  known.current = { rows, indices: isSame ? indices : new Map(rows.map((one, at) => [rowKey(one), at])) };
  return known.current.indices;
}

/**
 * What a bar is drawn by.
 * @param {Sent.TimelineRow} row
 * @param {number} at
 * @param {string} scale
 */
function stampOf(row, at, scale) {
  const worker = fleet.workers.get(rowKey(row));
  const sign = signOf(worker ?? row);
  return [scale, at, row.to, row.open, row.pieces?.length, row.tokens, row.costUsd, sign.role, sign.glyph].join(' ');
}

/**
 * @param {Sent.TimelineRow} row
 * @param {Sent.Shade} shade
 */
function timeIn(row, shade) {
  const pieces = (row.pieces ?? []).filter((one) => one.shade === shade);
  const sum = pieces.reduce((total, one) => total + seconds(one.to) - seconds(one.from), 0);
  return sum ? duration(sum) : '';
}

/**
 * @typedef {{ row: Sent.TimelineRow, y: number, x: (at: string) => number, labelWidth: number, width: number,
 *   rowHeight: number, barTop: number, isForeign: boolean, isNarrow: boolean, stamp: string }} BarProps
 */
const Bar = stamped(/** @param {BarProps} props */ (props) => {
  const { row, y, x, labelWidth, width, rowHeight, barTop, isForeign, isNarrow } = props;
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
});

/** @param {{ shade: Sent.Shade, x: number, width: number, y: number, height: number, attempt?: number }} props */
function Piece({ shade, x, width, y, height, attempt = 0 }) {
  const middle = y + height / 2;
  if (shade === 'queued') return html`<rect class="piece queued-piece" x=${x} width=${width} y=${middle - 1} height="2" />`;
  if (shade === 'parked') return html`<rect class="piece parked-piece" x=${x} width=${width} y=${middle - 3} height="6" />`;
  const inset = Math.min(6, height / 4);
  return html`<rect class=${`piece ${shade}-piece`} x=${x} width=${width} y=${y + inset} height=${height - 2 * inset} rx="1.5" />
    ${attempt > 1 && width > 16 && html`<text class="attempt" x=${x + 4} y=${middle + 4}>${attempt}</text>`}`;
}
