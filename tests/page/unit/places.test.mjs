import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isList, placeOf, withValue } from '../../../agentctl/interfaces/web/page/js/places.js';

const at = (path) => {
  const { query: _, ...place } = placeOf(`http://127.0.0.1:1${path}`);
  return [place.view, place.task, place.instance, place.tab].join(' ').trim();
};

test('addresses and what they name', () => {
  const named = {
    '/': 'needs', '/tree': 'tree', '/search?q=x': 'search', '/tasks/t1': 'task t1  workers',
    '/tasks/t1/usage': 'task t1  usage', '/tasks/t1/workers': 'task t1  workers',
    '/tasks/t1/workers/a1': 'worker t1 a1', '/tasks/t1/workers/a1/diff': 'worker t1 a1 diff',
    '/tasks/a%20b/workers/c%2Fd': 'worker a b c/d', '//tree/': 'tree',
  };
  for (const [path, place] of Object.entries(named)) assert.equal(at(path), place, path);
});

test('what names nothing is nowhere', () => {
  for (const path of [
    '/x', '/tasks', '/tree/x', '/search/x', '/tasks/t1/other', '/tasks/t1/usage/x', '/tasks/t1/workers/a1/other',
    '/tasks/t1/workers/a1/diff/x', '/tasks/%zz', '/tasks/t1/workers/a1/constructor',
  ]) assert.equal(at(path), 'nowhere', path);
});

test('lists are those views whose address has a filter', () => {
  const lists = ['/', '/tree', '/tasks/t1', '/tasks/t1/usage', '/search', '/tasks/t1/workers/a1', '/x']
    .filter((path) => isList(placeOf(`http://127.0.0.1:1${path}`)));
  assert.deepEqual(lists, ['/', '/tree', '/tasks/t1']);
});

test('a value of an address', () => {
  const query = new URLSearchParams('question=q1');
  const found = withValue(query, 'filter', 's:failed "log in"');
  assert.equal(`${found}`, 'question=q1&filter=s%3Afailed+%22log+in%22');
  assert.equal(`${withValue(found, 'filter', '')}`, 'question=q1');
  assert.equal(`${query}`, 'question=q1');
});
