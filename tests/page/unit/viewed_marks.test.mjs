import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDiff } from '../../../agentctl/interfaces/web/page/js/diff_parse.js';
import { marked, viewOf } from '../../../agentctl/interfaces/web/page/js/viewed_marks.js';

const fileOf = (...lines) => parseDiff([`diff --git a/${lines[0]} b/${lines[0]}`, `--- a/${lines[0]}`, `+++ b/${lines[0]}`, '@@ -1,9 +1,9 @@', ...lines.slice(1), ''].join('\n'))[0];

test('a file that was viewed stays so until it changes again', () => {
  const file = fileOf('a', '-x', '+y');
  const marks = marked({}, file, true);
  assert.equal(viewOf(marks, file), 'viewed');
  assert.equal(viewOf(marks, fileOf('a', '-x', '+z')), 'changed');
  assert.equal(viewOf(marks, fileOf('a', '-x', '+y', '+y')), 'changed');
  assert.equal(viewOf(marks, fileOf('b', '-x', '+y')), '');
  assert.equal(viewOf(marked(marks, file, false), file), '');
});

test('what moves within the file has not changed', () => {
  const [moved] = parseDiff('diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -7,2 +7,2 @@\n-x\n+y\n');
  assert.equal(viewOf(marked({}, fileOf('a', '-x', '+y'), true), moved), 'viewed');
});

test('lines that are divided otherwise are another change', () => {
  assert.equal(viewOf(marked({}, fileOf('a', '+x', '+y'), true), fileOf('a', '+x+y')), 'changed');
});

test('names that every object has are names, and marks survive JSON', () => {
  const file = fileOf('__proto__', '+x');
  assert.equal(viewOf({}, fileOf('constructor', '+x')), '');
  const marks = JSON.parse(JSON.stringify(marked({}, file, true)));
  assert.equal(viewOf(marks, file), 'viewed');
  assert.equal(viewOf(marked(marks, fileOf('b', '+x'), true), file), 'viewed');
});
