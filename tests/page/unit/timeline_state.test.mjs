import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axisFor, rowNow, rowsNow, withNew } from '../../../agentctl/interfaces/web/page/js/timeline_state.js';

const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const piece = (shade, from, to, attempt = 1) => ({ shade, attempt, from: at(from), to: at(to) });
const row = (name, pieces, more = {}) => ({
  taskId: 't', agentInstance: name, depth: 0, from: at(0), to: pieces.at(-1)?.to ?? at(0), open: true,
  status: 'running', pieces, ...more,
});
const worker = (name, status, more = {}) => ({ taskId: 't', agentInstance: name, status, ...more });

test('a row that goes on grows, and one that is over stays the same object', () => {
  const grows = row('a', [piece('queued', 0, 1), piece('running', 1, 2)]);
  const over = row('b', [piece('running', 1, 2)], { open: false, status: 'completed' });
  const found = rowsNow([grows, over], new Map([['t/a', worker('a', 'running')]]), at(9));
  assert.deepEqual(found[0].pieces, [piece('queued', 0, 1), piece('running', 1, 9)]);
  assert.equal(found[1], over);
  assert.equal(rowsNow(found.slice(1), new Map(), at(9)).length, 1);
  const all = [over];
  assert.equal(rowsNow(all, new Map(), at(9)), all);
});

test('another state is another piece, from when it is known', () => {
  const first = row('a', [piece('queued', 0, 2)], { status: 'queued' });
  const started = rowNow(first, worker('a', 'running', { startedAt: at(3) }), at(5));
  assert.deepEqual(started.pieces, [piece('queued', 0, 3), piece('running', 3, 5)]);
  assert.equal(started.startedAt, at(3));
  const asks = rowNow(started, worker('a', 'blocked'), at(7));
  assert.deepEqual(asks.pieces.at(-1), piece('blocked', 7, 7));
  const again = rowNow(rowNow(asks, worker('a', 'blocked'), at(8)), worker('a', 'running', { attempt: 2 }), at(9));
  assert.deepEqual(again.pieces.slice(-2), [piece('blocked', 7, 9), piece('running', 9, 9, 2)]);
});

test('an end closes a row at its own time', () => {
  const failed = worker('a', 'failed', { endedAt: at(4), reason: 'signal' });
  const found = rowNow(row('a', [piece('running', 1, 2)]), failed, at(9));
  assert.deepEqual([found.open, found.to, found.status, found.reason], [false, at(4), 'failed', 'signal']);
  assert.deepEqual(found.pieces, [piece('running', 1, 4)]);
});

test('a stream that is a moment behind puts nothing back into the queue, and a worker that is gone only grows', () => {
  const first = row('a', [piece('running', 1, 2)]);
  assert.deepEqual(rowNow(first, worker('a', 'queued'), at(3)).pieces, [piece('running', 1, 3)]);
  assert.deepEqual(rowNow(first, undefined, at(3)).pieces, [piece('running', 1, 3)]);
});

test('a new worker is below the one that started it, behind those that are there', () => {
  const rows = [row('a', []), row('b', [], { depth: 1 }), row('c', [])];
  const below = worker('d', 'queued', { parent: 'a', queuedAt: at(5) });
  const found = withNew(rows, [worker('a', 'running'), below, worker('e', 'queued')], at(6));
  const places = found.map((one) => `${one.agentInstance} ${one.depth}`);
  assert.deepEqual(places, ['a 0', 'b 1', 'd 1', 'c 0', 'e 0']);
  assert.equal(found[2].from, at(5));
  assert.equal(withNew(found, [worker('e', 'queued')], at(6)), found);
});

test('an axis is as long as its time or a tenth longer, and the same for a while', () => {
  for (const length of [0.2, 1, 7, 60, 3600.5]) {
    assert.ok(axisFor(length) >= length && axisFor(length) <= Math.max(1, length) * 1.1001);
  }
  assert.equal(axisFor(61), axisFor(62));
});
