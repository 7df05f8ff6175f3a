import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawnRows, forgetHeights, RowPlaces } from '../../../agentctl/interfaces/web/page/js/row_heights.js';

const KEYS = ['a', 'b', 'c', 'd'];
const places = (heights = {}, keys = KEYS) => new RowPlaces(keys, new Map(Object.entries(heights)), 10);

test('rows are below each other, by what was measured or else by the estimate', () => {
  assert.deepEqual([...places({ b: 35 }).tops], [0, 10, 45, 55, 65]);
  assert.equal(places({ b: 35 }).height, 65);
  assert.equal(places({}, []).height, 0);
});

test('the row at a line, also beyond both ends', () => {
  const found = places({ b: 35 });
  assert.deepEqual([-5, 0, 9.9, 10, 44, 45, 64, 65, 1e9].map((y) => found.indexAt(y)), [0, 0, 0, 1, 1, 2, 3, 3, 3]);
  assert.equal(places({}, []).indexAt(7), 0);
});

test('whatever comes above a place or turns out to be higher, its line is in the same row', () => {
  const before = places().placeAt(25);
  assert.deepEqual(before, { key: 'c', into: 5 });
  assert.equal(places({ a: 50, b: 35 }).lineOf(before), 90);
  assert.equal(places({}, ['x', 'y', ...KEYS]).lineOf(before), 45);
  assert.equal(places({ c: 3 }).lineOf(before), 23, 'no further than the row goes');
  assert.equal(places({}, ['a', 'b']).lineOf(before), null);
});

test('no row stays where none is: at the top of a list, so that what is new there is seen, and below it', () => {
  assert.deepEqual([-1, 0, 40, 99].map((y) => places().placeAt(y)), [null, null, null, null]);
});

test('names that every object has are keys like others', () => {
  assert.deepEqual([...places({}, ['constructor', '__proto__']).tops], [0, 10, 20]);
});

test('drawn are the rows near the screen and those that have to exist, in their order, each once', () => {
  assert.deepEqual(drawnRows(-10, 2, [], 5), [0, 1]);
  assert.deepEqual(drawnRows(2, 99, [0, 3, -1, 7], 5), [0, 2, 3, 4]);
  assert.deepEqual(drawnRows(50, 60, [], 5), []);
  assert.deepEqual(drawnRows(0, 40, [], 0), []);
});

test('a list of a hundred thousand rows is laid out at once', () => {
  const keys = Array.from({ length: 100_000 }, (_, at) => `t/${at}`);
  const began = performance.now();
  const found = new RowPlaces(keys, new Map(keys.map((key, at) => [key, 20 + (at % 3)])), 10);
  assert.equal(found.keys[found.indexAt(found.height / 2)], 't/50000');
  assert.ok(performance.now() - began < 2000);
});

test('a list that grows at its end keeps its places, and a height that is measured counts from there on', () => {
  const keys = [...KEYS];
  const heights = new Map();
  const found = new RowPlaces(keys, heights, 10);
  for (let more = 0; more < 40; more += 1) {
    keys.push(`more-${more}`);
    if (more % 3 === 0) heights.set(`more-${more}`, 25);
    found.extend();
    const fresh = new RowPlaces(keys, heights, 10);
    assert.equal(found.height, fresh.height);
    assert.deepEqual([...found.tops.slice(0, keys.length + 1)], [...fresh.tops]);
  }
  heights.set('b', 70);
  found.remeasure(1);
  assert.deepEqual([...found.tops.slice(0, keys.length + 1)], [...new RowPlaces(keys, heights, 10).tops]);
});

test('heights of rows that are gone are forgotten, once they are many', () => {
  const heights = new Map(Array.from({ length: 3000 }, (_, at) => [at, 20]));
  forgetHeights(heights, [1, 2]);
  assert.deepEqual([...heights.keys()], [1, 2]);
  forgetHeights(heights, [1]);
  assert.equal(heights.size, 2, 'few are left alone');
});
