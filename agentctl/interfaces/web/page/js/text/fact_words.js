// The keys and values of a document in a person's words, without those that say nothing. Pure.
import { bytes, clock, duration, table } from '../words.js';

/** Where the words of a key are not its own. */
const WORDS = table({
  agentId: 'Chain of runs', agentInstance: 'Name', argv: 'Command line', askedBelow: 'Questions below it',
  awaitsChildren: 'Waits for its children', costUsd: 'US dollars', cwd: 'Folder', depth: 'Workers above it',
  durationSeconds: 'Duration', envNames: 'Variables', furtherRuns: 'Further runs',
  graceSeconds: 'Pause between signals', maxBudgetUsd: 'US dollars at most', maxOutputBytes: 'Output at most',
  maxTurns: 'Turns at most', pid: 'Process', spec: 'Order', taskId: 'Task', timeoutSeconds: 'Time limit',
  shimPid: 'Guard process', touchedFiles: 'Files it touched', uncollected: 'Ends not collected yet',
});

/** Numbers that count nothing. */
const IDENTITIES = new Set(['pid', 'shimPid', 'start']);

/**
 * A key in words: `maxParkSeconds` is `Max park`.
 * @param {string} key
 */
export function labelOf(key) {
  const known = WORDS[key];
  if (known !== undefined) return known;
  const bare = key.replace(/(?<=[a-z])(At|Seconds|Bytes)$/, '');
  const words = bare.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Whether a value says something: nothing, no and none do not, and 0 only as what a program ended with.
 * @param {string} key
 * @param {unknown} value
 * @returns {boolean}
 */
export function isTelling(key, value) {
  if (value === null || value === undefined || value === false || value === '') return false;
  if (value === 0) return key === 'exitCode';
  return typeof value !== 'object' || Object.entries(value).some(([inner, one]) => isTelling(inner, one));
}

/**
 * A single value in words: a time of day, a duration, a size.
 * @param {string} key
 * @param {unknown} value
 */
export function valueWords(key, value) {
  if (value === true) return 'yes';
  if (typeof value === 'string' && key.endsWith('At')) return clock(value);
  if (typeof value === 'number' && key.endsWith('Seconds')) return duration(value);
  if (typeof value === 'number' && key.endsWith('Bytes')) return bytes(value);
  return typeof value === 'number' ? value.toLocaleString('en', { useGrouping: !IDENTITIES.has(key) }) : String(value);
}

/**
 * What a document says, in one line: `exit code 2 · last line "no such file"`. A text with blanks in it is in quotes,
 * so that none looks like several values.
 * @param {object} value
 */
export function inWords(value) {
  const telling = Object.entries(value).filter(([key, one]) => isTelling(key, one));
  return telling.map(([key, one]) => oneInWords(key, one)).join(' · ');
}

/**
 * @param {string} key
 * @param {unknown} one
 */
function oneInWords(key, one) {
  const label = labelOf(key);
  const name = /^[A-Z][a-z]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
  if (one === true) return name;
  const words = typeof one === 'object' ? JSON.stringify(one) : valueWords(key, one);
  return `${name} ${words === one && /[\s"·]/.test(words) ? JSON.stringify(words) : words}`;
}
