import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDiff } from '../../../agentctl/interfaces/web/page/js/diff_parse.js';
import { pairsOf } from '../../../agentctl/interfaces/web/page/js/line_pairs.js';

const HEAD = ['--- a/x', '+++ b/x', '@@ -1,99 +1,99 @@'];
const linesOf = (...lines) => parseDiff([...HEAD, ...lines, ''].join('\n'))[0].hunks[0].lines;
const pairs = (...lines) => {
  const all = linesOf(...lines);
  return [...pairsOf(all)].map(([one, other]) => [one.text, other.text]);
};

test('of a run of lines each belongs to that in its place, both ways', () => {
  assert.deepEqual(pairs(' x', '-a', '-b', '+A', '+B', ' y'), [['a', 'A'], ['A', 'a'], ['b', 'B'], ['B', 'b']]);
});

test('what is only gone, or only new, belongs to nothing, nor does what stands before it', () => {
  assert.deepEqual(pairs('-a', ' x', '+b'), []);
  assert.deepEqual(pairs('+b', '-a'), []);
});

test('where the runs differ much in length nothing is said', () => {
  assert.deepEqual(pairs('-a', '+1', '+2', '+3'), []);
  assert.deepEqual(pairs('-a', '+1', '+2'), [['a', '1'], ['1', 'a']]);
});

test('each line is in one pair at most, and all are looked at', () => {
  for (let seed = 1; seed < 300; seed += 1) {
    let state = seed;
    const next = (most) => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return state % most;
    };
    const all = linesOf(...Array.from({ length: next(12) + 1 }, (_, at) => `${' -+'[next(3)]}${at}`));
    const found = pairsOf(all);
    for (const [one, other] of found) {
      assert.equal(found.get(other), one);
      assert.notEqual(one.kind, other.kind);
    }
  }
});
