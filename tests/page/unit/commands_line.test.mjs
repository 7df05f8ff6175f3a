import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argvOf } from '../../../agentctl/interfaces/web/page/js/commands_line.js';

test('words and quotes need no shell', () => {
  assert.deepEqual(argvOf('  make  test '), ['make', 'test']);
  assert.deepEqual(argvOf(`echo 'a  b' "c d"e ''`), ['echo', 'a  b', 'c de', '']);
  assert.deepEqual(argvOf('echo "it\'s"'), ['echo', "it's"]);
});

test('whatever a shell would do something with is given to one, as it is', () => {
  for (const line of [
    'a | b', 'a; b', 'echo $HOME', 'ls *.py', 'a > b', 'A=1 make', 'echo a\\ b', 'echo "$(id)"', '~/x', 'a &',
    'a\nb', '(a)', '!x', '# x',
  ]) assert.deepEqual(argvOf(line), ['/bin/sh', '-c', line], line);
});

test('a quote that is not closed is refused', () => {
  for (const line of ['echo "x', "echo 'x", `echo "x'`]) assert.throws(() => argvOf(line), /quote/, line);
});
