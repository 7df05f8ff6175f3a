import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepIn, keptIn } from '../../../agentctl/interfaces/web/page/js/keeping.js';

/** A storage as browsers have it: what it holds are its own keys. */
class Storage {
  getItem(key) {
    return Object.hasOwn(this, key) ? this[key] : null;
  }

  setItem(key, value) {
    this[key] = String(value);
  }

  removeItem(key) {
    delete this[key];
  }
}

test('what is kept is there as it was, and nothing takes it away', () => {
  const storage = new Storage();
  assert.equal(keepIn(storage, 'a', { text: 'x' }), true);
  assert.deepEqual(keptIn(storage, 'a'), { text: 'x' });
  assert.equal(keptIn(storage, 'b'), undefined);
  for (const nothing of [null, '', [], {}]) {
    keepIn(storage, 'a', 'x');
    keepIn(storage, 'a', nothing);
    assert.deepEqual(Object.keys(storage), []);
  }
});

test('what was kept longest ago gives way, and never what belongs to others', () => {
  const storage = new Storage();
  storage.setItem('other', 'x');
  for (let at = 0; at < 250; at += 1) keepIn(storage, `n${at}`, at, 1000 - at);
  assert.equal(Object.keys(storage).length, 201);
  assert.equal(storage.getItem('other'), 'x');
  assert.equal(keptIn(storage, 'n249'), 249);
  keepIn(storage, 'n249', 'again', 2000);
  assert.equal(Object.keys(storage).length, 201, 'a name that is there needs no more room');
});

test('what cannot be read counts as nothing, and is the first to go', () => {
  const storage = new Storage();
  for (const text of ['{', 'null', '7', '"x"', '']) {
    storage.setItem('agentctl.kept a', text);
    assert.equal(keptIn(storage, 'a'), undefined, text);
  }
  for (let at = 0; at < 200; at += 1) keepIn(storage, `n${at}`, at, 1 + at);
  assert.equal(storage.getItem('agentctl.kept a'), null);
});

test('a browser without room forgets, and what is too long is not kept', () => {
  const storage = new Storage();
  assert.equal(keepIn(storage, 'long', 'x'.repeat(300_000)), false);
  assert.equal(keptIn(storage, 'long'), undefined);
  storage.setItem = () => {
    throw new Error('QuotaExceededError');
  };
  assert.equal(keepIn(storage, 'a', 'x'), false);
  assert.equal(keptIn(storage, 'a'), undefined);
});
