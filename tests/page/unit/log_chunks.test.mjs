import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogChunks, LONG_LINE } from '../../../agentctl/interfaces/web/page/js/log_chunks.js';

const linesOf = (chunks) => chunks.chunks.flatMap((chunk) => chunk.lines);
const same = (line) => line;

test('however a text comes, its lines are those of the text', () => {
  const text = 'one\n\nthree and more\nfour\nlast';
  for (let at = 0; at <= text.length; at += 1) {
    const chunks = new LogChunks();
    chunks.append(text.slice(0, at));
    chunks.append(text.slice(at));
    assert.deepEqual(linesOf(chunks), text.split('\n'), `cut at ${at}`);
    assert.equal(chunks.lines, 5);
  }
});

test('what is older joins the line that it ends in', () => {
  const text = 'one\ntwo\nthree\nfour';
  for (let at = 1; at < text.length; at += 1) {
    const chunks = new LogChunks();
    chunks.append(text.slice(at));
    chunks.prepend(text.slice(0, at));
    assert.deepEqual(linesOf(chunks), text.split('\n'), `cut at ${at}`);
    assert.equal(chunks.lines, 4);
    assert.equal(new Set(chunks.chunks.map((chunk) => chunk.id)).size, chunks.chunks.length);
  }
});

test('chunks have a hundred lines, and a line that is too long has one of its own', () => {
  const chunks = new LogChunks();
  chunks.append('x\n'.repeat(250));
  assert.deepEqual(chunks.chunks.map((chunk) => chunk.lines.length), [100, 100, 50]);
  chunks.append(`${'y'.repeat(LONG_LINE + 1)}\nz\n`);
  assert.deepEqual(chunks.chunks.slice(-2).map((chunk) => chunk.kind), ['long', 'lines']);
});

test('a line that grows beyond what is laid out becomes a long one', () => {
  const chunks = new LogChunks();
  chunks.append('a'.repeat(LONG_LINE));
  assert.equal(chunks.chunks[0].kind, 'lines');
  chunks.append('a');
  assert.deepEqual(chunks.chunks.map((chunk) => [chunk.kind, chunk.lines[0].length]), [['long', LONG_LINE + 1]]);
});

test('a mark is below what was there; a line that goes on does so below it', () => {
  const chunks = new LogChunks();
  chunks.append('one\na');
  chunks.mark('12:00');
  chunks.append('b\nc\n');
  const found = chunks.chunks.map((chunk) => [chunk.kind, ...chunk.lines]);
  assert.deepEqual(found, [['lines', 'one'], ['mark'], ['lines', 'ab', 'c']]);
});

test('a text is found in whatever case, each time once', () => {
  const chunks = new LogChunks();
  chunks.append('Error error\nnothing\nERROR.*\n');
  assert.deepEqual(chunks.find('error', same).map((hit) => [hit.line, hit.begin]), [[0, 0], [0, 6], [2, 0]]);
  assert.deepEqual(chunks.find('.*', same).map((hit) => [hit.line, hit.begin]), [[2, 5]]);
  assert.deepEqual(chunks.find('', same), []);
  chunks.append('aaaa\n');
  assert.equal(chunks.find('aa', same).length, 2);
  assert.equal(chunks.find('r', same, 3).length, 3);
});
