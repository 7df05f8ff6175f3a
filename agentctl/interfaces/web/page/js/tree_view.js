// The tree: every task with its sub-tasks, workers, and the sub-agents that agent programs start by themselves.
import { get, workerPath } from './api.js';
import { focused, html, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { filterOf } from './filtering.js';
import { ITEM_SIGNS, itemLabel } from './item_words.js';
import { keepHere, keptHere, ofEachRoot } from './kept.js';
import { isBound, isField, sayWhy, useKeys } from './keys.js';
import { marks, noSelection, toggleMark, useMarking } from './marking.js';
import { waitedFor } from './outstanding.js';
import { NotHere, Sign, WorkerTime } from './pieces.js';
import { go, route, taskHref, workerHref } from './router.js';
import { oneLine, plain } from './safe_text.js';
import { reveal, useLastScroll, useStaying } from './scrolling.js';
import { about, changed, fleet, isLive, partsOf, useTopics, whyNobody } from './store.js';
import { aliveOf, belowOf, countsOf, itemLines, linesOf } from './tree_order.js';
import {
  costWords, duration, holdWords, saidOf, secondsSince, shortNumber, signOf, signOfTask, table, tokensOf,
} from './words.js';
import { useRowHeight, VirtualRows } from './virtual_rows.js';
import { useWorkerKeys } from './worker_keys.js';

/** @import { Line, ShownLine, WorkerLine } from './tree_order.js' */

const OPENED = 'tree';
const FETCH_MS = 1500;
const TYPING_MS = 1000;
/** So many are fetched at a time: all lines of a large tree can be opened by one key. */
const MOST_LOADS = 4;

/** The ids of open lines; of those that a person has folded with a `~`, and while there is a filter with a `-`. */
/** @type {() => Set<string>} */
const opened = ofEachRoot(() => new Set(keptHere(OPENED, [])));
const keepOpened = () => keepHere(OPENED, [...opened()].slice(-500));
const cursor = { id: '' };
/** How high lines are, so that the tree comes back with its place. */
const heights = new Map();
/**
 * The items of opened workers; `status`: that of the worker when they were asked for, `at`: when that was.
 * @type {Map<string, { items: Sent.Item[], error?: Refused, at: number, status?: string, isLoading?: boolean }>}
 */
const items = new Map();

const TYPE_SIGNS = table({ message: '“', thought: '…', note: '*', progress: '%', question: '?' });
const COUNT_SIGNS = [
  ['blocked', '?', 'blocked'], ['running', '●', 'running'], ['paused', '‖', 'paused'], ['queued', '·', 'queued'],
  ['failed', '✗', 'failed'], ['completed', '✓', 'completed'], ['cancelled', '-', 'cancelled'],
];

/** The workers of which a line, or that of an item, is near the screen. */
const visibleKeys = () => {
  const rows = [...document.querySelectorAll('.tree-row[data-id]')];
  return new Set(rows.map((row) => row.getAttribute('data-id')?.split(':')[1]));
};

/**
 * Fetch the items of opened workers: at once, and again while they work.
 * @param {string[]} keys
 */
function useItems(keys) {
  const [, draw] = useState(0);
  const wanted = useRef(keys);
  wanted.current = keys;
  for (const key of items.keys()) if (!keys.includes(key)) items.delete(key);
  useEffect(() => {
    let isOver = false;
    let loads = 0;
    /**
     * @param {string} key
     * @param {string | undefined} status
     */
    const load = async (key, status) => {
      const known = items.get(key) ?? { items: [], at: 0 };
      if (known.isLoading) return;
      loads += 1;
      items.set(key, { ...known, isLoading: true, at: Date.now() });
      try {
        /** @returns {Promise<{ items?: Sent.Item[] }>} */
        const ask = () => get(workerPath(...partsOf(key), 'tree'));
        const found = await (known.at ? ask() : waitedFor(ask));
        const shown = (found.items ?? []).filter((item) => item.id != null && item.depth !== 0);
        items.set(key, { items: shown, at: Date.now(), status });
      } catch (error) {
        items.set(key, { ...known, error, at: Date.now(), status: error.status ? status : undefined });
      }
      loads -= 1;
      if (isOver) return;
      draw((count) => count + 1);
      look();
    };
    const look = () => {
      if (document.hidden) return;
      const there = visibleKeys();
      for (const key of wanted.current) {
        if (!there.has(key) || loads >= MOST_LOADS) continue;
        const known = items.get(key);
        const worker = fleet.workers.get(key);
        const mayChange = worker && (isLive(worker) || known?.status !== worker.status);
        if (!known || (mayChange && Date.now() - known.at >= FETCH_MS)) load(key, worker?.status);
      }
    };
    look();
    const timer = setInterval(look, 500);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [keys.join(' ')]);
}

/**
 * Open what is alive, once: a line stays open behind its end, and folded if a person has folded it.
 * @param {Map<string, Map<string, number>>} counts
 */
function openAlive(counts) {
  const ids = aliveOf(counts).filter((id) => !opened().has(id) && !opened().has(`~${id}`));
  for (const id of ids) opened().add(id);
  if (ids.length) keepOpened();
}

export function TreeView() {
  useTopics('fleet', 'chosen', 'route');
  const rowHeight = useRowHeight(30, 48);
  const box = useRef(null);
  const [, draw] = useState(0);
  const wanted = useRef(false);
  const typed = useRef({ text: '', at: 0, isOn: false });
  const shows = filterOf(route.filter);
  /** @param {Line} line */
  const isOpen = (line) => opened().has(line.id) || Boolean(shows && line.kind !== 'item' && !opened().has(`-${line.id}`) && below.has(line.id));
  const below = belowOf(fleet.tasks, fleet.workers, shows);
  const counts = countsOf(below);
  if (!shows) openAlive(counts);
  const openKeys = [...opened()].filter((id) => id.startsWith('w:')).map((id) => id.slice(2))
    .filter((key) => fleet.workers.has(key));
  useItems(openKeys);
  const itemsBelow = new Map();
  for (const key of openKeys) {
    for (const [above, lines] of itemLines(key, items.get(key)?.items ?? [])) itemsBelow.set(above, lines);
  }
  /** @param {Line} line */
  const mayOpen = (line) => {
    if (line.kind !== 'worker' || !(line.worker.driver || line.worker.progress)) return false;
    const known = items.get(line.key);
    const isEmpty = known && known.at && !known.isLoading && !known.error && !known.items.length;
    return !isEmpty || isLive(line.worker);
  };
  const lines = linesOf(below, itemsBelow, isOpen, mayOpen);

  let at = lines.findIndex((line) => line.id === cursor.id);
  const lastAt = useRef(0);
  if (at < 0 && cursor.id) {
    at = Math.min(lastAt.current, lines.length - 1);
    cursor.id = lines[at]?.id ?? '';
  }
  lastAt.current = at;
  const element = () => box.current?.querySelector(`[data-id="${CSS.escape(cursor.id)}"]`);

  // The line with the focus stays where it is on the screen, whatever comes above it.
  const heldId = focused()?.dataset.id;
  useStaying(() => (heldId && !wanted.current && focused()?.dataset.id === heldId ? focused() : null));
  useLayoutEffect(() => {
    const line = wanted.current ? element() : null;
    if (!line) return; // It is drawn with a later frame.
    wanted.current = false;
    line.focus({ preventScroll: true });
    reveal(line);
  });
  useLastScroll(fleet.isKnown, () => element()?.focus({ preventScroll: true }));

  /** @param {number} index */
  const moveTo = (index) => {
    const line = lines[Math.max(0, Math.min(lines.length - 1, index))];
    if (!line) return;
    cursor.id = line.id;
    wanted.current = true;
    draw((count) => count + 1);
  };
  /**
   * @param {ShownLine} line
   * @param {boolean} open
   */
  const setOpen = (line, open) => {
    if (open) {
      opened().add(line.id);
      opened().delete(`-${line.id}`);
      opened().delete(`~${line.id}`);
    } else {
      opened().delete(line.id);
      opened().add(`${shows ? '-' : '~'}${line.id}`);
    }
    keepOpened();
    draw((count) => count + 1);
  };
  const lineNow = () => lines.find((line) => line.id === cursor.id);
  /** @param {ShownLine} line */
  const openLine = (line) => {
    if (line.kind === 'worker') go(workerHref(...partsOf(line.key)));
    else if (line.kind === 'task') go(taskHref(line.task.taskId));
    else go(workerHref(...partsOf(line.key), 'transcript'));
  };
  useKeys({
    down: () => moveTo(at + 1),
    up: () => moveTo(Math.max(0, at - 1)),
    first: () => moveTo(0),
    last: () => moveTo(lines.length - 1),
    open: () => {
      const line = lineNow();
      if (!line) return whyNobody('no line is under the cursor');
      openLine(line);
      return true;
    },
    unfold: () => {
      const line = lineNow();
      if (line?.open === false) setOpen(line, true);
      else if (line?.open) moveTo(at + 1);
    },
    fold: () => {
      const line = lineNow();
      if (line?.open) setOpen(line, false);
      else if (line) {
        for (let above = lines.indexOf(line) - 1; above >= 0; above -= 1) {
          if (lines[above].depth < line.depth) {
            moveTo(above);
            break;
          }
        }
      }
    },
    siblings: () => {
      const line = lineNow();
      if (!line) return;
      let first = lines.indexOf(line); // The focus may have moved the cursor since the last drawing.
      while (first > 0 && lines[first].depth >= line.depth) first -= 1;
      if (lines[first].depth < line.depth) first += 1;
      for (let index = first; index < lines.length && lines[index].depth >= line.depth; index += 1) {
        if (lines[index].depth === line.depth && lines[index].open === false) opened().add(lines[index].id);
      }
      keepOpened();
      draw((count) => count + 1);
    },
    find: () => {
      typed.current = { text: '', at: Date.now(), isOn: true };
      if (!box.current?.contains(focused())) moveTo(Math.max(0, at)); // There the letters are read.
    },
  });
  const keyNow = () => {
    const line = lineNow();
    return line && line.kind !== 'task' ? line.key : null;
  };
  useMarking({
    order: () => lines.flatMap((line) => (line.kind === 'worker' ? [line.key] : [])),
    why: (key) => {
      const worker = fleet.workers.get(key);
      if (!worker) return 'gone';
      return !shows || shows(worker, fleet.tasks.get(worker.taskId)) ? '' : 'hidden by the filter';
    },
    filter: route.filter,
  }, keyNow, () => moveTo(at + 1));
  useWorkerKeys(keyNow);

  // Letters that are not keys, and all letters behind `f`, go to the next line that begins so.
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
    if (event.key.length !== 1 || event.key === ' ') return;
    const now = Date.now();
    const isGoingOn = now - typed.current.at < TYPING_MS && (typed.current.isOn || typed.current.text);
    if (!isGoingOn && (isBound(event.key) || !/[\p{L}\p{N}_-]/u.test(event.key))) return;
    const text = (isGoingOn ? typed.current.text : '') + event.key.toLowerCase();
    typed.current = { text, at: now, isOn: true };
    event.preventDefault();
    event.stopPropagation();
    const start = text.length > 1 ? at : at + 1;
    for (let step = 0; step < lines.length; step += 1) {
      const index = (Math.max(0, start) + step) % lines.length;
      if (nameOf(lines[index]).toLowerCase().startsWith(text)) {
        moveTo(index);
        return;
      }
    }
    sayWhy(`no line begins with ${text}`);
  };

  if (!fleet.isKnown) return html`<${NotHere} />`;
  if (!lines.length) return html`<div class="empty"><p>${shows ? 'No worker fits the filter.' : 'There is no task yet.'}</p></div>`;
  const tabId = at >= 0 ? cursor.id : lines[0].id;
  return html`<div class="tree-head" aria-hidden="true"><span></span><span>tokens</span><span>calls</span><span>cost</span><span>time</span></div>
    <div class="tree" ref=${box} onKeyDown=${onKeyDown}>
      <${VirtualRows} keys=${lines.map((line) => line.id)} rowHeight=${rowHeight} heights=${heights} role="tree" aria-label="Tasks and workers" keep=${at >= 0 ? [at] : [0]}
        render=${(index, style) => html`<${Line} key=${lines[index].id} line=${lines[index]} counts=${counts.get(lines[index].id)} style=${style} isFirst=${lines[index].id === tabId}
          onFocus=${() => {
            if (cursor.id === lines[index].id) return;
            cursor.id = lines[index].id;
            changed('chosen');
          }} onToggle=${() => setOpen(lines[index], !lines[index].open)} onOpen=${() => openLine(lines[index])} />`} />
    </div>`;
}

/** @param {ShownLine} line */
function nameOf(line) {
  if (line.kind === 'task') return line.task.taskId;
  return line.kind === 'worker' ? partsOf(line.key)[1] : itemLabel(line.item);
}

/**
 * @param {{ line: ShownLine, counts?: Map<string, number>, style: object, isFirst: boolean,
 *   onFocus: () => void, onToggle: () => void, onOpen: () => void }} props
 */
function Line({ line, counts, style, isFirst, onFocus, onToggle, onOpen }) {
  const indent = { paddingLeft: `${Math.min(line.depth - 1, 14) * (innerWidth <= 640 ? 12 : 20)}px` };
  /** @param {On<MouseEvent, HTMLElement>} event */
  const click = (event) => {
    if (event.target.closest('.twist')) return;
    event.currentTarget.focus();
    if (line.kind === 'worker' && !about.readOnly && (event.shiftKey || event.target.closest('.mark-box'))) {
      toggleMark(line.key, event.shiftKey);
      return;
    }
    if (event.detail === 2 || event.target.closest('.label')) onOpen();
  };
  const isMarkable = line.kind === 'worker' && !about.readOnly;
  const isMarked = line.kind === 'worker' && marks.has(line.key);
  return html`<div class=${`tree-row ${line.kind}-row${isMarked ? ' marked' : ''}`} role="treeitem" aria-checked=${isMarkable ? String(isMarked) : undefined} onMouseDown=${noSelection} style=${style} data-id=${line.id} tabindex=${isFirst ? 0 : -1}
      aria-level=${line.depth} aria-setsize=${line.size} aria-posinset=${line.position} aria-expanded=${line.open === null ? undefined : String(line.open)}
      aria-selected=${String(isFirst)} onFocus=${onFocus} onClick=${click}>
    <span class="what" style=${indent}>
      <span class="twist" aria-hidden="true" onClick=${line.open === null ? undefined : onToggle}>${line.open === null ? '' : line.open ? '▾' : '▸'}</span>
      ${isMarkable && html`<span class="mark-box" aria-hidden="true"></span>`}
      ${line.kind === 'task' ? html`<${TaskParts} task=${line.task} />` : line.kind === 'worker' ? html`<${WorkerParts} worker=${line.worker} name=${partsOf(line.key)[1]} />` : html`<${ItemParts} item=${line.item} />`}
      ${line.kind !== 'item' && !line.open && counts && counts.size > 0 && html`<${Counts} counts=${counts} />`}
    </span>
    ${line.kind === 'task' ? html`<${TaskFigures} task=${line.task} />` : line.kind === 'worker' ? html`<${WorkerFigures} line=${line} />` : html`<${ItemFigures} item=${line.item} />`}
  </div>`;
}

/** @param {{ counts: Map<string, number> }} props */
function Counts({ counts }) {
  return html`<span class="counts">${COUNT_SIGNS.filter(([state]) => counts.has(state)).map(([state, glyph, words]) => html`<span key=${state}><span class=${`sign ${state === 'paused' ? 'blocked' : state}`} aria-hidden="true">${glyph}</span>${counts.get(state)}<span class="unseen"> ${words}</span></span>`)}</span>`;
}

/** @param {{ task: Sent.Task }} props */
function TaskParts({ task }) {
  return html`<${Sign} sign=${signOfTask(task)} /><span class="label foreign">${plain(task.taskId)}</span>
    ${task.own === false && html`<span class="tag">foreign</span>`}${task.held && html`<span class="tag blocked" title=${holdWords(task)}>held</span>`}
    ${task.title && task.title !== task.taskId && html`<span class="says foreign dim">${oneLine(task.title)}</span>`}`;
}

/** @param {{ task: Sent.Task }} props */
function TaskFigures({ task }) {
  const { live = 0, ...totals } = task.totals ?? {};
  const until = live ? Date.now() : Date.parse(totals.ended ?? '');
  return html`<span class="figure">${totals.tokens ? `${totals.lacksTokens ? '≥' : ''}${shortNumber(totals.tokens)}` : ''}</span><span class="figure"></span><span class="figure">${totals.costUsd && totals.lacksCost ? '≥' : ''}${costWords(totals.costUsd)}</span>
    <span class="figure time-figure">${totals.began && until ? duration(secondsSince(totals.began, until), live > 0) : ''}</span>`;
}

/** @param {{ worker: Sent.Worker, name: string }} props */
function WorkerParts({ worker, name }) {
  return html`<${Sign} sign=${signOf(worker)} /><span class="label foreign">${plain(name)}</span>
    <span class="says">${saidOf(worker, fleet.tasks.get(worker.taskId)).map(([text, role], at) => html`<span key=${at} class=${`foreign ${role}`}>${text} </span>`)}</span>`;
}

/** @param {{ line: WorkerLine }} props */
function WorkerFigures({ line }) {
  const { worker } = line;
  const own = items.get(line.key)?.items ?? [];
  const calls = worker.calls || own.filter((item) => item.type === 'tool').length;
  const tokens = tokensOf(worker);
  return html`<span class="figure">${tokens ? shortNumber(tokens) : ''}</span><span class="figure">${calls || ''}</span><span class="figure">${costWords(worker.usage?.costUsd)}</span>
    <span class="figure time-figure"><${WorkerTime} worker=${worker} /></span>`;
}

/** @param {{ item: Sent.Item }} props */
function ItemParts({ item }) {
  const [glyph, role] = ITEM_SIGNS[item.status ?? ''] ?? [TYPE_SIGNS[item.type] ?? '·', 'queued'];
  return html`<${Sign} sign=${{ glyph, role, words: plain(item.status ?? item.type) }} />
    ${item.type === 'agent' && html`<span class="tag">${oneLine(item.agentType || 'agent', 30)}</span>`}
    <span class="label foreign">${itemLabel(item)}</span>
    ${item.orphan && html`<span class="quiet">of a sub-agent that is not known</span>`}
    ${item.earlier ? html`<span class="quiet">${item.earlier} earlier left out</span>` : ''}`;
}

/** @param {{ item: Sent.Item }} props */
function ItemFigures({ item }) {
  const tokens = (item.tokens?.input ?? 0) + (item.tokens?.output ?? 0);
  const end = item.endedAt ?? (item.status === 'running' ? undefined : item.lastAt);
  const seconds = item.status ? secondsSince(item.startedAt, end ? Date.parse(end) : Date.now()) : null;
  return html`<span class="figure">${tokens ? shortNumber(tokens) : ''}</span><span class="figure">${item.calls || ''}</span><span class="figure"></span>
    <span class="figure time-figure">${item.status && (item.endedAt || item.status === 'running') ? duration(seconds, item.status === 'running') : ''}</span>`;
}
