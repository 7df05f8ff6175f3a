import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  askedLook,
  lookOf,
  outcomeOf,
  readsTogether,
} from '../../../agentctl/interfaces/web/page/js/text/known_calls.js';

const TABLE = JSON.parse(readFileSync(new URL('../../unit/call_looks.json', import.meta.url), 'utf8'));
/** What a list of things to do does not show: the text in other words, and the program's own number. */
const SAID_AGAIN = new Set(['activeForm', 'id']);
const WORDS = new Map([
  ['completed', 'done'],
  ['in_progress', 'active'],
  ['pending', 'open'],
  ['cancelled', 'dropped'],
  ['add', 'Write'],
  ['update', 'Edit'],
  ['delete', 'Delete'],
]);

const isDeep = (value) => typeof value === 'object' && value !== null;
const leavesOf = (value) => {
  if (!isDeep(value)) return value === null || value === undefined || value === false ? [] : [value];
  return Object.entries(value).flatMap(([key, inner]) => (SAID_AGAIN.has(key) ? [] : leavesOf(inner)));
};
const mappingsIn = (value) =>
  isDeep(value) ? [...(Array.isArray(value) ? [] : [value]), ...Object.values(value).flatMap(mappingsIn)] : [];

test('every leaf of a known call is in its look or in its rest', () => {
  for (const [tool, given, wanted] of TABLE.looks) {
    const { rest, ...look } = lookOf(tool, given);
    assert.deepEqual(Object.fromEntries(rest), wanted, JSON.stringify(given));
    const shown = leavesOf(look).map(String);
    const listed = leavesOf(Object.fromEntries(rest));
    for (const leaf of leavesOf(given)) {
      const is = shown.some((text) => text.includes(WORDS.get(leaf) ?? String(leaf)));
      assert.ok(is || listed.includes(leaf), `${leaf} in ${JSON.stringify(given)}`);
    }
  }
});

test('an argument that nobody knows is listed, at any depth', () => {
  for (const [tool, given] of TABLE.looks) {
    mappingsIn(given).forEach((_, place) => {
      const planted = structuredClone(given);
      mappingsIn(planted)[place].planted = { in: ['there'] };
      const look = lookOf(tool, planted);
      assert.ok(look, JSON.stringify(planted));
      assert.ok(leavesOf(look.rest).includes('there'), JSON.stringify(planted));
    });
  }
});

test('a call of which a look would be wrong has none', () => {
  for (const [tool, given] of TABLE.none) assert.equal(lookOf(tool, given), null, `${tool} ${JSON.stringify(given)}`);
});

const told = (tool, given) => {
  const look = lookOf(tool, given);
  return look && [look.kind, look.verb, look.subject, look.rest.map(([name]) => name).join()];
};

