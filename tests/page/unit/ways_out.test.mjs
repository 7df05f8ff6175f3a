// At stake: the page offers what it can do itself, and a command only where nothing else helps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inPage, isToBeTyped } from '../../../agentctl/interfaces/web/page/js/text/ways_out.js';

const here = { task: 't1', instance: 'a', stream: 'stderr' };
const step = (verb, more = {}) => ({ verb, taskId: 't1', workers: ['a'], ...more });

test('what shows something is a place of the page', () => {
  assert.deepEqual(inPage(step('logs'), here), {
    kind: 'open', task: 't1', instance: 'a', tab: 'output', query: { stream: 'stderr' }, words: 'See its output',
  });
  assert.equal(inPage(step('result'), here).tab, 'result');
  assert.deepEqual(inPage(step('answer', { workers: ['b'], question: 'q1' }), here), {
    kind: 'open', task: 't1', instance: 'b', tab: '', query: { question: 'q1' }, words: 'Answer b',
  });
  assert.equal(inPage(step('wait', { workers: ['b'] }), here).words, 'Open b');
  assert.equal(inPage(step('wait'), here), null);
});

test('what does something is a button, about all that it names', () => {
  assert.deepEqual(inPage(step('retry', { workers: ['before', 'a'] }), here), {
    kind: 'do', task: 't1', instances: ['before', 'a'], action: 'retry', words: 'Try again…',
  });
  assert.equal(inPage(step('unpause', { workers: [] }), here).action, 'letQueueGo');
  assert.equal(inPage(step('unpause'), here).action, 'unpause');
  assert.equal(inPage(step('resume-queue', { workers: [] }), here).action, 'giveEnvironment');
});

test('a command is shown where the page has nothing, but never a wait for the worker itself', () => {
  const typed = (one) => isToBeTyped({ text: '', command: 'agentctl …', step: one }, inPage(one, here));
  assert.equal(typed(null), true);
  assert.equal(typed(step('constructor')), true);
  assert.equal(typed(step('why', { root: '/elsewhere/.agentctl' })), true);
  assert.equal(typed(step('wait')), false);
  assert.equal(typed(step('cancel')), false);
  assert.equal(isToBeTyped({ text: 'by itself', command: null, step: null }, null), false);
});
