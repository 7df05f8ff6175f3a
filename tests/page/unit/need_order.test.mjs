import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NeedOrder } from '../../../agentctl/interfaces/web/page/js/need_order.js';

const worker = (need, needSince = '') => ({ taskId: 't', agentInstance: 'x', status: 'running', need, needSince });
const keys = (order, need) => order.of(need).map((rank) => rank.key);

test('who has waited longest is first; of what is done the latest', () => {
  const order = new NeedOrder();
  order.replace(new Map([
    ['t/b', worker('needs_you', '2')], ['t/a', worker('needs_you', '1')], ['t/d', worker('done', '1')],
    ['t/c', worker('done', '2')], ['t/g', worker('failed', '1')], ['t/h', worker('failed', '2')],
    ['t/f', worker('working', '1')], ['t/e', worker('working', '1')],
  ]));
  assert.deepEqual(keys(order, 'needs_you'), ['t/a', 't/b']);
  assert.deepEqual(keys(order, 'done'), ['t/c', 't/d']);
  assert.deepEqual(keys(order, 'failed'), ['t/h', 't/g']);
  assert.deepEqual([...order.groups.keys()].slice(0, 4), ['needs_you', 'review', 'failed', 'working']);
  assert.deepEqual(keys(order, 'working'), ['t/e', 't/f'], 'by name where the time is the same');
});

test('one by one is the same as all at once', () => {
  let seed = 7;
  const next = (most) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % most;
  };
  const needs = ['needs_you', 'review', 'failed', 'working', 'queued', 'done'];
  const order = new NeedOrder();
  const workers = new Map();
  for (let step = 0; step < 3000; step += 1) {
    const key = `t/${next(60)}`;
    const value = next(5) === 0 ? null : worker(needs[next(6)], String(next(9)));
    if (value) workers.set(key, value);
    else workers.delete(key);
    order.set(key, value);
  }
  const fresh = new NeedOrder();
  fresh.replace(workers);
  assert.deepEqual(order.groups, fresh.groups);
  assert.deepEqual(new Map([...order.ranks].sort()), new Map([...fresh.ranks].sort()));
});

test('what is held keeps its place and its group, whatever became of the worker', () => {
  const order = new NeedOrder();
  const asking = (at) => worker('needs_you', at);
  order.replace(new Map([['t/a', asking('1')], ['t/b', asking('2')], ['t/c', asking('3')]]));
  const held = { ...order.ranks.get('t/b') };
  order.set('t/b', worker('done', '9'));
  const found = order.shown(() => true, [held]);
  assert.deepEqual(found.get('needs_you').map((one) => one.key), ['t/a', 't/b', 't/c']);
  assert.deepEqual(found.get('done'), []);
  assert.deepEqual(order.shown((key) => key !== 't/a', []).get('needs_you').map((one) => one.key), ['t/c']);
});

test('a need of a newer server is in no group, and does no harm', () => {
  const order = new NeedOrder();
  order.replace(new Map([['t/a', worker('whatever')]]));
  order.set('t/a', worker('constructor', '1'));
  order.set('t/a', worker('working', '2'));
  assert.deepEqual(keys(order, 'working'), ['t/a']);
  order.set('t/a', null);
  order.set('t/nobody', null);
  assert.deepEqual(keys(order, 'working'), []);
});
