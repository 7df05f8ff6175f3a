import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foundWords, MOST_PLACES, placesIn } from '../../../agentctl/interfaces/web/page/js/text/found_places.js';

test('words are found as an excerpt has them', () => {
  assert.deepEqual(placesIn('A session, two Sessions', ['session']), [[2, 9], [15, 22]]);
  assert.deepEqual(placesIn('one\n  Line', ['one line']), [[0, 10]]);
  assert.deepEqual(placesIn('a.b a-b a+b', ['a.b']), [[0, 3]]);
  assert.deepEqual(placesIn('[x](y) \\ $', ['(y) \\']), [[3, 8]]);
  assert.deepEqual(placesIn('anything', [' ']), []);
});

test('of several texts each place is told once', () => {
  assert.deepEqual(placesIn('A yew and a rowan', ['rowan', 'yew']), [[2, 5], [12, 17]]);
  assert.deepEqual(placesIn('rowans', ['row', 'rowan']), [[0, 5]]);
  assert.deepEqual(placesIn('anything', []), []);
  assert.deepEqual(placesIn('anything', ['', ' ']), []);
});

test('of very many places not all are marked, and long texts take no longer', () => {
  assert.equal(placesIn('a'.repeat(5000), ['a']).length, MOST_PLACES);
  const blank = ' '.repeat(200_000);
  assert.deepEqual(placesIn(`a${blank}b`, ['a c']), []);
});

test('hits are lines of workers and of tasks', () => {
  const hit = (agentInstance, more = 0) => ({ taskId: 't1', agentInstance, more });
  assert.equal(foundWords([hit('a')]), '1 line in 1 worker');
  assert.equal(foundWords([hit('a'), hit('a'), hit('a', 30), hit('b')]), '33 lines in 2 workers');
  assert.equal(foundWords([hit(null), hit('a')]), '2 lines in 1 worker and 1 task');
  assert.equal(foundWords([hit(null)]), '1 line in 1 task');
});
