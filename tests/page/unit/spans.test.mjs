import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colour, looksOf, partsOf } from '../../../agentctl/interfaces/web/page/js/text/spans.js';

test('a style becomes classes of the theme, and colours of its own', () => {
  assert.deepEqual(looksOf(''), { classes: '' });
  assert.deepEqual(looksOf('bold underline f1 b12'), { classes: 't-bold t-underline t-f1 t-b12' });
  assert.deepEqual(looksOf('f196 b#0a0b0c'), { classes: 't-f t-b', f: '#ff0000', b: '#0a0b0c' });
});

test('inverse swaps text and ground', () => {
  assert.deepEqual(looksOf('inverse'), { classes: 't-inverse' });
  assert.deepEqual(looksOf('bold inverse f1'), { classes: 't-bold t-b1' });
  assert.deepEqual(looksOf('inverse f1 b2'), { classes: 't-b1 t-f2' });
});

test('the colours beyond the first 16 are those of terminals', () => {
  assert.deepEqual([16, 21, 231, 232, 255].map(colour), ['#000000', '#0000ff', '#ffffff', '#080808', '#eeeeee']);
});

test('a style that nobody knows becomes a class and nothing else', () => {
  assert.deepEqual(looksOf('f#red"onload b999999'), { classes: 't-f#red"onload t-b999999' });
});

test('what is searched for is marked across styles, each place once', () => {
  const row = { at: 0, spans: [['an o'], ['ld OL', 'f1'], ['D one']] };
  const parts = partsOf(row, 'Old');
  assert.deepEqual(parts.filter((part) => part.isHit).map((part) => part.text), ['o', 'ld', 'OL', 'D']);
  assert.equal(parts.map((part) => part.text).join(''), 'an old OLD one');
  assert.deepEqual(parts.map((part) => part.style), ['', '', 'f1', 'f1', 'f1', '', '']);
});

test('without a search a row has the parts that were sent', () => {
  assert.deepEqual(partsOf({ at: 0, spans: [['a', 'f1'], ['b']] }, ''), [
    { text: 'a', style: 'f1', isHit: false }, { text: 'b', style: '', isHit: false },
  ]);
});

test('where small letters are of another length, no wrong place is marked', () => {
  const parts = partsOf({ at: 0, spans: [['\u0130\u0130 old one']] }, 'old');
  assert.deepEqual(parts, [{ text: '\u0130\u0130 old one', style: '', isHit: false }]);
});
