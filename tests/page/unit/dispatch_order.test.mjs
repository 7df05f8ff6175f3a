import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EMPTY, namesCompleted, orderOf, taskFor, titleFor,
} from '../../../agentctl/interfaces/web/page/js/dispatch_order.js';

const order = (more) => orderOf({ ...EMPTY, ...more });
const refused = (more) => {
  try {
    order(more);
  } catch (error) {
    return `${error.field}: ${error.message}`;
  }
  return null;
};

test('an agent gets what was typed, and nothing that was not', () => {
  assert.deepEqual(order({ what: 'general', prompt: ' do it ' }), { queue: true, agent: 'general', prompt: ' do it ' });
  assert.deepEqual(order({ prompt: 'x', model: ' m ', keep: true, after: 'a, b  c', retries: ' 2 ', budget: '0.5' }), {
    queue: true, prompt: 'x', model: 'm', keep: true, after: ['a', 'b', 'c'], retries: 2, max_budget_usd: 0.5,
  });
});

test('a command gets no options of agents', () => {
  const ofAgents = { model: 'm', keep: true, budget: 'much' };
  const found = order({ what: '!', command: 'make "a b"', ...ofAgents, timeout: '3', worktree: true });
  assert.deepEqual(found, { queue: true, argv: ['make', 'a b'], timeout_seconds: 3, worktree: true });
});

test('what is wrong is said with its field', () => {
  assert.equal(refused({ prompt: ' ' }), 'prompt: there is no work for the agent yet');
  assert.equal(refused({ what: '!' }), 'command: there is no command yet');
  assert.equal(refused({ what: '!', command: 'echo "x' }), 'command: a quote is not closed');
  for (const text of ['x', '1,5', 'Infinity', 'NaN']) {
    assert.equal(refused({ prompt: 'p', timeout: text }), `timeout: ${text} is not a number`);
  }
});

test('the title is the beginning of the work', () => {
  assert.equal(titleFor({ ...EMPTY, prompt: `\n ${'x'.repeat(100)}\nmore` }), 'x'.repeat(60));
  assert.equal(titleFor({ ...EMPTY, what: '!', command: 'make', prompt: 'other' }), 'make');
  assert.equal(titleFor(EMPTY), 'Task');
});

test('the task is the one that is looked at, else the last, else the only one, else none', () => {
  assert.equal(taskFor('a', 'b', ['a', 'b', 'c']), 'a');
  assert.equal(taskFor('foreign', 'b', ['a', 'b']), 'b');
  assert.equal(taskFor(undefined, 'gone', ['a', 'b']), '');
  assert.equal(taskFor(undefined, '', ['a']), 'a');
  assert.equal(taskFor('', '', []), '');
});

test('one more name behind those that were typed', () => {
  const names = ['build', 'lint', 'test'];
  assert.deepEqual(namesCompleted('', names), names);
  assert.deepEqual(namesCompleted('li', names), names);
  assert.deepEqual(namesCompleted('build, li', names), ['build, lint', 'build, test']);
  assert.deepEqual(namesCompleted('build lint ', names), ['build lint test']);
});
