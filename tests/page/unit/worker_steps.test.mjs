import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyTabs, nextStep } from '../../../agentctl/interfaces/web/page/js/text/worker_steps.js';

const worker = (more) => ({ taskId: 't1', agentInstance: 'a', status: 'running', ...more });
const done = { status: 'completed', driver: 'claude' };

test('the next step follows from the state', () => {
  const wanted = [
    [worker({ paused: true }), 1, 'answer'], [worker({}), 0, ''], [worker({ status: 'queued' }), 0, ''],
    [worker({ status: 'failed', changedFiles: 3 }), 0, 'error'], [worker({ ...done, changedFiles: 3 }), 0, 'diff'],
    [worker({ changedFiles: 3 }), 0, ''], [worker({ idle: {}, changedFiles: 3 }), 0, 'diff'],
    [worker({ idle: {} }), 0, 'send'], [worker({ paused: true }), 0, 'unpause'], [worker(done), 0, 'result'],
    [worker({ status: 'completed' }), 0, ''], [worker({ status: 'cancelled', paused: true }), 0, ''],
  ];
  for (const [one, questions, step] of wanted) {
    assert.equal(nextStep(one, 'output', questions), step, JSON.stringify(one));
  }
});

test('a step that is on the screen is not offered', () => {
  assert.equal(nextStep(worker({ status: 'failed' }), 'why', 0), '');
  assert.equal(nextStep(worker({ ...done, changedFiles: 1 }), 'diff', 0), '');
  assert.equal(nextStep(worker({}), 'questions', 1), '');
  assert.equal(nextStep(worker({}), 'transcript', 1), 'answer');
});

test('empty tabs are those of which that is known', () => {
  const empty = (one, shown = null) => [...emptyTabs(worker(one), shown)].sort().join(' ');
  assert.equal(empty({}), 'diff transcript');
  assert.equal(empty({}, { questions: [] }), 'diff questions transcript');
  assert.equal(empty({ driver: 'claude', changedFiles: 2 }, { questions: [{ id: 'q1' }] }), '');
  assert.equal(empty({ driver: 'claude' }, { worktree: {}, questions: [{ id: 'q1' }] }), '');
  assert.equal(empty({ ...done }, { worktree: {}, questions: [{ id: 'q1' }] }), 'diff');
  assert.equal(empty({ progress: {}, questions: [{ id: 'q1' }] }, { questions: [] }), 'diff');
});
