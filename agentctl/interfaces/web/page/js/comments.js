// Comments on the lines of a diff, which are sent as one message. Pure.

/** @import { DiffFile, Line } from './diff_parse.js' */

/**
 * @typedef {{id: string, path: string, side: 'new'|'old', line: number, code: string, text: string}} Comment
 * @typedef {{byPlace: Map<string, Comment[]>, outdated: Comment[], lines: Map<string, number>}} Placed
 *   where they are in a diff
 */

/**
 * @param {string} path
 * @param {string} side
 * @param {number} line
 */
const placeOf = (path, side, line) => `${side} ${line} ${path}`;
/** @param {Line} line */
export const lineNumber = (line) => Number(line.side === 'old' ? line.old : line.new);

/**
 * Find each comment in a diff as it is now: at its line, else at the nearest line with the same text.
 * @returns {Placed}
 * @param {Comment[]} comments
 * @param {DiffFile[]} files
 */
export function placeComments(comments, files) {
  const byPlace = new Map();
  const outdated = [];
  const lines = new Map();
  for (const comment of comments) {
    const file = files.find((one) => one.path === comment.path);
    let best = null;
    for (const hunk of file?.hunks ?? []) {
      for (const line of hunk.lines) {
        if (line.side !== comment.side || line.text !== comment.code) continue;
        const number = lineNumber(line);
        if (best === null || Math.abs(number - comment.line) < Math.abs(best - comment.line)) best = number;
      }
    }
    if (best === null) outdated.push(comment);
    else {
      const place = placeOf(comment.path, comment.side, best);
      byPlace.set(place, [...(byPlace.get(place) ?? []), comment]);
      lines.set(comment.id, best);
    }
  }
  return { byPlace, outdated, lines };
}

/**
 * @param {Map<string, Comment[]>} byPlace
 * @param {string} path
 * @param {Line} line
 */
export const commentsAt = (byPlace, path, line) => byPlace.get(placeOf(path, line.side, lineNumber(line))) ?? [];

/**
 * The one message: each comment with its place, the line, and what is said of it.
 * @param {Comment[]} comments
 * @param {Map<string, number>} lines
 */
export function messageOf(comments, lines, overall = '') {
  const parts = comments.map((comment) => {
    const where = lines.get(comment.id) ?? comment.line;
    const isOutdated = !lines.has(comment.id);
    const what = `${comment.side === 'old' ? ' (removed line)' : ''}${isOutdated ? ' (the line has changed since)' : ''}`;
    return `${comment.path}:${where}${what}\n> ${comment.code}\n${comment.text.trim()}`;
  });
  const head = overall.trim() || (comments.length === 1 ? 'A comment on your changes:' : `${comments.length} comments on your changes. Please deal with all of them together:`);
  return `${head}\n\n${parts.join('\n\n')}\n`;
}
