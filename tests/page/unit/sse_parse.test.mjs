import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventStreamParser } from '../../../agentctl/interfaces/web/page/js/sse_parse.js';

const STREAM = [
  ': hello\r\n\r\n', 'event: fleet\nid: e-1\ndata: {"a":1}\n\n', 'data: one\ndata: two\n\n', 'event: reset\n\n',
  'id: 7\rdata:  x: y\r\r', 'nonsense\ndata\n\n',
].join('');
const MESSAGES = [
  { event: 'fleet', id: 'e-1', data: '{"a":1}' }, { event: 'message', id: undefined, data: 'one\ntwo' },
  { event: 'reset', id: undefined, data: '' }, { event: 'message', id: '7', data: ' x: y' },
  { event: 'message', id: undefined, data: '' },
];

function parsed(...pieces) {
  const found = [];
  const parse = eventStreamParser((message) => found.push(message));
  pieces.forEach((piece) => parse(piece));
  return found;
}

test('all forms of line ends, comments, ids, and data of several lines', () => {
  assert.deepEqual(parsed(STREAM), MESSAGES);
});

test('wherever a stream is cut into pieces, the messages are the same', () => {
  for (let at = 0; at <= STREAM.length; at += 1) {
    assert.deepEqual(parsed(STREAM.slice(0, at), STREAM.slice(at)), MESSAGES);
  }
  assert.deepEqual(parsed(...STREAM), MESSAGES);
});

test('what has no end yet is not a message', () => {
  assert.deepEqual(parsed('data: x\n'), []);
  assert.deepEqual(parsed('event: x'), []);
  assert.deepEqual(parsed('id: 3\n\n'), []);
});

test('a long line in many pieces takes no longer than its length', () => {
  const began = performance.now();
  const [message] = parsed('data: ', ...Array.from({ length: 4000 }, () => 'x'.repeat(500)), '\n\n');
  assert.equal(message.data.length, 2_000_000);
  assert.ok(performance.now() - began < 5000);
});
