// Which line of a diff has become which: of lines that are gone and new ones right behind them. Pure.

/** @import { Line } from './diff_parse.js' */

/**
 * The line that another one has become, or was before: the first of those that are gone belongs to the first that is
 * new, and so on. Of runs that differ much in length nobody can say that.
 * @param {readonly Line[]} lines of a hunk
 * @returns {Map<Line, Line>}
 */
export function pairsOf(lines) {
  /** @type {Map<Line, Line>} */
  const pairs = new Map();
  let at = 0;
  while (at < lines.length) {
    const begin = at;
    while (lines[at]?.kind === 'remove') at += 1;
    const middle = at;
    while (lines[at]?.kind === 'add') at += 1;
    const [gone, made] = [middle - begin, at - middle];
    if (gone && made && Math.max(gone, made) <= 2 * Math.min(gone, made)) {
      for (let one = 0; one < Math.min(gone, made); one += 1) {
        pairs.set(lines[begin + one], lines[middle + one]);
        pairs.set(lines[middle + one], lines[begin + one]);
      }
    }
    if (at === begin) at += 1;
  }
  return pairs;
}
