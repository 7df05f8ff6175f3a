// Which step a person takes next with a worker: the one button of its head that is blue. Pure.
import { TERMINAL } from '../words.js';

/** @typedef {'answer'|'send'|'unpause'|'error'|'diff'|'result'|''} Step */

/**
 * The step that the state of a worker asks for; none where one only watches, or where it is taken already.
 * @param {Sent.Worker} worker
 * @param {string} tab what is shown of it
 * @param {number} questions
 * @returns {Step}
 */
export function nextStep(worker, tab, questions) {
  const step = wanted(worker, questions);
  const shownBy = { answer: 'questions', error: 'why', diff: 'diff', result: 'result' };
  return step in shownBy && shownBy[/** @type {keyof typeof shownBy} */ (step)] === tab ? '' : step;
}

/**
 * @param {Sent.Worker} worker
 * @param {number} questions
 * @returns {Step}
 */
function wanted(worker, questions) {
  if (questions) return 'answer';
  if (worker.status === 'failed') return 'error';
  if (worker.changedFiles && (worker.idle || TERMINAL.has(worker.status))) return 'diff';
  if (worker.idle) return 'send';
  if (worker.paused && !TERMINAL.has(worker.status)) return 'unpause';
  return worker.driver && worker.status === 'completed' ? 'result' : '';
}

/**
 * The tabs of a worker in which there is nothing, as far as that is known.
 * @param {Sent.Worker} worker
 * @param {Sent.Shown | null} shown everything that is known of it
 */
export function emptyTabs(worker, shown) {
  const empty = new Set();
  if (!worker.driver && !worker.progress) empty.add('transcript');
  if (!worker.changedFiles && (!shown?.worktree || TERMINAL.has(worker.status))) empty.add('diff');
  if (!worker.questions?.length && shown && !shown.questions?.length) empty.add('questions');
  return empty;
}
