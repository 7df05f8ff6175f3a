import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coloured, languageOf } from '../../../agentctl/interfaces/web/page/js/text/highlight.js';

const roles = (code, name) =>
  coloured(code, name)
    .filter(({ role }) => role)
    .map(({ text, role }) => `${role} ${text}`);

test('comments, texts, numbers, words of the language and names of what is called', () => {
  assert.deepEqual(roles('const a = f("x\\"y", 0x1f); // c', 'ts'), [
    'word const',
    'name f',
    'string "x\\"y"',
    'number 0x1f',
    'comment // c',
  ]);
  assert.deepEqual(roles("def f(a):\n  '''a\nb'''\n  return 1.5e3  # c", 'python'), [
    'word def',
    'name f',
    "string '''a\nb'''",
    'word return',
    'number 1.5e3',
    'comment # c',
  ]);
  assert.deepEqual(roles('for i in "$a"; do echo a#b ${x}; done # c', 'sh'), [
    'word for',
    'word in',
    'string "$a"',
    'word do',
    'word echo',
    'string ${x}',
    'word done',
    'comment # c',
  ]);
  assert.deepEqual(roles('SELECT a -- c\nfrom b', 'SQL'), ['word SELECT', 'comment -- c', 'word from']);
  assert.deepEqual(roles('a: true # c', 'yml'), ['word true', 'comment # c']);
  assert.deepEqual(roles('if (a) {', 'klingon'), []);
});

test('the end of a file says the language', () => {
  assert.deepEqual(['src/a.ts', 'Makefile', 'a/b.tar.gz', 'x', '', 'a.ts/'].map(languageOf), [
    'ts',
    'makefile',
    'gz',
    'x',
    '',
    '',
  ]);
});

test('whatever the code is, its pieces are the code, and there are no more steps than characters', () => {
  const pieces = [
    '"',
    "'",
    '`',
    '\\',
    '/*',
    '*/',
    '//',
    '#',
    '\n',
    '<!--',
    '-->',
    '"""',
    "'''",
    '${',
    '}',
    '$',
    '0x',
    '1e',
    '.',
    'a',
    'if',
    '(',
    'é',
    '🚀',
    '\ud800',
    ' ',
    '--',
    ';',
  ];
  let seed = 5;
  for (let round = 0; round < 400; round += 1) {
    let code = '';
    for (let left = round % 60; left >= 0; left -= 1) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      code += pieces[seed % pieces.length];
    }
    for (const name of ['js', 'py', 'sh', 'sql', 'rb', 'yaml', 'html']) {
      const found = coloured(code, name);
      assert.equal(found.map(({ text }) => text).join(''), code);
      assert.ok(found.length <= code.length);
    }
  }
  assert.deepEqual(coloured('"'.repeat(30_000), 'js'), [{ text: '"'.repeat(30_000), role: '' }]);
});
