// What a next step that a command names is in the page: a place to look at, or something to be done. Pure.

/**
 * @typedef {{ kind: 'open', task: string, instance: string, tab: string, query: Record<string, string>,
 *   words: string }} Look
 * @typedef {{ kind: 'do', task: string, instances: string[], action: Action, words: string }} Deed
 * @typedef {'cancel' | 'unpause' | 'send' | 'retry' | 'letQueueGo' | 'giveEnvironment'} Action
 */

/** Commands that show something, and the tab that shows it. */
const LOOKS = new Map([
  ['logs', ['output', 'See its output']], ['result', ['result', 'See its result']], ['why', ['why', 'See why']],
  ['wait', ['', 'Open it']], ['answer', ['', 'Answer it']],
]);
/** @type {Map<string, [action: Action, words: string]>} */
const DEEDS = new Map([
  ['cancel', ['cancel', 'Cancel…']], ['unpause', ['unpause', 'Continue']], ['send', ['send', 'Send…']],
  ['resume', ['send', 'Continue…']], ['retry', ['retry', 'Try again…']],
  ['resume-queue', ['giveEnvironment', 'Start them with the server\u2019s environment']],
]);

/**
 * What the page has for a next step; null where only a terminal has something, or nothing is to be done here.
 * @param {Sent.Step | null | undefined} step
 * @param {{ task: string, instance: string, stream?: string }} here the worker that the step is told of
 * @returns {Look | Deed | null}
 */
export function inPage(step, here) {
  if (!step || step.root) return null; // Another root has a server of its own.
  const { verb, taskId: task, workers } = step;
  const [instance = ''] = workers;
  const isHere = task === here.task && instance === here.instance;
  const look = LOOKS.get(verb);
  if (look && instance) {
    if (verb === 'wait' && isHere) return null; // The page follows by itself.
    const [tab, words] = look;
    /** @type {Record<string, string>} */
    const query = {};
    if (step.question) query.question = step.question;
    if (verb === 'logs' && isHere && here.stream) query.stream = here.stream;
    const named = isHere || tab ? words : verb === 'wait' ? `Open ${instance}` : `Answer ${instance}`;
    return { kind: 'open', task, instance, tab, query, words: named };
  }
  if (verb === 'unpause' && !instance) {
    return { kind: 'do', task, instances: [], action: 'letQueueGo', words: 'Let the queue go' };
  }
  const deed = DEEDS.get(verb);
  return deed ? { kind: 'do', task, instances: workers, action: deed[0], words: deed[1] } : null;
}

/**
 * Whether a command is to be shown to be typed: the page has nothing in its place.
 * @param {Sent.WayOut} way
 * @param {ReturnType<typeof inPage>} found
 */
export const isToBeTyped = (way, found) => Boolean(way.command) && !found && way.step?.verb !== 'wait';
