import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ITEM_SIGNS, itemLabel, telling } from '../../../agentctl/interfaces/web/page/js/item_words.js';

test('what tells most of the arguments of a call', () => {
  assert.equal(telling({ timeout: 3, command: 'ls' }), 'ls');
  assert.equal(telling({ command: ['ls', '-l'] }), 'ls -l');
  assert.equal(telling({ command: ['rm', 'a b'] }), "rm 'a b'");
  assert.equal(telling({ command: '', path: 'x' }), 'x');
  assert.equal(telling({ other: 1 }), '{"other":1}');
  for (const nothing of [null, undefined, {}, 'text', 7]) assert.equal(telling(nothing), '');
});

test('items in one line', () => {
  assert.equal(itemLabel({ type: 'tool', name: 'Bash', detail: { command: 'ls\n-l' } }), 'Bash ls -l');
  assert.equal(itemLabel({ type: 'tool' }), 'tool');
  assert.equal(itemLabel({ type: 'agent', agentType: 'explore' }), 'explore');
  assert.equal(itemLabel({ type: 'message', text: '**Done**', line: 'Done' }), 'Done');
  assert.equal(itemLabel({ type: 'agent', text: '# All *well*', line: 'All well', agentType: 'explore' }), 'All well');
  assert.equal(itemLabel({ type: 'message', name: 'user', text: '**Go**' }), 'user: **Go**');
  assert.equal(itemLabel({ type: 'progress', percent: 0, text: 'begins' }), '0% begins');
  assert.equal(itemLabel({ type: 'note\x1b' }), 'note\\x1b');
});

test('no word that objects have is a status', () => {
  assert.equal(ITEM_SIGNS.constructor, undefined);
  assert.equal(ITEM_SIGNS.__proto__, undefined);
});
