// At stake: the page says what is to be done next in its own words, and leads there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STEPS, stepInWords } from '../../../agentctl/interfaces/web/page/js/text/next_steps.js';

const asked = (step, of = '', task = '') => ({ hint: 'GET /x', steps: [{ step, of, task, words: 'GET /x' }] });

test('a step is a link of the page', () => {
    assert.deepEqual(stepInWords(asked('retry', 'a b'), '/tasks/t%201/workers/x/resume'), {
    text: '', link: { href: '/tasks/t%201/workers/a%20b', text: 'Try it again there: a b' },
  });
  const tasks = asked('tasks');
  assert.deepEqual(stepInWords(tasks, '/tasks/nope'), {
    text: '', link: { href: '/tree', text: 'All tasks' },
  });
});

test('words that name no step are said as they are', () => {
  assert.deepEqual(stepInWords({ hint: 'known: a, b' }), { text: 'known: a, b' });
  assert.deepEqual(stepInWords({}), { text: '' });
});

test('a step that only another surface has is not said in its words', () => {
  for (const step of ['paths', 'of a later version']) {
    assert.deepEqual(stepInWords(asked(step)), { text: '', link: undefined });
  }
  for (const step of Object.keys(STEPS)) {
    const { text, link } = stepInWords(asked(step, 'x'), '/tasks/t');
    assert.doesNotMatch(`${text} ${link?.text ?? ''}`, /GET|POST|\/api\//);
  }
});

test('all steps are said, the first link leads there, and another task is the one of the step', () => {
  const steps = [
    { step: '', of: '', task: '', words: 'queue waits for a free one' },
    { step: 'unpause', of: 'a', task: 'other', words: 'POST …' }, { step: 'tasks', of: '', task: '', words: 'GET …' },
  ];
  assert.deepEqual(stepInWords({ hint: 'GET /x', steps }, '/tasks/t'), {
    text: 'queue waits for a free one; All tasks',
    link: { href: '/tasks/other/workers/a', text: 'Let it go on there: a' },
  });
});
