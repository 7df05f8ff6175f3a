import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as words from '../../../agentctl/interfaces/web/page/js/words.js';

const worker = (more = {}) => ({ taskId: 't', agentInstance: 'a', status: 'running', ...more });

test('durations', () => {
  const found = [0, 4.24, 59.9, 65, 3600, 7380, 172_800, 273_600].map((one) => words.duration(one));
  assert.deepEqual(found, ['0.0s', '4.2s', '59s', '1m05s', '1h00m', '2h03m', '2d00h', '3d04h']);
  assert.equal(words.duration(4.24, true), '4s');
  assert.deepEqual([null, undefined, NaN, Infinity].map((one) => words.duration(one)), ['-', '-', '-', '-']);
});

test('numbers', () => {
  const short = [0, 999, 1000, 99_949, 123_456, 2_500_000].map(words.shortNumber);
  assert.deepEqual(short, ['0', '999', '1.0k', '99.9k', '123k', '2.5M']);
  assert.deepEqual([null, 0, 999, 1500, 2e6].map(words.bytes), ['', '0 B', '999 B', '1.5 kB', '2.0 MB']);
  assert.deepEqual([0, 1, 1234].map((one) => words.counted(one, 'file')), ['0 files', '1 file', '1,234 files']);
  assert.deepEqual([null, undefined, 0, -1, 0.004, 12.5].map(words.costWords), ['', '', '', '', '$0.00', '$12.50']);
});

test('times that are not valid', () => {
  assert.equal(words.clock('yesterday'), '--:--');
  assert.equal(words.secondsSince('yesterday'), null);
  assert.equal(words.secondsSince(null), null);
  assert.equal(words.secondsSince('2026-01-01T00:00:10Z', Date.parse('2026-01-01T00:00:00Z')), 0, 'clocks differ');
});

test('signs: what is more pressing than the state comes first, and an end is an end', () => {
  assert.equal(words.signOf(worker()).glyph, '●');
  assert.equal(words.signOf(worker({ paused: true })).words, 'paused');
  assert.equal(words.signOf(worker({ idle: {} })).words, 'waits for a message');
  assert.equal(words.signOf(worker({ health: 'elsewhere' })).words, 'on another machine');
  assert.equal(words.signOf(worker({ health: 'unsupervised' })).words, 'its guard is gone');
  for (const more of [{ paused: true }, { health: 'unknown' }, { health: 'held' }]) {
    assert.equal(words.signOf(worker({ ...more, status: 'failed' })).glyph, '✗');
  }
});

test('words that every object has are not states', () => {
  for (const status of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
    assert.deepEqual(words.signOf(worker({ status })), { glyph: '·', role: 'queued', words: status });
    assert.equal(words.signOfTask({ taskId: 't', state: status, status }).glyph, '·');
    assert.equal(words.windowWords(status), status);
    assert.equal(words.endWords(worker({ status: 'failed', reason: status })), `failed (${status})`);
    assert.equal(words.standing(worker({ health: status })), '');
  }
});

test('ends', () => {
  assert.equal(words.endWords(worker({ status: 'failed', reason: 'exit_code', exitCode: 3 })), 'failed (exit_code 3)');
  assert.equal(words.endWords(worker({ status: 'failed', reason: 'exit_code', exitCode: 0 })), 'failed (exit_code 0)');
  assert.equal(words.endWords(worker({ status: 'failed', reason: 'signal', signal: 9 })), 'failed (signal 9)');
  assert.equal(words.endWords(worker({ status: 'completed' })), 'completed');
});

test('where a worker on a node is, or why it is not there yet', () => {
  const on = (placement, more) => words.standing(worker({ placement: { runner: 'slurm', ...placement }, ...more }));
  assert.equal(on({ node: 'n1', state: 'running' }), 'on n1');
  assert.equal(on({ state: 'pending', reason: 'Priority' }), 'slurm: pending (Priority)');
  assert.equal(on({ state: 'pending', reason: 'None' }), 'slurm: pending');
  assert.equal(on({}), 'slurm: submitting');
  assert.equal(on({ state: 'unknown' }), 'slurm does not answer');
  assert.equal(on({ node: 'n1', problem: 'lost' }), 'lost');
  assert.equal(on({ node: 'n1' }, { endedAt: 'x' }), '');
});

test('what a row says: its question alone, or all that there is', () => {
  const question = { line: 'May\nI?', isPermission: true };
  const said = (more) => words.saidOf(worker(more));
  assert.deepEqual(said({ questions: [question, question], message: 'x' }), [['May I? (+1)', 'blocked']]);
  const agent = { agent: 'explore', driver: 'claude', lastWords: 'Look\x1b' };
  assert.deepEqual(said(agent), [['explore:claude', 'agent'], ['Look\\x1b', 'text']]);
  const failed = { ...agent, status: 'failed', reason: 'exit_code', exitCode: 3, lastLine: 'no\nroute' };
  const [why, , how] = said(failed);
  assert.deepEqual([why, how], [['no route', 'text'], ['failed (exit_code 3)', 'failed']]);
  assert.deepEqual(words.saidOf(worker({ agent: 'command', command: 'make' })), [['make', 'dim']]);
  const foreign = { taskId: 't', state: 'x', status: 'x', own: false };
  assert.deepEqual(words.saidOf(worker(), foreign), [['foreign', 'blocked']]);
});

test('a worker is told in the words of the glossary', () => {
  for (const status of ['queued', 'running', 'blocked', 'completed', 'failed', 'cancelled']) {
    assert.equal(words.signOf(worker({ status })).words, status);
    assert.equal(words.signOfTask({ taskId: 't', state: 'x', status }).words, status);
  }
  assert.equal(words.standing(worker({ status: 'failed', reason: 'exit_code', exitCode: 3 })), 'exit_code 3');
  assert.equal(words.standing(worker({ status: 'queued', after: ['a', 'b'] })), 'after a, b');
  assert.equal(words.agentWords(worker({ agent: 'general', driver: 'codex' })), 'general:codex');
  assert.equal(words.agentWords(worker({ agent: 'command' })), '');
});

test('progress', () => {
  assert.equal(words.progressWords({ percent: 33.333, text: 'a\nb' }), '33.3% a b');
  assert.equal(words.progressWords({ percent: 0 }), '0%');
  assert.equal(words.progressWords({ percent: NaN, text: null }), '');
  assert.equal(words.progressWords(null), '');
});

test('times of a worker: of the question, of the queue, of its work', () => {
  const now = Date.parse('2026-01-01T00:01:00Z');
  const at = '2026-01-01T00:00:00Z';
  assert.deepEqual(words.timeOf(worker({ questions: [{ askedAt: at }] }), now), [60, true]);
  assert.deepEqual(words.timeOf(worker({ status: 'queued', queuedAt: at }), now), [60, true]);
  assert.deepEqual(words.timeOf(worker({ startedAt: at }), now), [60, true]);
  assert.deepEqual(words.timeOf(worker({ status: 'completed', durationSeconds: 3 }), now), [3, false]);
  assert.deepEqual(words.timeOf(worker({ status: 'failed' }), now), [null, false]);
});
