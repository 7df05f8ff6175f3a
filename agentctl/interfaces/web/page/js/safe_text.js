// Makes text that anybody may have written safe to show: it becomes text nodes only, and what would be obeyed or
// not be seen is spelled out, as the terminal screen does it.

const CONTROL = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const CONTROL_BUT_LINES = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const COLOURS = /\x1b\[[0-9;:]*m/g;
/** @type {Record<string, string>} */
const SHORT = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };
// Draws nothing or a blank, without a category that says so (as `domain/text/plaintext.py` has it).
const BLANK = /[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\u180b-\u180f\ufe00-\ufe0f\u{13441}\u{13442}\u{1d159}\u{1f3fb}-\u{1f3ff}\u{e0000}-\u{e0fff}]/u;
const UNSEEN = /[\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;
const MARK = /\p{M}/u;
const LETTER = /\p{L}/u;
const MOST_MARKS = 3;

/** @param {string} one */
const escaped = (one) => {
  const code = one.codePointAt(0) ?? 0;
  if (SHORT[one]) return SHORT[one];
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
};

/**
 * Text with its control characters and those that turn its direction spelled out.
 * @param {unknown} text
 */
export function plain(text) {
  return String(text ?? '').replace(CONTROL, escaped).replace(LONE, '\ufffd');
}

/**
 * The same with its lines and tabs. A `\r` at the end of a line says nothing.
 * @param {unknown} text
 */
export function plainLines(text) {
  return spelled(String(text ?? '').replace(/\r\n/g, '\n'));
}

/** @param {string} text */
const spelled = (text) => text.replace(CONTROL_BUT_LINES, escaped).replace(LONE, '\ufffd');

/**
 * The output of a program: colours are dropped, everything else is spelled out.
 * @param {unknown} text
 */
export function plainOutput(text) {
  return plainLines(String(text ?? '').replace(COLOURS, ''));
}

/**
 * Text in which no two different texts look the same because of what nobody sees: for what is allowed by its looks. A
 * script whose lines end with a `\\r` is another one than that without.
 * @param {unknown} text
 */
export function distinct(text) {
  return spelled(String(text ?? '')).replace(FOREIGN, distinctRun);
}

/** Letters beyond ASCII, with the one before them: how many marks are seen depends on that. */
const FOREIGN = /[\x00-\x7f]?[^\x00-\x7f]+/gu;

/** @param {string} run */
function distinctRun(run) {
  let left = 0;
  let found = '';
  for (const one of run) {
    const isMark = MARK.test(one);
    const isSeen = isMark ? left > 0 : one === ' ' || one === '\n' || one === '\t' || !UNSEEN.test(one);
    found += isSeen && !BLANK.test(one) ? one : escaped(one);
    left = isMark ? left - 1 : LETTER.test(one) ? MOST_MARKS : 0;
  }
  return found;
}

/**
 * The beginning of a text as one line.
 * @param {unknown} text
 */
export function oneLine(text, most = 300) {
  const line = plain(String(text ?? '').slice(0, most * 2).trim().replace(/\s+/g, ' '));
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
