// The lines of the tree: tasks, sub-tasks, workers, sub-agents and what they do. Pure, but for what it is given.
import { TERMINAL } from './words.js';

/**
 * A line of the tree.
 * @typedef {{ id: string, kind: 'task', task: Sent.Task }} TaskLine
 * @typedef {{ id: string, kind: 'worker', worker: Sent.Worker, key: string }} WorkerLine
 * @typedef {{ id: string, kind: 'item', item: Sent.Item, key: string }} ItemLine
 * @typedef {TaskLine | WorkerLine | ItemLine} Line
 * What is below each line, by its id.
 * @typedef {Map<string, Line[]>} Lines
 * `open` is null where nothing is below it; `position` and `size` are those among the lines beside it.
 * @typedef {Line & { depth: number, open: boolean | null, position: number, size: number }} ShownLine
 * @typedef {(worker: Sent.Worker, task: Sent.Task | undefined) => boolean} Shows
 */

/** Deeper lines are not drawn: a forged circle of parents ends there. */
const DEEPEST = 64;

/**
 * What is below each task and worker: by `t:TASK` and `w:TASK/INSTANCE`; '' has the tasks on top, the latest first.
 * @param {Map<string, Sent.Task>} tasks
 * @param {Map<string, Sent.Worker>} workers
 * @param {Shows | null} shows
 */
export function belowOf(tasks, workers, shows) {
  /** @type {Lines} */
  const below = new Map();
  /**
   * @param {string} above
   * @param {Line} line
   */
  const put = (above, line) => {
    const here = below.get(above);
    if (here) here.push(line);
    else below.set(above, [line]);
  };
  /** @type {Map<string, Sent.Worker>} */
  const shown = new Map();
  for (const [key, worker] of workers) if (!shows || shows(worker, tasks.get(worker.taskId))) shown.set(key, worker);
  const needed = new Set();
  for (const worker of shown.values()) {
    let task = tasks.get(worker.taskId);
    for (; task && !needed.has(task.taskId); task = tasks.get(task.parent ?? '')) needed.add(task.taskId);
  }
  for (const [id, task] of tasks) {
    if (shows && !needed.has(id)) continue;
    const near = task.parentInstance ? `${task.parent}/${task.parentInstance}` : null;
    if (near && shown.has(near)) put(`w:${near}`, { id: `t:${id}`, kind: 'task', task });
    else put(task.parent && tasks.has(task.parent) && task.parent !== id ? `t:${task.parent}` : '', { id: `t:${id}`, kind: 'task', task });
  }
  for (const [key, worker] of shown) {
    const near = worker.parent ? `${worker.taskId}/${worker.parent}` : null;
    const above = near && near !== key && shown.has(near) ? `w:${near}` : `t:${worker.taskId}`;
    put(above, { id: `w:${key}`, kind: 'worker', worker, key });
  }
  /** @param {Line} line */
  const began = (line) => (line.kind === 'task' && line.task.totals?.began) || '~';
  below.get('')?.sort((a, b) => (began(a) < began(b) ? 1 : began(a) > began(b) ? -1 : a.id < b.id ? -1 : 1));
  // A circle of tasks hangs on nothing: its first task is put on top.
  const reached = new Set();
  /** @param {string} id */
  const walk = (id) => {
    const stack = [id];
    for (let above = stack.pop(); above !== undefined; above = stack.pop()) {
      for (const line of below.get(above) ?? []) {
        if (!reached.has(line.id)) {
          reached.add(line.id);
          stack.push(line.id);
        }
      }
    }
  };
  walk('');
  for (const [above, lines] of below) {
    for (const line of lines) {
      if (reached.has(line.id) || above === '') continue;
      put('', line);
      below.set(above, (below.get(above) ?? []).filter((one) => one !== line));
      reached.add(line.id);
      walk(line.id);
    }
  }
  return below;
}

/**
 * How many workers of each state are below a line.
 * @param {Lines} below
 */
export function countsOf(below) {
  const known = new Map();
  /** @param {string} id */
  const count = (id, deep = 0) => {
    if (known.has(id)) return known.get(id);
    const found = new Map();
    known.set(id, found);
    if (deep > DEEPEST) return found;
    for (const line of below.get(id) ?? []) {
      if (line.kind === 'worker') add(found, stateOf(line.worker), 1);
      for (const [state, number] of count(line.id, deep + 1)) add(found, state, number);
    }
    return found;
  };
  count('');
  return known;
}

const ALIVE = ['running', 'blocked', 'paused', 'queued'];

/**
 * The lines below which somebody works, waits or asks.
 * @param {Map<string, Map<string, number>>} counts
 */
export const aliveOf = (counts) => [...counts].filter(([id, states]) => id && ALIVE.some((state) => states.has(state)))
  .map(([id]) => id);

/**
 * @param {Map<string, number>} counts
 * @param {string} state
 * @param {number} number
 */
const add = (counts, state, number) => counts.set(state, (counts.get(state) ?? 0) + number);
/** @param {Sent.Worker} worker */
const stateOf = (worker) => (worker.paused && !TERMINAL.has(worker.status) ? 'paused' : worker.status);

/**
 * The items of a worker as lines below it: `i:TASK/INSTANCE:ID`.
 * @param {string} key
 * @param {Sent.Item[]} items
 */
export function itemLines(key, items) {
  const below = new Map();
  const ids = new Set(items.map((item) => `${item.id}`));
  items.forEach((item, at) => {
    const above = item.parent != null && ids.has(`${item.parent}`) && item.parent !== item.id ? `i:${key}:${item.parent}` : `w:${key}`;
    const isGroup = item.type === 'agent';
    const line = { id: isGroup ? `i:${key}:${item.id}` : `i:${key}:${at}:${item.id}`, kind: 'item', item, key };
    if (!below.has(above)) below.set(above, []);
    below.get(above).push(line);
  });
  return below;
}

/**
 * All visible lines, from top to bottom, each with its depth, its place beside others, and whether it is open.
 * @param {Lines} below
 * @param {Lines} itemsBelow
 * @param {(line: Line) => boolean} isOpen
 * @param {(line: Line) => boolean} mayOpen
 */
export function linesOf(below, itemsBelow, isOpen, mayOpen) {
  /** @type {ShownLine[]} */
  const found = [];
  const seen = new Set();
  /**
   * @param {string} id
   * @param {number} depth
   */
  const walk = (id, depth) => {
    const lines = [...(itemsBelow.get(id) ?? []), ...(below.get(id) ?? [])];
    lines.forEach((line, at) => {
      if (seen.has(line.id)) return;
      seen.add(line.id);
      const has = below.has(line.id) || itemsBelow.has(line.id) || mayOpen(line);
      const open = has ? isOpen(line) : null;
      found.push({ ...line, depth, open, position: at + 1, size: lines.length });
      if (open && depth < DEEPEST) walk(line.id, depth + 1);
    });
  };
  walk('', 1);
  return found;
}
