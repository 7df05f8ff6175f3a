// At stake: the page says what is to be done next in its own words, and leads there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STEPS, stepInWords } from '../../../agentctl/interfaces/web/page/js/text/next_steps.js';

test('a step is a link of the page', () => {
  const hint = 'POST …/workers/a%2F/retry';
  assert.deepEqual(stepInWords({ hint, next: { step: 'retry', of: 'a b' } }, '/tasks/t%201/workers/x/resume'), {
    text: '', link: { href: '/tasks/t%201/workers/a%20b', text: 'Try it again there: a b' },
  });
  const tasks = { hint: 'GET /api/v1/tasks lists them', next: { step: 'tasks', of: '' } };
  assert.deepEqual(stepInWords(tasks, '/tasks/nope'), {
    text: '', link: { href: '/tree', text: 'All tasks' },
  });
});

test('words that name no step are said as they are', () => {
  assert.deepEqual(stepInWords({ hint: 'known: a, b', next: null }), { text: 'known: a, b' });
  assert.deepEqual(stepInWords({}), { text: '' });
});

test('a step that only another surface has is not said in its words', () => {
  for (const step of ['paths', 'of a later version']) {
    assert.deepEqual(stepInWords({ hint: 'GET /x', next: { step, of: '' } }), { text: '', link: undefined });
  }
  for (const step of Object.keys(STEPS)) {
    const { text, link } = stepInWords({ hint: 'GET /x', next: { step, of: 'x' } }, '/tasks/t');
    assert.doesNotMatch(`${text} ${link?.text ?? ''}`, /GET|POST|\/api\//);
  }
});
