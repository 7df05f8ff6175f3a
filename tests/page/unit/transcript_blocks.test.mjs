import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsIn, stampOf, TranscriptBlocks } from '../../../agentctl/interfaces/web/page/js/transcript_blocks.js';

const blocksOf = (rows) => {
  const blocks = new TranscriptBlocks();
  blocks.add(rows);
  return blocks;
};
const shape = (blocks) => blocks.map((one) => (one.children.length ? [one.id, shape(one.children)] : one.id));

const CALL = [
  {
    offset: 0, type: 'tool', id: 'c', phase: 'start', at: '1', name: 'Bash', status: 'running',
    detail: { command: 'ls' },
  },
  { offset: 10, type: 'tool', id: 'c', phase: 'progress', text: 'half' },
  { offset: 20, type: 'tool', id: 'c', phase: 'end', at: '2', status: 'completed', text: 'a\nb' },
];

test('a call is one block: its arguments, its outcome, and when that was', () => {
  const [block] = blocksOf(CALL).roots();
  const { name, status, text, detail, at, endedAt } = block;
  assert.deepEqual([name, status, text, at, endedAt], ['Bash', 'completed', 'a\nb', '1', '2']);
  assert.deepEqual(detail, { command: 'ls' });
});

test('rows in any order, and twice, are the same block', () => {
  const orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
  for (const order of orders) {
    const blocks = new TranscriptBlocks();
    for (const at of order) assert.ok(blocks.add([CALL[at]]));
    assert.ok(!blocks.add(CALL));
    const [block, ...others] = blocks.roots();
    assert.deepEqual(others, []);
    assert.deepEqual([block.status, block.text, block.first], ['completed', 'a\nb', 0], order.join());
  }
});

test('what is cut is replaced by the whole, and by no other row', () => {
  const blocks = blocksOf([{ offset: 5, type: 'message', id: 'm', text: 'beg', cutAt: [['text']] }]);
  const [block] = blocks.roots();
  assert.equal(block.cuts.text.offset, 5);
  blocks.putWhole(block, { offset: 9, type: 'message', text: 'other' });
  assert.equal(block.text, 'beg');
  blocks.putWhole(block, { offset: 5, type: 'message', text: 'beginning' });
  assert.deepEqual([block.text, block.cuts.text], ['beginning', null]);
});

test('of what is cut is known which argument it is, and a text for which there was no room is one that is cut', () => {
  const blocks = blocksOf([
    { offset: 5, type: 'tool', id: 'c', detail: { a: 1, b: 'beg' }, text: null, cutAt: [['detail', 'b'], ['text']] },
    { offset: 9, type: 'tool', id: 'd', detail: { a: 1 }, text: 'all', cutAt: [['detail']] },
  ]);
  const [one, other] = blocks.roots();
  assert.deepEqual(one.cuts, { text: { offset: 5, names: [undefined] }, detail: { offset: 5, names: ['b'] } });
  assert.deepEqual(other.cuts, { text: null, detail: { offset: 9, names: [undefined] } });
  assert.equal(one.text, '');
});

test('what stands in a line is a text', () => {
  const [block] = blocksOf([{ offset: 5, type: 'agent', id: 'a', name: { a: 1 }, status: 7, agentType: [] }]).roots();
  assert.deepEqual([block.name, block.status, block.agentType], [undefined, undefined, undefined]);
});

test('a sub-agent changes with the call that has started it', () => {
  const blocks = blocksOf([{ offset: 0, type: 'tool', id: 'x' }, { offset: 1, type: 'agent', id: 'x' }]);
  const [block] = blocks.roots();
  const before = stampOf(block);
  block.call.revision += 1;
  assert.notEqual(stampOf(block), before);
});

test('what a sub-agent does is below it, and the call that started it is not shown as well', () => {
  const blocks = blocksOf([
    { offset: 0, type: 'tool', id: 'x', name: 'Task', detail: { prompt: 'look' } },
    { offset: 1, type: 'agent', id: 'x' },
    { offset: 2, type: 'tool', id: 'c1', parent: 'x' }, { offset: 3, type: 'agent', id: 'y', parent: 'x' },
    { offset: 4, type: 'tool', id: 'c2', parent: 'y' }, { offset: 5, type: 'tool', id: 'c3', parent: 'nobody' },
  ]);
  const roots = blocks.roots();
  assert.deepEqual(shape(roots), [['x', ['c1', ['y', ['c2']]]], 'c3']);
  assert.equal(callsIn(roots[0]), 2);
  assert.deepEqual(roots[0].call.detail, { prompt: 'look' });
});

test('forged circles of sub-agents end, and nothing is lost', () => {
  const roots = blocksOf([
    { offset: 0, type: 'agent', id: 'a', parent: 'b' }, { offset: 1, type: 'agent', id: 'b', parent: 'a' },
    { offset: 2, type: 'agent', id: 's', parent: 's' }, { offset: 3, type: 'message', id: 'm', parent: 'a' },
  ]).roots();
  const ids = JSON.stringify(shape(roots));
  for (const id of ['a', 'b', 's', 'm']) assert.equal(ids.split(`"${id}"`).length, 2, `${id} in ${ids}`);
  for (const root of roots) {
    stampOf(root);
    callsIn(root);
  }
});

test('a row that cannot be read is a block of its own, and one of usage is not a block', () => {
  const roots = blocksOf([
    { offset: 0, type: '', problem: 'bad' }, { offset: 1, type: 'usage' },
    { offset: 2, type: 'toString', id: 'constructor' },
  ]).roots();
  assert.deepEqual(roots.map((one) => one.type), ['problem', 'toString']);
});

test('whatever is drawn of a block changes its stamp', () => {
  const blocks = blocksOf([{ offset: 0, type: 'agent', id: 'a' }, { offset: 1, type: 'tool', id: 'c', parent: 'a' }]);
  const before = stampOf(blocks.roots()[0]);
  blocks.add([{ offset: 2, type: 'tool', id: 'c', phase: 'end', text: 'x' }]);
  assert.notEqual(stampOf(blocks.roots()[0]), before);
});

test('sub-agents far below each other are all there, in linear time', () => {
  const rows = Array.from({ length: 20_000 }, (_, at) => ({ offset: at, type: 'agent', id: at, parent: at - 1 }));
  const began = performance.now();
  const blocks = blocksOf(rows);
  const roots = blocks.roots();
  assert.ok(performance.now() - began < 2000);
  let found = 0;
  let deepest = 0;
  const walk = (all, depth) => {
    deepest = Math.max(deepest, depth);
    for (const one of all) {
      found += 1;
      walk(one.children, depth + 1);
    }
  };
  walk(roots, 0);
  assert.equal(found, rows.length);
  assert.ok(deepest > 5 && deepest < 100, `${deepest}`);
  for (const root of roots) {
    stampOf(root);
    callsIn(root);
  }
});
