import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  inCommon,
  isOfTabs,
  linesDiff,
  tabsSpelled,
  wordsDiff,
} from '../../../agentctl/interfaces/web/page/js/text/words_diff.js';

const marked = (pieces) => pieces.map(({ text, changed }) => (changed ? `<${text}>` : text)).join('');
const drawn = (old, now) =>
  linesDiff(old, now).map(({ kind, pieces }) => ({ same: ' ', remove: '-', add: '+' })[kind] + marked(pieces));

test('the words that have changed', () => {
  const [old, now] = wordsDiff('replicas: 2, memory 512Mi', 'replicas: 3, memory 1Gi');
  assert.deepEqual([marked(old), marked(now)], ['replicas: <2>, memory <512Mi>', 'replicas: <3>, memory <1Gi>']);
  const [one, other] = wordsDiff('nothing of this', 'is in that at all');
  assert.deepEqual([marked(one), marked(other)], ['nothing of this', 'is in that at all']);
});

test('lines that stay, go and come', () => {
  assert.deepEqual(drawn('a\nreplicas: 2\nb\n', 'a\nreplicas: 3\nb\nc\n'), [
    ' a',
    '-replicas: <2>',
    '+replicas: <3>',
    ' b',
    '+c',
    ' ',
  ]);
  assert.deepEqual(drawn('', 'new\nfile'), ['+new', '+file']);
  assert.deepEqual(drawn('gone', ''), ['-gone']);
  assert.deepEqual(drawn('a', 'a'), [' a']);
  assert.deepEqual(drawn('', ''), []);
});

test('both texts are in it, whole and in their order, whatever they are', () => {
  let seed = 3;
  const next = (most) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % most;
  };
  const text = () => Array.from({ length: next(12) }, () => ['a', 'b b', 'a b', '', ' ', '🚀é'][next(6)]).join('\n');
  for (let round = 0; round < 500; round += 1) {
    const [old, now] = [text(), text()];
    const lines = linesDiff(old, now);
    const side = (other) =>
      lines
        .filter(({ kind }) => kind !== other)
        .map(({ pieces }) => pieces.map((one) => one.text).join(''))
        .join('\n');
    assert.deepEqual([side('add'), side('remove')], [old, now]);
  }
});

test('a text that is too long to be compared differs as a whole, at once', () => {
  const many = (word) => Array.from({ length: 20_000 }, (_, at) => `${word} ${at}`).join('\n');
  const lines = linesDiff(`same\n${many('old')}\nsame`, `same\n${many('new')}\nsame`);
  assert.equal(lines.filter(({ kind }) => kind === 'same').length, 2);
  assert.equal(lines.length, 40_002);
  assert.equal(inCommon(Array(600).fill('a'), ['b', ...Array(600).fill('a')]).length, 600);
  assert.equal(wordsDiff('x '.repeat(50_000), 'y '.repeat(50_000)).length, 2);
});

test('lines made to be slow, or to be many pieces, differ as a whole', () => {
  const long = (first, last) => `${first}${Array.from({ length: 125 }, (_, at) => ` w${at}`).join('')} ${last}`;
  assert.deepEqual(wordsDiff(long('a', 'b'), long('c', 'd')).map(marked), [long('a', 'b'), long('c', 'd')]);
  const other = (word) => Array.from({ length: 90 }, (_, at) => (at % 2 ? `w${at}` : `${word}${at}`)).join(' ');
  const [old, now] = wordsDiff(other('x'), other('y'));
  assert.deepEqual([old.length, now.length], [1, 1]);
  assert.deepEqual([marked(old), marked(now)], [other('x'), other('y')]);
});

test('of two lines with little in common nothing is marked', () => {
  const [old, now] = wordsDiff('the first of all of these lines', 'a quite other sentence, the end');
  assert.deepEqual([marked(old), marked(now)], ['the first of all of these lines', 'a quite other sentence, the end']);
});

test('a change of tabs into spaces, and one that leaves them', () => {
  const changes = [
    ['\tgcc x\n', '    gcc x\n', true],
    ['a\tb\n\tc', 'a   b\n\tc\n\td', true],
    ['\tgo(1)\n\tend', '    go(2)\n\tstop', true],
    ['\tgo(1)', '\tgo(2)', false],
    ['', '\tgo(1)', false],
    ['a', 'b', false],
  ];
  for (const [old, now, wanted] of changes) assert.equal(isOfTabs(linesDiff(old, now)), wanted, `${old} ${now}`);
  assert.equal(tabsSpelled('\ta\tb'), '\\ta\\tb');
});
