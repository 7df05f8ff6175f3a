// Which changed files somebody has viewed, and whether one has changed again since. Pure.

/** @import { DiffFile } from './diff_parse.js' */

/** @typedef {Record<string, string>} Marks by path the stamp of what was viewed */

/**
 * A short text that is another one for other changes of a file.
 * @param {DiffFile} file
 */
export function stampOf(file) {
  let stamp = 0x811c9dc5; // FNV-1a: not against anybody who wants two to be alike, who would only hide his own work.
  let size = 0;
  /** @param {string} text */
  const take = (text) => {
    size += text.length + 1;
    for (let at = 0; at < text.length; at += 1) stamp = Math.imul(stamp ^ text.charCodeAt(at), 0x01000193);
    stamp = Math.imul(stamp ^ 10, 0x01000193);
  };
  for (const note of file.notes) take(note);
  for (const hunk of file.hunks) for (const line of hunk.lines) take(line.kind + line.text);
  return `${size.toString(36)}-${(stamp >>> 0).toString(36)}`;
}

/**
 * What became of the mark of a file: it counts, or the file has changed since, or there is none.
 * @param {Marks} marks
 * @param {DiffFile} file
 * @returns {'viewed'|'changed'|''}
 */
export function viewOf(marks, file) {
  if (!Object.hasOwn(marks, file.path)) return '';
  return marks[file.path] === stampOf(file) ? 'viewed' : 'changed';
}

/**
 * The marks with one more, or without one.
 * @param {Marks} marks
 * @param {DiffFile} file
 * @param {boolean} isViewed
 * @returns {Marks}
 */
export function marked(marks, file, isViewed) {
  const others = Object.entries(marks).filter(([path]) => path !== file.path);
  return Object.fromEntries(isViewed ? [...others, [file.path, stampOf(file)]] : others);
}
