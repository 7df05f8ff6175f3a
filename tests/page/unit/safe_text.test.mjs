import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  distinct, oneLine, plain, plainLines, plainOutput,
} from '../../../agentctl/interfaces/web/page/js/safe_text.js';

test('what would be obeyed is spelled out', () => {
  assert.equal(plain('a\x1b[31mb\x07\r\n\tc'), 'a\\x1b[31mb\\x07\\r\\n\\tc');
  assert.equal(plain('\u202egnp.exe\u2069'), '\\u202egnp.exe\\u2069');
  assert.equal(plain('\u2028\u200f\u061c'), '\\u2028\\u200f\\u061c');
});

test('lines and tabs stay where there may be several lines, and a lone \\r does not', () => {
  assert.equal(plainLines('a\r\nb\tc\rd'), 'a\nb\tc\\rd');
});

test('colours of an output are dropped, and nothing else', () => {
  assert.equal(plainOutput('\x1b[1;31mred\x1b[0m \x1b[2Jx'), 'red \\x1b[2Jx');
});

test('half a character is replaced', () => {
  assert.equal(plain('a\ud800b\udc00c😀'), 'a\ufffdb\ufffdc😀');
});

test('what is not a text is written as one', () => {
  assert.deepEqual([plain(null), plain(undefined), plain(7), plain({})], ['', '', '7', '[object Object]']);
});

test('two texts that look the same are not shown the same where looks allow something', () => {
  const pairs = [
    ['rm x', 'rm\u00a0x'], ['ab', 'a\u200bb'], ['a', 'a\u{e0041}'], ['a', 'a\ufe0f'], ['x', 'x\u3164'],
    ['x', 'x\u2800'], ['a\nb', 'a\r\nb'], ['a', 'a\u00ad'], ['ab', 'a\u2060b'], ['a', 'a\u034f'],
  ];
  for (const [one, other] of pairs) assert.notEqual(distinct(one), distinct(other), JSON.stringify(other));
  for (const [, other] of pairs) assert.match(distinct(other), /\\[uUxr]/);
});

test('letters of any language stay as they are, marks as long as they can be seen', () => {
  for (const text of ['Grüße', '日本語', 'नमस्ते', 'e\u0301', '😀 ok', 'שלום']) assert.equal(distinct(text), text);
  assert.equal(distinct(`e${'\u0301'.repeat(5)}`), `e${'\u0301'.repeat(3)}\\u0301\\u0301`);
  assert.equal(distinct('\u0301x'), '\\u0301x');
});

test('one line is one line, of so many characters at most', () => {
  assert.equal(oneLine('  a\n\n b\t c '), 'a b c');
  assert.equal(oneLine('abcdef', 4), 'abc…');
  assert.equal(oneLine('x'.repeat(10_000_000)).length, 300);
});
