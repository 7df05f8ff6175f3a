// What differs between two texts: line by line, and within a line word by word. The time is bounded: texts that are too
// long to be compared differ as a whole. Pure.

/** @typedef {{ text: string, changed: boolean }} DiffPiece */
/** @typedef {{ kind: 'same' | 'remove' | 'add', pieces: DiffPiece[] }} DiffLine */

/** So many pairs of lines are compared at most; and of the words of two lines, of which a diff has thousands. */
const MOST_PAIRS = 250_000;
const MOST_WORD_PAIRS = 40_000;
/** Each piece is an element; a line of which more has changed is read as another line. */
const MOST_PIECES = 60;
/** Words and what stands between them. */
const WORDS = /[\p{L}\p{N}_]+|\s+|[^]/gu;
/** Lines of which less is the same are shown as other lines, and not as changed ones. */
const LEAST_SAME = 0.3;

/**
 * The longest sequence that two lists have in common, as pairs of places; from lists that are too long only what is the
 * same at both ends.
 * @param {string[]} old
 * @param {string[]} now
 * @param {number} [most] so many pairs are compared
 * @returns {Array<[number, number]>}
 */
export function inCommon(old, now, most = MOST_PAIRS) {
  let begin = 0;
  while (begin < old.length && begin < now.length && old[begin] === now[begin]) begin += 1;
  let end = 0;
  while (end < old.length - begin && end < now.length - begin && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  /** @type {Array<[number, number]>} */
  const found = Array.from({ length: begin }, (_, at) => [at, at]);
  const middle = longest(old.slice(begin, old.length - end), now.slice(begin, now.length - end), most);
  for (const [one, other] of middle) found.push([begin + one, begin + other]);
  for (let at = end; at > 0; at -= 1) found.push([old.length - at, now.length - at]);
  return found;
}

/**
 * @param {string[]} old
 * @param {string[]} now
 * @param {number} most
 * @returns {Array<[number, number]>}
 */
function longest(old, now, most) {
  if (!old.length || !now.length || old.length * now.length > most) return [];
  const width = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let one = old.length - 1; one >= 0; one -= 1) {
    for (let other = now.length - 1; other >= 0; other -= 1) {
      const at = one * width + other;
      const isSame = old[one] === now[other];
      lengths[at] = isSame ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  /** @type {Array<[number, number]>} */
  const found = [];
  for (let one = 0, other = 0; one < old.length && other < now.length;) {
    if (old[one] === now[other]) found.push([one++, other++]);
    else if (lengths[(one + 1) * width + other] >= lengths[one * width + other + 1]) one += 1;
    else other += 1;
  }
  return found;
}

/**
 * An old and a new line in pieces: which words of each the other one does not have.
 * @param {string} old
 * @param {string} now
 * @returns {[old: DiffPiece[], now: DiffPiece[]]}
 */
export function wordsDiff(old, now) {
  const [before, after] = [old.match(WORDS) ?? [], now.match(WORDS) ?? []];
  const pairs = inCommon(before, after, MOST_WORD_PAIRS);
  const same = pairs.reduce((sum, [one]) => sum + before[one].trim().length, 0);
  const least = LEAST_SAME * Math.max(old.trim().length, now.trim().length);
  if (same < least || !same) return [whole(old), whole(now)];
  const sides = [before, after].map((words, side) => inPieces(words, new Set(pairs.map((pair) => pair[side]))));
  return sides.some((pieces) => pieces.length > MOST_PIECES) ? [whole(old), whole(now)] : [sides[0], sides[1]];
}

/**
 * @param {string} text
 * @returns {DiffPiece[]}
 */
const whole = (text) => [{ text, changed: false }];

/**
 * @param {string[]} words
 * @param {Set<number>} same
 */
function inPieces(words, same) {
  /** @type {DiffPiece[]} */
  const pieces = [];
  words.forEach((text, at) => {
    const changed = !same.has(at);
    const last = pieces.at(-1);
    if (last?.changed === changed) last.text += text;
    else pieces.push({ text, changed });
  });
  return pieces.length ? pieces : whole('');
}

/**
 * All lines of two texts; those that have become others are side by side word by word.
 * @param {string} old
 * @param {string} now
 * @returns {DiffLine[]}
 */
export function linesDiff(old, now) {
  const [before, after] = [linesIn(old), linesIn(now)];
  /** @type {DiffLine[]} */
  const lines = [];
  let [one, other] = [0, 0];
  for (const [sameOld, sameNow] of [...inCommon(before, after), [before.length, after.length]]) {
    for (const line of replaced(before.slice(one, sameOld), after.slice(other, sameNow))) lines.push(line);
    if (sameOld < before.length) lines.push({ kind: 'same', pieces: whole(before[sameOld]) });
    [one, other] = [sameOld + 1, sameNow + 1];
  }
  return lines;
}

/** @param {string} text */
const linesIn = (text) => (text ? text.split('\n') : []);

/**
 * @param {string[]} old
 * @param {string[]} now
 * @returns {DiffLine[]}
 */
function replaced(old, now) {
  const pairs = old.slice(0, now.length).map((line, at) => wordsDiff(line, now[at]));
  return [
    ...old.map((line, at) => /** @type {DiffLine} */ ({ kind: 'remove', pieces: pairs[at]?.[0] ?? whole(line) })),
    ...now.map((line, at) => /** @type {DiffLine} */ ({ kind: 'add', pieces: pairs[at]?.[1] ?? whole(line) })),
  ];
}

const AS_WIDE = '    ';

/** @param {string} text */
export const tabsSpelled = (text) => text.replaceAll('\t', '\\t');

/**
 * Whether a change may be one of tabs: with spaces for them, what is removed and added could look alike.
 * @param {DiffLine[]} lines
 */
export function isOfTabs(lines) {
  const removed = textsOf(lines, 'remove');
  const added = textsOf(lines, 'add');
  const haveTabs = [removed, added].map((texts) => [...texts].some((text) => text.includes('\t')));
  if (!removed.size || !added.size || !haveTabs.includes(true)) return false;
  const alike = new Set([...removed].filter((text) => !added.has(text)).map(expanded));
  const isInWord = lines.some(({ pieces }) => pieces.some(({ text, changed }) => changed && text.includes('\t')));
  return haveTabs.includes(false) || isInWord
    || [...added].some((text) => !removed.has(text) && alike.has(expanded(text)));
}

/**
 * @param {DiffLine[]} lines
 * @param {DiffLine['kind']} wanted
 */
const textsOf = (lines, wanted) => new Set(
  lines.filter(({ kind }) => kind === wanted).map(({ pieces }) => pieces.map(({ text }) => text).join('')),
);

/** @param {string} text */
const expanded = (text) => {
  let line = '';
  for (const one of text) line += one === '\t' ? AS_WIDE.slice(line.length % AS_WIDE.length) : one;
  return line;
};