test('what the programs call their tools, and their arguments', () => {
  const edit = { old_string: 'a', new_string: 'b' };
  const known = [
    ['Edit', { file_path: '/a.py', ...edit, replace_all: true }, ['change', 'Edit', '/a.py', 'replace_all']],
    ['edit_file', { path: 'a.py', ...edit }, ['change', 'Edit', 'a.py', '']],
    ['edit', { filePath: 'a.py', oldString: 'a', newString: 'b' }, ['change', 'Edit', 'a.py', '']],
    [
      'replace',
      { file_path: 'a', ...edit, expected_replacements: 1 },
      ['change', 'Edit', 'a', 'expected_replacements'],
    ],
    ['MultiEdit', { file_path: 'a', edits: [edit, edit] }, ['change', 'Edit', 'a', '']],
    [
      'Edit',
      {
        changes: [
          { path: 'a', oldText: null, newText: 'x' },
          { path: 'b', oldText: 'x', newText: 'y' },
        ],
      },
      ['change', 'Change', 'a, b', ''],
    ],
    [
      'apply_patch',
      {
        changes: [
          { path: 'a', kind: 'delete' },
          { path: 'b', kind: 'add' },
        ],
        'diff of b': 'x',
      },
      ['change', 'Change', 'a, b', ''],
    ],
    [
      'apply_patch',
      {
        changes: [
          { path: 'a', kind: 'delete' },
          { path: 'b', kind: 'delete' },
        ],
      },
      ['change', 'Delete', 'a, b', ''],
    ],
    [
      'apply_patch',
      { changes: [{ path: 'a', kind: 'update' }], 'diff of a': '@@\n-a\n+b' },
      ['change', 'Edit', 'a', ''],
    ],
    ['apply_patch', { changes: [{ path: 'a', kind: 'delete' }] }, ['change', 'Delete', 'a', '']],
    ['Write', { file_path: 'a', content: 'x' }, ['change', 'Write', 'a', '']],
    ['write_file', { path: 'a', content: 'x' }, ['change', 'Write', 'a', '']],
    ['Bash', { command: 'ls', description: 'List', timeout: 5 }, ['command', '$', 'ls', 'timeout']],
    ['shell', { command: ['git', 'commit', '-m', 'a b'], cwd: '/' }, ['command', '$', "git commit -m 'a b'", 'cwd']],
    ['run_shell_command', { command: 'ls' }, ['command', '$', 'ls', '']],
    [
      'TodoWrite',
      {
        todos: [
          { content: 'a', status: 'completed', activeForm: 'A' },
          { content: 'b', status: 'in_progress' },
        ],
      },
      ['todos', 'Plan', '1 of 2 done', ''],
    ],
    [
      'update_plan',
      { plan: [{ step: 'a', status: 'pending' }], explanation: 'Why' },
      ['todos', 'Plan', '0 of 1 done', ''],
    ],
    ['Grep', { pattern: 'x', path: 'src', output_mode: 'content' }, ['search', 'Search', 'x in src', 'output_mode']],
    ['Glob', { pattern: '**/*.py' }, ['search', 'Search', '**/*.py', '']],
    ['Read', { file_path: 'a', offset: 3 }, ['read', 'Read', 'a', 'offset']],
  ];
  for (const [tool, given, wanted] of known)
    assert.deepEqual(told(tool, given), wanted, `${tool} ${JSON.stringify(given)}`);
});

test('a call that is other than expected has no look', () => {
  const others = [
    ['mcp__x__Edit', { file_path: 'a', old_string: '', new_string: '' }],
    ['constructor', {}],
    ['__proto__', {}],
    ['toString', { command: 'ls' }],
    ['Bash', null],
    ['Bash', 'ls'],
    ['Bash', ['ls']],
    ['Bash', {}],
    ['Bash', { command: 5 }],
    ['Bash', { command: '' }],
    ['Bash', { command: ['a', 5] }],
    ['Bash', { command: { a: 'ls' } }],
    ['Edit', { file_path: 'a', old_string: 'a' }],
    ['Edit', { file_path: ['a'], old_string: 'a', new_string: 'b' }],
    ['Edit', { file_path: 'a', edits: [] }],
    ['MultiEdit', { file_path: 'a', edits: 'x' }],
    ['Edit', { changes: [{ path: 'a', kind: 'explode' }] }],
    ['Edit', { changes: [{ path: 'a', kind: 'update', newText: 'x' }] }],
    ['Edit', { changes: [null] }],
    ['Write', { file_path: 'a', content: { a: 1 } }],
    ['Write', { file_path: 'a', content: 'a', append: true }],
    ['write_file', { path: 'a', content: 'a', mode: 'append' }],
    ['Edit', { file_path: 'a', old_string: 'a', new_string: 'b', edit_mode: 'delete' }],
    ['Edit', { file_path: 'a', old_string: '', new_string: 'b', insert_line: 5 }],
    ['NotebookEdit', { notebook_path: 'a', new_source: 'a', edit_mode: 'delete' }],
    ['TodoWrite', { todos: [5] }],
    ['Read', {}],
  ];
  for (const [tool, given] of others) assert.equal(lookOf(tool, given), null, `${tool} ${JSON.stringify(given)}`);
});

test('what a look does not draw is in its rest, so all of a call is there', () => {
  const given = {
    command: 'ls',
    cmd: 'rm -rf /',
    description: 'List',
    run_in_background: true,
    env: { A: ['b'] },
    '': 'x',
    __proto__2: 1,
  };
  const { command, title, rest } = lookOf('Bash', given);
  assert.deepEqual([command, title], ['ls', 'List']);
  assert.deepEqual(Object.fromEntries(rest), {
    cmd: 'rm -rf /',
    run_in_background: true,
    env: { A: ['b'] },
    '': 'x',
    __proto__2: 1,
  });
  const edit = { path: 'shown', file_path: 'used', old_string: 'a', new_string: 'b', content: 'c' };
  assert.deepEqual(lookOf('Edit', edit).rest, [
    ['path', 'shown'],
    ['content', 'c'],
  ]);
  const patch = { changes: [{ path: 'a', kind: 'update' }], 'diff of a': '+x', 'diff of b': '+hidden' };
  assert.deepEqual(lookOf('apply_patch', patch).rest, [['diff of b', '+hidden']]);
});

