// At stake: each thing that needs a person is told once, in words that nothing can be hidden in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needNotices, newNotices } from '../../../agentctl/interfaces/web/page/js/text/need_notices.js';

const failed = { taskId: 't1', agentInstance: 'a', status: 'failed', need: 'failed', endedAt: '1' };
const worker = (more) => ({ ...failed, ...more });
const questions = [{ id: 'q1', line: 'Delete?\u202e', isPermission: true }];
const asks = worker({ status: 'blocked', need: 'needs_you', questions });

test('a question, a failure and an answer are told, and nothing else', () => {
  const found = needNotices([
    ['t1/a', asks], ['t1/b', worker({ agentInstance: 'b', reason: 'exit_code', exitCode: 1, lastLine: 'GPL' })],
    ['t1/c', worker({ agentInstance: 'c', status: 'completed', need: 'review', lastWords: 'Done.' })],
    ['t1/d', worker({ agentInstance: 'd', status: 'running', need: 'working' })],
  ]);
  assert.deepEqual([...found.values()].map(({ title, body }) => [title, body]), [
    ['a asks for permission', 'Delete?\\u202e'], ['b failed (exit_code 1)', 'GPL'], ['c is ready for review', 'Done.'],
  ]);
});

test('what is known is not told again, and many become one', () => {
  const now = needNotices(Array.from({ length: 9 }, (_, at) => [`t1/w${at}`, worker({ agentInstance: `w${at}` })]));
  assert.equal(newNotices(now, new Set(now.keys())).length, 0);
  assert.deepEqual(newNotices(now, new Set()).map((one) => one.title), ['9 things need you']);
  assert.equal(newNotices(now, new Set([...now.keys()].slice(2))).length, 2);
});
