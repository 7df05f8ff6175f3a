import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDiff } from '../../../agentctl/interfaces/web/page/js/diff_parse.js';

const diff = (...lines) => parseDiff(`${lines.join('\n')}\n`);
const head = (name) => [`diff --git a/${name} b/${name}`, `--- a/${name}`, `+++ b/${name}`];
const shape = (lines) => lines.map((one) => [one.kind, one.old, one.new, one.text]);

test('lines have the numbers that they have in both files', () => {
  const [file] = diff(...head('a.py'), '@@ -3,3 +3,4 @@ def f():', ' one', '-two', '+two!', '+more', ' three');
  assert.deepEqual(shape(file.hunks[0].lines), [
    ['context', 3, 3, 'one'], ['remove', 4, null, 'two'], ['add', null, 4, 'two!'], ['add', null, 5, 'more'],
    ['context', 5, 6, 'three'],
  ]);
  assert.equal(file.hunks[0].heading, 'def f():');
  assert.deepEqual([file.added, file.removed], [2, 1]);
});

test('code that looks like a head of a diff is code', () => {
  const hunk = ['@@ -1,3 +1,3 @@', '--- old comment', '+++ new comment', ' @@ -1 +1 @@', ' diff --git a/x b/x'];
  const [file, ...others] = diff(...head('a.sql'), ...hunk);
  assert.deepEqual(others, []);
  assert.deepEqual(shape(file.hunks[0].lines), [
    ['remove', 1, null, '-- old comment'], ['add', null, 1, '++ new comment'], ['context', 2, 2, '@@ -1 +1 @@'],
    ['context', 3, 3, 'diff --git a/x b/x'],
  ]);
});

test('an empty line of context may have lost its blank', () => {
  const [file] = diff(...head('a'), '@@ -1,3 +1,3 @@', ' a', '', '-b', '+c');
  assert.deepEqual(file.hunks[0].lines.map((one) => one.text), ['a', '', 'b', 'c']);
});

test('a hunk of one line has no counts, and a last line may have no end', () => {
  const end = '\\ No newline at end of file';
  const [file] = diff(...head('a'), '@@ -1 +1 @@', '-a', end, '+b', end);
  assert.deepEqual(file.hunks[0].lines.map((one) => one.isOpen), [true, true]);
});

test('names: quoted with octal bytes, with blanks, with a tab behind them, and of files that came or went', () => {
  const [quoted] = diff('diff --git "a/\\303\\251 \\"x\\".txt" "b/\\303\\251 \\"x\\".txt"', 'new file mode 100644');
  assert.equal(quoted.path, 'é "x".txt');
  const [blanks] = diff('diff --git a/a b c b/a b c', 'old mode 100644', 'new mode 100755');
  assert.equal(blanks.path, 'a b c');
  const [tab] = diff('diff --git a/a b b/a b', '--- a/a b\t', '+++ b/a b\t', '@@ -1 +1 @@', '-x', '+y');
  assert.equal(tab.path, 'a b');
  const [gone] = diff('diff --git a/x b/x', 'deleted file mode 100644', '--- a/x', '+++ /dev/null', '@@ -1 +0,0 @@',
    '-x');
  assert.equal(gone.path, 'x');
});

test('a file that was renamed has both names, and one that is not text has notes', () => {
  const [renamed] = diff('diff --git a/old b/new', 'similarity index 100%', 'rename from old', 'rename to new');
  assert.equal(renamed.path, 'new');
  const [binary] = diff('diff --git a/p.png b/p.png', 'Binary files a/p.png and b/p.png differ');
  assert.deepEqual([binary.notes, binary.hunks], [['Binary files a/p.png and b/p.png differ'], []]);
});

test('what is not a diff has no files, and a diff that is cut has what is there', () => {
  assert.deepEqual(parseDiff(''), []);
  assert.deepEqual(parseDiff('hello\n@@ -1 +1 @@\n-x\n+y\n'), []);
  const [cut] = diff(...head('a'), '@@ -1,900 +1,900 @@', ' a', '-b');
  assert.equal(cut.hunks[0].lines.length, 2);
});

test('names that every object has are names', () => {
  const files = diff(...head('__proto__'), '@@ -0,0 +1 @@', '+x', ...head('constructor'), '@@ -0,0 +1 @@', '+y');
  assert.deepEqual(files.map((one) => one.path), ['__proto__', 'constructor']);
});

test('a long diff takes no longer than its lines', () => {
  const lines = Array.from({ length: 100_000 }, (_, at) => `+line ${at}`);
  const began = performance.now();
  const [file] = diff(...head('big'), `@@ -0,0 +1,${lines.length} @@`, ...lines);
  assert.equal(file.added, lines.length);
  assert.ok(performance.now() - began < 5000);
});
