import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MOST_PIECES, MOST_ROWS, RowWindow } from '../../../agentctl/interfaces/web/page/js/text/row_window.js';

const SIZE = 1_000_000;
const rowsOf = (begin, end, word = 'row') => Array.from({ length: (end - begin) / 10 }, (_, place) => (
  { at: begin + 10 * place, spans: [[`${word} ${begin + 10 * place}`]] }));
const page = (begin, end, more = {}) => (
  { stream: 'stdout', rows: rowsOf(begin, end), begin, end, size: SIZE, ended: false, streams: [], ...more });
const placesOf = (found) => found.chunks.flatMap((chunk) => chunk.rows.map((row) => row.at));
const counts = (found) => [found.rows, found.characters];
const really = (found) => [placesOf(found).length, found.chunks.flatMap((chunk) => chunk.rows)
  .reduce((sum, row) => sum + row.spans[0][0].length + 1, 0)];

test('pages at both ends make one text', () => {
  const found = new RowWindow(page(500, 1000));
  found.append(page(1000, 2000));
  found.prepend(page(0, 500));
  assert.deepEqual(placesOf(found), rowsOf(0, 2000).map((row) => row.at));
  assert.deepEqual([found.begin, found.end], [0, 2000]);
  assert.deepEqual(counts(found), really(found));
});

test('rows that have changed are in the place of those that were here', () => {
  const found = new RowWindow(page(0, 1000));
  const keys = found.chunks.map((chunk) => chunk.key);
  assert.equal(found.append({ ...page(990, 1020), rows: rowsOf(990, 1020, 'new') }), true);
  assert.deepEqual(placesOf(found), rowsOf(0, 1020).map((row) => row.at));
  assert.equal(found.rowAt(995).spans[0][0], 'new 990');
  assert.deepEqual(found.chunks.slice(0, keys.length).map((chunk) => chunk.key), keys);
  found.append(page(0, 30));
  assert.deepEqual(placesOf(found), [0, 10, 20]);
  assert.deepEqual(counts(found), really(found));
});

test('nothing new is nothing new', () => {
  const found = new RowWindow(page(0, 100));
  assert.equal(found.append({ ...page(100, 100), rows: [] }), false);
});

test('what is far away is let go of, and can be fetched again', () => {
  const found = new RowWindow(page(0, 10_000));
  for (let at = 10_000; at < 100_000; at += 10_000) {
    found.append(page(at, at + 10_000));
    found.dropAbove();
    assert.ok(found.rows <= MOST_ROWS, `${found.rows}`);
    assert.deepEqual(counts(found), really(found));
  }
  assert.equal(found.begin, placesOf(found)[0]);
  assert.equal(found.end, 100_000);
  while (found.begin > 0) {
    found.prepend(page(Math.max(0, found.begin - 10_000), found.begin));
    found.dropBelow();
  }
  assert.equal(placesOf(found)[0], 0);
  assert.equal(found.end, placesOf(found).at(-1) + 10);
  assert.equal(found.isAtEnd, false);
});

test('a place between rows is in the row before it', () => {
  const found = new RowWindow(page(100, 1000));
  assert.deepEqual([105, 100, 20, 5000].map((at) => found.rowAt(at).at), [100, 100, 100, 990]);
});

test('each letter in a colour of its own is an element: there are not more of them than a page can have', () => {
  const rainbow = (begin, end) => {
    const rows = rowsOf(begin, end).map((row) => ({ ...row, spans: Array.from({ length: 100 }, () => ['x', 'f1']) }));
    return page(begin, end, { rows });
  };
  const piecesIn = (found) => found.chunks.flatMap(({ rows }) => rows).reduce((sum, row) => sum + row.spans.length, 0);
  const found = new RowWindow(rainbow(0, 1000));
  for (let at = 1000; at < 15_000; at += 1000) {
    found.append(rainbow(at, at + 1000));
    found.dropAbove();
    assert.equal(found.pieces, piecesIn(found));
    assert.ok(piecesIn(found) <= MOST_PIECES, `${piecesIn(found)}`);
  }
  assert.equal(found.end, 15_000);
});

test('rows that are here already do not come twice from above', () => {
  const found = new RowWindow(page(500, 1000));
  found.prepend(page(300, 600));
  assert.deepEqual(placesOf(found), rowsOf(300, 1000).map((row) => row.at));
});