test('what asks to be allowed has a look only where it shows all that would be done', () => {
  assert.equal(askedLook('TodoWrite', { todos: [{ content: 'a', status: 'pending' }] }), null);
  assert.equal(askedLook('Read', { file_path: 'a' }), null);
  assert.equal(askedLook('Write', { file_path: 'a', content: '\n'.repeat(5000) }), null);
  assert.equal(askedLook('Bash', { command: 'x'.repeat(100_000) }).command.length, 100_000);
});

test('what came of it, where that is known', () => {
  const came = (tool, given, text, status = 'completed') => outcomeOf(lookOf(tool, given), text, status);
  assert.equal(came('Bash', { command: 'x' }, 'Exit code 2\nbad', 'failed'), 'exit 2');
  assert.equal(came('shell', { command: 'x', exitCode: 1 }, ''), 'exit 1');
  assert.equal(came('shell', { command: 'x', exitCode: 0 }, ''), '');
  assert.equal(came('Grep', { pattern: 'x' }, 'a.ts:3: x\nb.ts:9: x\n'), '2 matches');
  assert.equal(came('Grep', { pattern: 'x' }, 'Found 1 file\na.ts'), '1 file');
  assert.equal(came('Grep', { pattern: 'x' }, 'No matches found'), 'no matches');
  assert.equal(came('Glob', { pattern: 'x' }, 'a\nb'), '2 lines');
  assert.equal(came('Grep', { pattern: 'x' }, undefined, 'running'), '');
  assert.equal(came('Read', { file_path: 'x' }, 'a'), '');
});

test('of what was found only a part is told as such, wherever it was cut', () => {
  const came = (text, isCut = false) => outcomeOf(lookOf('Grep', { pattern: 'x' }), text, 'completed', isCut);
  const found = Array.from({ length: 500 }, (_, at) => `src/auth/session-${at}.ts:31: createSession()`).join('\n');
  const mixed = `${found}\n--\nno line of a file`;
  assert.equal(came(found), '500 matches');
  assert.equal(came(mixed), '500 matches');
  for (let at = 60; at < 140; at += 1) {
    const most = found.slice(0, at).split('\n').filter((line) => /:31:/.test(line)).length;
    for (const mark of [` [cut: ${found.length} characters]`, `\n[cut: ${found.length} characters]`, '']) {
      const wanted = `${most}+ match${most === 1 ? '' : 'es'}`;
      assert.equal(came(`${found.slice(0, at)}${mark}`, !mark), wanted, `${at} ${mark}`);
    }
  }
  assert.equal(came('Found 7 files\na\nb', true), '7 files');
  assert.equal(came('Found 250 files limit: 250\na\nb'), '250+ files');
  assert.equal(came('a\nb\n(Results are truncated. Consider using a more specific path or pattern.)'), '2+ lines');
  assert.equal(came('a:1:x\nb:2:y\n\n[Showing results with pagination = limit: 2]'), '2+ matches');
  assert.equal(came(' [cut: 5 characters]'), '');
  assert.equal(came('a line of which the end is not there', true), '');
  assert.equal(came('', true), '');
});

test('a command of words is quoted as a shell needs it', () => {
  for (const [words, line] of TABLE.commands) assert.equal(lookOf('shell', { command: words }).command, line);
});

test('calls that only read are one, until something else comes', () => {
  const read = (id, status = 'completed') => ({ id, type: 'tool', name: 'Read', detail: { file_path: id }, status });
  const other = { id: 'o', type: 'message' };
  const shape = (all) =>
    readsTogether(all).map((one) => (Array.isArray(one) ? one.map(({ id }) => id).join('') : one.id));
  assert.deepEqual(
    shape([read('a'), read('b'), other, read('c'), read('d', 'failed'), read('e'), read('f', 'running')]),
    ['ab', 'o', 'c', 'd', 'ef'],
  );
});
