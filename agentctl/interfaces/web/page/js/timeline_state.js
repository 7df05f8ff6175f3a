// A timeline that goes on: its rows grow by themselves, and change by what the stream tells of the workers, so that it
// need not be fetched again for either. Rows that change are other objects; all others stay. Pure.
import { TERMINAL } from './words.js';

/** @typedef {Sent.TimelineRow} TimelineRow */

/** @param {{ taskId: string, agentInstance: string }} one */
export const rowKey = (one) => `${one.taskId}/${one.agentInstance}`;

/**
 * What a worker does now, as pieces of a timeline name it.
 * @param {Sent.Worker} worker
 * @returns {Sent.Shade}
 */
export function shadeOf(worker) {
  if (worker.status === 'queued') return worker.parked ? 'parked' : 'queued';
  return worker.status === 'blocked' ? 'blocked' : 'running';
}

/**
 * A row as it is now.
 * @param {TimelineRow} row
 * @param {Sent.Worker | undefined} worker what the stream says of it; nothing if it is gone
 * @param {string} now
 * @returns {TimelineRow}
 */
export function rowNow(row, worker, now) {
  if (!row.open) return row;
  const isOver = worker ? TERMINAL.has(worker.status) : false;
  const to = (isOver && worker?.endedAt) || now;
  const pieces = [...(row.pieces ?? [])];
  const last = pieces.at(-1);
  if (last) pieces[pieces.length - 1] = { ...last, to };
  if (worker && !isOver) {
    const [shade, attempt] = [shadeOf(worker), worker.attempt ?? 1];
    // Nothing goes back into the queue: the stream may be a moment behind what was fetched.
    if (last && shade !== 'queued' && (last.shade !== shade || last.attempt !== attempt)) {
      const begun = shade === 'running' && last.shade === 'queued' && worker.startedAt;
      const from = begun && begun > last.from ? begun : now;
      pieces[pieces.length - 1] = { ...last, to: from };
      pieces.push({ shade, attempt, from, to });
    } else if (!last) pieces.push({ shade, attempt, from: row.from, to });
  }
  return {
    ...row,
    to,
    pieces,
    open: !isOver,
    status: worker?.status ?? row.status,
    reason: worker?.reason ?? row.reason,
    startedAt: row.startedAt ?? worker?.startedAt,
    tokens: worker?.usage?.tokens ?? row.tokens,
    costUsd: worker?.usage?.costUsd ?? row.costUsd,
  };
}

/**
 * The row of a worker that has only just been accepted.
 * @param {Sent.Worker} worker
 * @param {number} depth
 * @param {string} now
 * @returns {TimelineRow}
 */
const newRow = (worker, depth, now) => ({
  taskId: worker.taskId, agentInstance: worker.agentInstance, depth, from: worker.queuedAt ?? worker.startedAt ?? now,
  to: now, open: true, command: worker.command, pieces: [], status: worker.status,
});

/**
 * The rows with those of new workers, each below the one that started it, or else at the end.
 * @param {TimelineRow[]} rows
 * @param {Iterable<Sent.Worker>} workers of the task, and of those below it
 * @param {string} now
 */
export function withNew(rows, workers, now) {
  const known = new Set(rows.map(rowKey));
  const found = [...rows];
  for (const worker of workers) {
    if (known.has(rowKey(worker))) continue;
    const parent = worker.parent ? `${worker.taskId}/${worker.parent}` : '';
    const above = known.has(parent) ? found.findIndex((one) => rowKey(one) === parent) : -1;
    let at = above < 0 ? found.length : above + 1;
    if (above >= 0) while (at < found.length && found[at].depth > found[above].depth) at += 1;
    found.splice(at, 0, newRow(worker, above < 0 ? 0 : found[above].depth + 1, now));
    known.add(rowKey(worker));
  }
  return found.length === rows.length ? rows : found;
}

/**
 * The rows as they are now; the same array if none of them goes on.
 * @param {TimelineRow[]} rows
 * @param {ReadonlyMap<string, Sent.Worker>} workers
 * @param {string} now
 */
export function rowsNow(rows, workers, now) {
  if (!rows.some((one) => one.open)) return rows;
  return rows.map((one) => (one.open ? rowNow(one, workers.get(rowKey(one)), now) : one));
}

/** An axis that grows in steps of a tenth: within a step, what is drawn on it stays where it is. */
const STEP = 1.1;
/**
 * How long an axis is for a time that grows.
 * @param {number} length in seconds
 */
export const axisFor = (length) => STEP ** Math.ceil(Math.log(Math.max(length, 1)) / Math.log(STEP) + 1e-9);
