import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BothStreams } from '../../../agentctl/interfaces/web/page/js/text/both_streams.js';

const page = (stream, begin, end, texts) => ({
  stream, begin, end, size: end, ended: false, streams: [],
  rows: texts.map((text, place) => ({ at: begin + place, spans: [[text]] })),
});
const textsOf = (both) => both.items.map(({ stream, row }) => `${stream[3]} ${row.spans[0][0]}`);

test('what was there stands stream by stream, what comes in the order in which it is seen', () => {
  const both = new BothStreams();
  both.start([page('stderr', 0, 1, ['warning']), page('stdout', 0, 2, ['one', 'two'])]);
  assert.deepEqual(textsOf(both), ['e warning', 'o one', 'o two']);
  assert.equal(both.past, 3);
  assert.equal(both.take(page('stderr', 1, 2, ['bad'])), true);
  assert.equal(both.take(page('stdout', 2, 3, ['three'])), true);
  assert.deepEqual(textsOf(both).slice(3), ['e bad', 'o three']);
  assert.equal(both.take(page('stdout', 3, 3, [])), false);
});

test('a row that changes stays where it is', () => {
  const both = new BothStreams();
  both.start([page('stdout', 0, 2, ['one', '50 %']), page('stderr', 0, 1, ['warning'])]);
  both.take(page('stdout', 1, 9, ['90 %', 'done']));
  assert.deepEqual(textsOf(both), ['o one', 'o 90 %', 'e warning', 'o done']);
  assert.equal(both.past, 3);
});

test('of what is long the end is here', () => {
  const both = new BothStreams();
  both.start([page('stdout', 0, 3000, Array.from({ length: 3000 }, (_, number) => `${number}`))]);
  both.take(page('stdout', 3000, 3001, ['last']));
  assert.equal(both.items.length, 2000);
  assert.equal(textsOf(both).at(-1), 'o last');
  assert.equal(both.isCut.stdout, true);
});

test('each piece of a row is an element: of many the end is here', () => {
  const both = new BothStreams();
  const rainbow = (begin) => ({ ...page('stdout', begin, begin + 100, []),
    rows: Array.from({ length: 100 }, (_, place) => ({ at: begin + place, spans: Array(100).fill(['x', 'f1']) })) });
  both.start([rainbow(0)]);
  for (let begin = 100; begin < 1000; begin += 100) both.take(rainbow(begin));
  assert.equal(both.items.length, 200);
  assert.equal(both.items.at(-1).row.at, 999);
  assert.deepEqual([both.past, both.isCut.stdout], [0, true]);
});
