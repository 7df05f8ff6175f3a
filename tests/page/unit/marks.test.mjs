// Who is marked, whatever comes and goes.
import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { Marks } from '../../../agentctl/interfaces/web/page/js/marks.js';

const workersOf = (...names) => new Map(names.map((name) => [`t/${name}`, { agentInstance: name, queuedAt: `at ${name}` }]));
const keys = (...names) => names.map((name) => `t/${name}`);

test('a mark comes and goes', () => {
  const marks = new Marks();
  const workers = workersOf('a', 'b');
  marks.toggle('t/b', workers);
  marks.toggle('t/a', workers);
  deepEqual(marks.keys(), keys('a', 'b'));
  marks.toggle('t/b', workers);
  deepEqual(marks.keys(), keys('a'));
  marks.toggle('t/nobody', workers);
  equal(marks.size, 1);
});

test('a range goes from the last one, and all of it becomes what its end becomes', () => {
  const marks = new Marks();
  const workers = workersOf('a', 'b', 'c', 'd', 'e');
  const order = keys('e', 'd', 'c', 'b', 'a');
  marks.toggle('t/b', workers, order);
  deepEqual(marks.keys(), keys('b'));
  marks.toggle('t/d', workers, order);
  deepEqual(marks.keys(), keys('b', 'c', 'd'));
  marks.toggle('t/c', workers, order);
  deepEqual(marks.keys(), keys('b'));
  marks.toggle('t/a', workers, []);
  deepEqual(marks.keys(), keys('a', 'b'));
});

test('all are marked, and none if all are', () => {
  const marks = new Marks();
  const workers = workersOf('a', 'b', 'c');
  marks.toggle('t/c', workers);
  marks.toggleAll(keys('a', 'b'), workers);
  equal(marks.size, 3);
  marks.toggleAll(keys('a', 'b'), workers);
  equal(marks.size, 0);
});

test('a mark goes with its worker, and is not another one\'s of the same name', () => {
  const marks = new Marks();
  const workers = workersOf('a', 'b', 'c');
  marks.set(keys('a', 'b', 'c'), true, workers);
  equal(marks.dropGone(workers), false);
  workers.delete('t/a');
  workers.set('t/b', { agentInstance: 'b', queuedAt: 'later' });
  workers.set('t/c', { agentInstance: 'c', queuedAt: 'at c', status: 'completed' });
  equal(marks.dropGone(workers), true);
  deepEqual(marks.keys(), keys('c'));
});

test('who is left alone stands below the reason', () => {
  const marks = new Marks();
  marks.set(keys('a', 'b', 'c', 'd'), true, workersOf('a', 'b', 'c', 'd'));
  const { acting, leftAlone } = marks.parted((key) => ({ 't/b': 'over', 't/d': 'over', 't/c': 'hidden' })[key] ?? '');
  deepEqual(acting, keys('a'));
  deepEqual([...leftAlone], [['over', keys('b', 'd')], ['hidden', keys('c')]]);
});
