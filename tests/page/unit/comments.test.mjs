import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commentsAt, messageOf, placeComments } from '../../../agentctl/interfaces/web/page/js/comments.js';
import { parseDiff } from '../../../agentctl/interfaces/web/page/js/diff_parse.js';

const comment = (more) => ({ id: 'c1', path: 'a', side: 'new', line: 2, code: 'two', text: ' why? ', ...more });
const files = parseDiff('--- a/a\n+++ b/a\n@@ -1,3 +1,4 @@\n two\n-gone\n+two\n+four\n end\n');

test('a comment is at its line, or at the nearest line with the same text', () => {
  const { lines, byPlace } = placeComments([comment(), comment({ id: 'c2', line: 1 })], files);
  assert.deepEqual([...lines], [['c1', 2], ['c2', 1]]);
  const [, , line] = files[0].hunks[0].lines;
  assert.deepEqual(commentsAt(byPlace, 'a', line).map((one) => one.id), ['c1']);
});

test('a comment whose line is gone, changed, or on the other side is outdated', () => {
  const all = [{ code: 'two ' }, { path: 'b' }, { side: 'old' }, { side: 'old', code: 'gone' }].map(comment);
  assert.deepEqual(placeComments(all, files).outdated, all.slice(0, 3));
});

test('the message says where each comment belongs now', () => {
  const removed = comment({ id: 'c2', side: 'old', line: 2, code: 'gone', text: 'keep it' });
  const all = [comment({ line: 9 }), removed, comment({ id: 'c3', code: 'x' })];
  assert.equal(messageOf(all, placeComments(all, files).lines), [
    '3 comments on your changes. Please deal with all of them together:', '', 'a:2', '> two', 'why?', '',
    'a:2 (removed line)', '> gone', 'keep it', '', 'a:2 (the line has changed since)', '> x', 'why?', '',
  ].join('\n'));
  assert.match(messageOf([comment()], new Map(), ' Please: '), /^Please:\n\na:2/);
});
