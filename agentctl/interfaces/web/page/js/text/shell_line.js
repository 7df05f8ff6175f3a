// A command that was given as a list of words, as the one line of a shell that says the same. Pure; so does
// `domain/agent/shell_line.py`, and `tests/unit/call_looks.json` has the cases of both.

/** What a shell takes as it is; the first word of a line only without a `=`: it would be an assignment. */
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** @param {string} word @param {number} place */
const quoted = (word, place) => (PLAIN_WORD.test(word) && (place > 0 || !word.includes('='))
  ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** @param {string[]} words */
export const shellLine = (words) => words.map(quoted).join(' ');
