import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aliveOf, belowOf, countsOf, itemLines, linesOf } from '../../../agentctl/interfaces/web/page/js/tree_order.js';

const tasks = (...all) => new Map(all.map((one) => [one.taskId, { state: 'working', ...one }]));
const workers = (...all) => new Map(all.map((one) => [`${one.taskId}/${one.agentInstance}`, { status: 'running', ...one }]));
const drawn = (below) => linesOf(below, new Map(), () => true, () => false)
  .map((line) => `${' '.repeat(line.depth - 1)}${line.id}`);

test('sub-tasks are below the worker that made them, workers below the one that started them', () => {
  const below = belowOf(
    tasks({ taskId: 'top' }, { taskId: 'sub', parent: 'top', parentInstance: 'a' }, { taskId: 'lone', parent: 'top' }),
    workers({ taskId: 'top', agentInstance: 'a' }, { taskId: 'top', agentInstance: 'b', parent: 'a' },
      { taskId: 'sub', agentInstance: 'c' }),
    null,
  );
  assert.deepEqual(drawn(below), ['t:top', ' t:lone', ' w:top/a', '  t:sub', '   w:sub/c', '  w:top/b']);
});

test('the latest task is on top', () => {
  const old = { taskId: 'old', totals: { began: '1' } };
  const below = belowOf(tasks(old, { taskId: 'new', totals: { began: '2' } }, { taskId: 'idle' }), new Map(), null);
  assert.deepEqual(drawn(below), ['t:idle', 't:new', 't:old']);
});

test('forged parents: circles and oneself hang on top, and each line is there once', () => {
  const below = belowOf(
    tasks({ taskId: 'a', parent: 'b' }, { taskId: 'b', parent: 'a' }, { taskId: 'self', parent: 'self' },
      { taskId: '__proto__', parent: 'constructor' }),
    workers({ taskId: 'self', agentInstance: 'x', parent: 'y' }, { taskId: 'self', agentInstance: 'y', parent: 'x' },
      { taskId: 'self', agentInstance: 'z', parent: 'z' }),
    null,
  );
  const lines = drawn(below).map((line) => line.trim());
  assert.deepEqual([...lines].sort(), ['t:__proto__', 't:a', 't:b', 't:self', 'w:self/x', 'w:self/y', 'w:self/z']);
  assert.equal(new Set(lines).size, lines.length);
  countsOf(below);
});

test('a filter leaves the tasks above what it shows', () => {
  const below = belowOf(
    tasks({ taskId: 'top' }, { taskId: 'sub', parent: 'top' }, { taskId: 'other' }),
    workers({ taskId: 'sub', agentInstance: 'a' }, { taskId: 'other', agentInstance: 'b' }),
    (worker) => worker.agentInstance === 'a',
  );
  assert.deepEqual(drawn(below), ['t:top', ' t:sub', '  w:sub/a']);
});

test('a worker whose task is not known yet is on top', () => {
  assert.deepEqual(drawn(belowOf(new Map(), workers({ taskId: 'gone', agentInstance: 'a' }), null)), ['w:gone/a']);
});

test('counts are those of everything below, with what is paused', () => {
  const below = belowOf(
    tasks({ taskId: 'top' }, { taskId: 'sub', parent: 'top' }),
    workers({ taskId: 'top', agentInstance: 'a', paused: true }, { taskId: 'sub', agentInstance: 'b' },
      { taskId: 'sub', agentInstance: 'c', status: 'failed', paused: true }),
    null,
  );
  assert.deepEqual(countsOf(below).get('t:top'), new Map([['running', 1], ['failed', 1], ['paused', 1]]));
});

test('items are below the sub-agent that they name, and below the worker if there is none', () => {
  const below = itemLines('t/w', [
    { id: 'g', type: 'agent' }, { id: 'c', type: 'tool', parent: 'g' }, { id: 'c', type: 'tool', parent: 'nobody' },
    { id: 's', type: 'agent', parent: 's' },
  ]);
  assert.deepEqual(below.get('w:t/w').map((one) => one.id), ['i:t/w:g', 'i:t/w:2:c', 'i:t/w:s']);
  assert.deepEqual(below.get('i:t/w:g').map((one) => one.id), ['i:t/w:1:c']);
});

test('a chain of a thousand sub-tasks ends where nobody can read it any more', () => {
  const chain = Array.from({ length: 1000 }, (_, at) => ({ taskId: `t${at}`, parent: at ? `t${at - 1}` : null }));
  const below = belowOf(tasks(...chain), new Map(), null);
  assert.equal(drawn(below).length, 64);
  countsOf(below);
});

test('closed lines hide what is below them', () => {
  const below = belowOf(tasks({ taskId: 'top' }), workers({ taskId: 'top', agentInstance: 'a' }), null);
  const lines = linesOf(below, new Map(), () => false, () => true);
  assert.deepEqual(lines.map((line) => [line.id, line.open, line.position, line.size]), [['t:top', false, 1, 1]]);
});

test('alive is what somebody works, waits or asks below', () => {
  const below = belowOf(
    tasks({ taskId: 'top' }, { taskId: 'sub', parent: 'top', parentInstance: 'a' }, { taskId: 'over' },
      { taskId: 'empty' }),
    workers({ taskId: 'top', agentInstance: 'a', status: 'completed' },
      { taskId: 'sub', agentInstance: 'b', status: 'queued' },
      { taskId: 'over', agentInstance: 'c', status: 'failed', paused: true }),
    null,
  );
  assert.deepEqual(aliveOf(countsOf(below)).sort(), ['t:sub', 't:top', 'w:top/a']);
});
