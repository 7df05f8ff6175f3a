import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionWords } from '../../../agentctl/interfaces/web/page/js/text/option_words.js';

test('what is said about an option is its second line', () => {
  assert.deepEqual(optionWords('Postgres', 'Postgres: it is there already'), ['Postgres', 'it is there already']);
});

test('any other label is one line, whole', () => {
  for (const [id, label] of [['yes', 'Yes'], ['1', 'Note: read this'], ['a', 'a: '], ['a', 'ab: c'], ['', '']]) {
    assert.deepEqual(optionWords(id, label), [label, '']);
  }
});
