import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inWords, isTelling, labelOf, valueWords } from '../../../agentctl/interfaces/web/page/js/text/fact_words.js';

test('keys are spelled for people', () => {
  const named = {
    queuedAt: 'Queued', maxParkSeconds: 'Max park', exitCode: 'Exit code', pid: 'Process', at: 'At',
    constructor: 'Constructor',
  };
  for (const [key, words] of Object.entries(named)) assert.equal(labelOf(key), words, key);
});

test('what says nothing is left out', () => {
  const silent = [null, undefined, false, '', 0, [], {}, { a: null, b: [{}] }, [null]];
  for (const value of silent) assert.equal(isTelling('x', value), false, JSON.stringify(value));
  for (const value of [true, 'no', 1, -1, [1], { a: { b: 'c' } }]) {
    assert.equal(isTelling('x', value), true, JSON.stringify(value));
  }
  assert.equal(isTelling('exitCode', 0), true);
  assert.equal(isTelling('x', { exitCode: 0 }), true);
});

test('values are times, durations and sizes', () => {
  assert.equal(valueWords('timeoutSeconds', 3600), '1h00m');
  assert.equal(valueWords('maxOutputBytes', 1_073_741_824), '1073.7 MB');
  assert.match(valueWords('endedAt', '2020-11-30T02:40:16.758Z'), /30 Nov/);
  assert.equal(valueWords('pid', 20471), '20471');
  assert.equal(valueWords('input', 41010), '41,010');
  assert.equal(valueWords('paused', true), 'yes');
});

test('a document in one line', () => {
  const told = [
    [{ pid: 31666, start: 1427450, shimPid: 31657 }, 'process 31666 · start 1427450 · guard process 31657'],
    [{ exitCode: 0, paused: true, note: null, costUsd: 0.25 }, 'exit code 0 · paused · US dollars 0.25'],
    [{ lastLine: 'no · exit code 0', of: ['a'] }, 'last line "no · exit code 0" · of ["a"]'],
  ];
  for (const [value, words] of told) assert.equal(inWords(value), words);
});
