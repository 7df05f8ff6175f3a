// At stake: the page says what is to be done next in its own words, and leads there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from '../../../agentctl/interfaces/web/page/js/places.js';
import { STEPS, stepsInWords } from '../../../agentctl/interfaces/web/page/js/text/next_steps.js';

const asked = (step, of = '', task = '') => ({ hint: 'GET /x', steps: [{ step, of, task, words: 'GET /x' }] });

test('a step is a link of the page', () => {
  assert.deepEqual(stepsInWords(asked('retry', 'a b'), '/tasks/t%201/workers/x/resume'), {
    text: '', links: [{ href: '/tasks/t%201/workers/a%20b', text: 'Try it again there: a b' }],
  });
  const tasks = asked('tasks');
  assert.deepEqual(stepsInWords(tasks, '/tasks/nope'), { text: '', links: [{ href: '/tree', text: 'All tasks' }] });
});

test('words that name no step are said as they are', () => {
  assert.deepEqual(stepsInWords({ hint: 'known: a, b' }), { text: 'known: a, b', links: [] });
  assert.deepEqual(stepsInWords({}), { text: '', links: [] });
});

test('a worker that is in another task is a link to it there', () => {
  const path = '/tasks/t/workers/a%20b/diff';
  assert.deepEqual(stepsInWords(asked('in another task', 'a b', 'other'), path), {
    text: '', links: [{ href: '/tasks/other/workers/a%20b', text: 'a b is in task other' }],
  });
  const several = ['b', 'c'].map((task) => asked('in another task', 'a b', task).steps[0]);
  assert.deepEqual(stepsInWords({ hint: 'x', steps: several }, path).links, [
    { href: '/tasks/b/workers/a%20b', text: 'a b is in task b' },
    { href: '/tasks/c/workers/a%20b', text: 'a b is in task c' },
  ]);
  const said = 'a is in task other: /api/v1/tasks/other';
  assert.deepEqual(
    stepsInWords({ hint: 'x', steps: [{ step: '', of: '', task: '', words: said }] }, path),
    { text: said, links: [] },
    'no place is taken out of words',
  );
});

test('a step that only another surface has is not said in its words', () => {
  for (const step of ['paths', 'of a later version']) {
    assert.deepEqual(stepsInWords(asked(step)), { text: '', links: [] });
  }
  for (const step of Object.keys(STEPS)) {
    const { text, links } = stepsInWords(asked(step, 'x'), '/tasks/t');
    assert.doesNotMatch([text, ...links.map((link) => link.text)].join(' '), /GET|POST|\/api\//);
  }
});

test('all steps are said, each that has a place leads there once, and another task is the one of the step', () => {
  const steps = [
    { step: '', of: '', task: '', words: 'queue waits for a free one' },
    { step: 'unpause', of: 'a', task: 'other', words: 'POST …' }, { step: 'tasks', of: '', task: '', words: 'GET …' },
    { step: 'name a task', of: '', task: '', words: 'GET …' },
  ];
  assert.deepEqual(stepsInWords({ hint: 'GET /x', steps }, '/tasks/t'), {
    text: 'queue waits for a free one',
    links: [
      { href: '/tasks/other/workers/a', text: 'Let it go on there: a' }, { href: '/tree', text: 'All tasks' },
    ],
  });
});

test('each link leads to a view', () => {
  for (const step of Object.keys(STEPS)) {
    for (const { href } of stepsInWords(asked(step, 'x'), '/tasks/t').links) {
      assert.notEqual(placeOf(`http://x${href}`).view, 'nowhere', `${step}: ${href}`);
    }
  }
});

test('of two steps at one place both are said', () => {
  const steps = ['send', 'cancel', 'send'].map((step) => ({ step, of: 'a', task: 't', words: 'POST …' }));
  assert.deepEqual(stepsInWords({ hint: 'POST /x', steps }), {
    text: 'Stop it there: a', links: [{ href: '/tasks/t/workers/a', text: 'Write to a' }],
  });
});

test('several steps are sentences, or parts of one', () => {
  const said = (...names) => stepsInWords({
    hint: 'x', steps: names.map((step) => ({ step: STEPS[step] ? step : '', of: 'x', task: '', words: step })),
  }).text;
  assert.equal(said('spawn', 'another name'), 'n starts one. Choose another name.');
  const vouched = 'take it out; or read it, and vouch for it in a terminal: agentctl trust x';
  assert.equal(said('take it out', 'vouch'), vouched);
  assert.equal(said('queue waits for one', 'new'), 'queue waits for one. Make a task.');
});
