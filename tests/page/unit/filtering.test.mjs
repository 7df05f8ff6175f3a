import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterOf, termsOf, wordsOf } from '../../../agentctl/interfaces/web/page/js/filtering.js';

const worker = (more = {}) => ({ taskId: 't1', agentInstance: 'a1', status: 'running', need: 'working', ...more });
const task = { taskId: 't1', title: 'Log in with a key', state: 'working' };
const shows = (text, more) => filterOf(text)(worker(more), task);

test('words: places, negations, quotes', () => {
  assert.deepEqual(wordsOf('s:failed -n:old "log in" a:\'x y\''), [
    { where: 's', text: 'failed', isNegated: false }, { where: 'n', text: 'old', isNegated: true },
    { where: '', text: 'log in', isNegated: false }, { where: 'a', text: 'x y', isNegated: false },
  ]);
});

test('what is searched for is what was typed', () => {
  assert.deepEqual(termsOf('s:failed -n:old "log in" x'), ['s:failed', '-n:old', 'log in', 'x']);
});

test('a search has the words that the server would make of it: an apostrophe is not a quote', () => {
  assert.deepEqual(termsOf('lock "no such file" ENOENT "open end'), ['lock', 'no such file', 'ENOENT', 'open end']);
  assert.deepEqual(termsOf('don\'t won\'t'), ['don\'t', 'won\'t']);
  assert.deepEqual(termsOf('\'log in\''), ['\'log', 'in\'']);
  assert.deepEqual(termsOf('say"log in"now ""  "  "'), ['say', 'log in', 'now']);
});

test('while one types, what is not closed yet counts as it is', () => {
  assert.deepEqual(wordsOf('"log in').map((one) => one.text), ['log', 'in']);
  assert.deepEqual(wordsOf('-').map((one) => [one.text, one.isNegated]), [['-', false]]);
  assert.deepEqual(wordsOf('x:y q:').map((one) => [one.where, one.text]), [['', 'x:y'], ['', 'q:']]);
  assert.deepEqual(wordsOf('s:').map((one) => [one.where, one.text]), [['s', '']]);
});

test('nothing to filter shows all', () => {
  assert.equal(filterOf(''), null);
  assert.equal(filterOf('  \t'), null);
});

test('each word has to be there, in whatever case', () => {
  assert.ok(shows('LOG key'));
  assert.ok(!shows('log nowhere'));
  assert.ok(shows('t:t1 n:A1'));
  assert.ok(!shows('n:t1'));
  assert.ok(shows('-nowhere'));
  assert.ok(!shows('-log'));
});

test('states are found by their word, by their need, and by what is unusual', () => {
  assert.ok(shows('s:running'));
  assert.ok(shows('s:needs', { need: 'needs_you', status: 'blocked' }));
  assert.ok(shows('s:timed_out', { status: 'failed', reason: 'timed_out' }));
  assert.ok(shows('s:paused', { paused: true }));
});

test('signs of expressions are text', () => {
  assert.ok(shows('n:a.*', { agentInstance: 'a.*' }));
  assert.ok(!shows('n:a.*'));
});

test('another title is another text, for the same row', () => {
  const row = worker();
  assert.ok(filterOf('key')(row, task));
  assert.ok(!filterOf('key')(row, { ...task, title: 'Other' }));
});
