// Keys of requests: what a person means to do once is done once, also where its answer was lost and they try again. A
// key is made when a dialog is opened, and kept with its draft until the answer is there: it outlives a reload, and two
// tabs with one draft have one key.
import { useRef } from './dom.js';
import { keep, kept } from './kept.js';
import { workerHref } from './router.js';
import { say } from './store.js';

/** @import { Link } from './text/next_steps.js' */

/** @returns {string} */
function newKey() {
  // `randomUUID` is there over https and at this machine alone.
  return `page-${Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * A short name for a set of texts.
 * @param {string[]} texts
 */
export function digestOf(texts) {
  let hash = 0x811c9dc5; // FNV-1a.
  for (const one of [...texts].sort().join('\n')) hash = Math.imul(hash ^ (one.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return `${texts.length}.${hash.toString(36)}`;
}

/**
 * What is told where a key has done another request: the first one, whose answer was lost, before what was typed was
 * changed.
 * @param {string} what
 * @param {Link} [link]
 * @returns {Refused}
 */
export const doneBefore = (what, link = undefined) => ({
  message: `${what} Its answer was lost, and you have changed something since: that has not been done.`,
  hint: 'Press the button again to do this one, too.',
  status: 409,
  links: link ? [link] : [],
});

/**
 * A refusal as it is told.
 * @param {Refused} refusal
 * @returns {Refused}
 */
function told(refusal) {
  const done = refusal.done;
  if (!done) return refusal;
  const { taskId, agentInstance } = done;
  const before = agentInstance === null ? `The task ${taskId} was made before.` : `The first request was carried out: see ${agentInstance}.`;
  const link = agentInstance === null ? undefined : { href: workerHref(taskId, agentInstance), text: `Open ${agentInstance}` };
  return { ...doneBefore(before, link), done };
}

/** In the place of the text, once another one was sent under its key: which of them was carried out is not known. */
const SEVERAL = '\0';

/** By these the command itself has refused; any other error says nothing of what a key has done. */
const ANSWERED = new Set([400, 404, 409, 422, 429]);

/**
 * Carries out what is meant to be done once; `held` keeps its key, to be called once there is a draft. `send` does so
 * with a text: unchanged behind a lost answer, it was sent, also where it would be another request by now, since the
 * worker has ended.
 * @typedef {{ held: () => void, run: <T>(act: (key: string) => Promise<T>) => Promise<T>,
 *   send: (text: string, act: (key: string) => Promise<unknown>) => Promise<void> }} Once
 * @param {string | undefined} name that of its draft; without one, it does not outlive the dialog
 * @param {boolean} [isFirst] there is no draft yet: another tab may have begun one
 * @returns {Once}
 */
export function useOnce(name, isFirst = false) {
  const key = useRef('');
  const place = name && `key ${name}`;
  const first = useRef(/** @type {string | null} */ (null));
  if (place && !isFirst) first.current ??= kept(`sent ${name}`);
  key.current ||= (place && !isFirst && kept(place)) || newKey();
  const held = () => {
    if (place) keep(place, key.current);
  };
  const spend = () => {
    if (place && kept(place) === key.current) {
      keep(place, null);
      keep(`sent ${name}`, null);
    }
    key.current = newKey();
    first.current = null;
  };
  const run = async (/** @type {(key: string) => Promise<any>} */ act) => {
    held();
    try {
      const answer = await act(key.current);
      spend();
      return answer;
    } catch (refusal) {
      // It is known then what was done: the same once more is another request.
      if (ANSWERED.has(refusal.status)) spend();
      throw told(refusal);
    }
  };
  const send = async (/** @type {string} */ text, /** @type {(key: string) => Promise<unknown>} */ act) => {
    const isSame = text === first.current;
    if (!isSame) {
      first.current = first.current === null ? text : SEVERAL;
      if (place) keep(`sent ${name}`, first.current);
    }
    try {
      await run(act);
    } catch (refusal) {
      if (!isSame || !refusal.done?.agentInstance) throw refusal;
      say(`${refusal.done.agentInstance} got it before.`, { links: refusal.links });
    }
  };
  return { held, run, send };
}
