import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excerptFor } from '../../../agentctl/interfaces/web/page/js/excerpts.js';

const hit = { excerpt: 'abcdefghijKLMnopqrstuv', begin: 10, end: 13 };

test('all of an excerpt is shown where there is room', () => {
  assert.deepEqual(excerptFor(hit, 100), ['abcdefghij', 'KLM', 'nopqrstuv']);
  assert.deepEqual(excerptFor(hit, 22), ['abcdefghij', 'KLM', 'nopqrstuv']);
});

test('what was found stays, with as much on both sides', () => {
  assert.deepEqual(excerptFor(hit, 9), ['…hij', 'KLM', 'nop…']);
  assert.deepEqual(excerptFor(hit, 2), ['…', 'KLM', '…']);
});

test('what one side does not need is the other one\'s', () => {
  assert.deepEqual(excerptFor({ excerpt: 'KLMnopqrstuv', begin: 0, end: 3 }, 8), ['', 'KLM', 'nopqr…']);
  assert.deepEqual(excerptFor({ excerpt: 'abcdefghijKLM', begin: 10, end: 13 }, 8), ['…fghij', 'KLM', '']);
});

test('places are those of characters, and a hit need not have any', () => {
  assert.deepEqual(excerptFor({ excerpt: '😀😀x😀', begin: 2, end: 3 }, 9), ['😀😀', 'x', '😀']);
  assert.deepEqual(excerptFor({}, 9), ['', '', '']);
});
