// What is done to all marked workers: a question before it with their number and names, one request, and by name what
// became of each. Who is hidden, or to whom it would do nothing, is left alone, and the question says so.
import { lackOf, onceTried, workOf } from './actions.js';
import { post } from './api.js';
import { ask } from './dialogs.js';
import { html } from './dom.js';
import { areMarked, marks, unmarkAll, whyHidden } from './marking.js';
import { digestOf, doneBefore } from './once.js';
import { copyText, Foreign } from './pieces.js';
import { fleet, isLive, partsOf, say, useTopics } from './store.js';
import { stepsInWords } from './text/next_steps.js';
import { counted } from './words.js';

/**
 * `title` is that of the question, `ok` the button that says yes to it ($ is them, or it), `means` what is then done;
 * `lacks` is what none of the marked ones is where that would do nothing, `done` what has become of the others, `as`
 * what stands before the name of a new worker.
 * @typedef {{ button: string, title: string, ok: string, doing: string, lacks: string, done: string, as?: string,
 *   means: (keys: string[], namesOf: NamesOf) => string, isDanger?: boolean, hasText?: boolean }} Action
 * @typedef {(keys: string[], most?: number) => string} NamesOf
 * @typedef {'send'|'pause'|'unpause'|'retry'|'seen'|'cancel'} Several
 */

/** @type {Record<Several, Action>} */
const ACTIONS = {
  send: {
    button: 'Send', title: 'Send to', ok: 'Send', doing: 'Sending…', lacks: 'takes a message', done: 'got it',
    as: 'is continued as', hasText: true,
    means: (keys, namesOf) => {
      const ended = keys.filter((key) => !isLive(/** @type {Sent.Worker} */ (fleet.workers.get(key))));
      return ended.length ? `A new run continues the session of whoever has ended: ${namesOf(ended)}.` : '';
    },
  },
  pause: {
    button: 'Pause', title: 'Pause', ok: 'Pause $', doing: 'Pausing…', lacks: 'is at work', done: 'paused',
    means: () => 'Their processes and those of the workers below them stop until they continue.',
  },
  unpause: {
    button: 'Continue', title: 'Continue', ok: 'Let $ continue', doing: 'Continuing…', lacks: 'is paused',
    done: 'continued', means: () => 'Their processes go on, and those of the workers below them.',
  },
  retry: {
    button: 'Try again', title: 'Start again the work of', ok: 'Try again', doing: 'Starting…',
    lacks: 'can be started again', done: 'tried again',
    as: 'is tried again as',
    means: () => 'For each a new worker is started with the same order, as soon as there is a slot for it.',
  },
  seen: {
    button: 'Seen', title: 'Mark as seen', ok: 'Mark as seen', doing: 'Noting…', lacks: 'has an end to look at',
    done: 'marked as seen', means: () => '',
  },
  cancel: {
    button: 'Cancel', title: 'Cancel', ok: 'Cancel $', doing: 'Cancelling…', isDanger: true,
    lacks: 'is at work or in the queue', done: 'cancelled; nothing of that is left',
    means: () => 'All of their processes are told to stop (SIGINT), then told again (SIGTERM), then killed (SIGKILL);'
      + ' who waits in the queue leaves it. The workers that they started are cancelled too. What is written stays.',
  },
};

/** So many workers are named in a question; and so many in a line. */
const MOST_ASKED = 100;
const MOST_IN_LINE = 20;

/**
 * The marked ones as an action parts them.
 * @param {Several} name
 */
const partedBy = (name) => marks.parted((key) => whyHidden(key) || lackOf(name, fleet.workers.get(key)));

/**
 * Whether an action would do something to any of the marked ones.
 * @param {Several} name
 */
export const isPossible = (name) => partedBy(name).acting.length > 0;

/**
 * How workers are named: with their tasks, where they are of several.
 * @param {string[]} all
 * @returns {NamesOf}
 */
function namerOf(all) {
  const isOfOne = new Set(all.map((key) => partsOf(key)[0])).size === 1;
  return (keys, most = MOST_IN_LINE) => {
    const names = keys.slice(0, most).map((key) => (isOfOne ? partsOf(key)[1] : key)).join(', ');
    return keys.length > most ? `${names} and ${(keys.length - most).toLocaleString('en')} more` : names;
  };
}

/**
 * Ask before something is done to the marked ones; return why there is nothing to be done.
 * @param {Several} name
 */
export function actOnMarked(name) {
  const { acting, leftAlone } = partedBy(name);
  const action = ACTIONS[name];
  const all = marks.keys();
  const namesOf = namerOf(all);
  if (!acting.length) {
    if (all.every(whyHidden)) return 'no marked worker is shown here: Esc takes the marks away';
    const [lack] = leftAlone.keys();
    return all.length > 1 ? `none of the ${all.length} marked workers ${action.lacks}` : `${namesOf(all)} is ${lack}`;
  }
  const means = action.means(acting, namesOf);
  // What is tried again are works, and these in the same order, whichever try of each is the newest.
  const ordered = name === 'retry' ? acting.toSorted((one, other) => (workOf(one) < workOf(other) ? -1 : 1)) : acting;
  ask({
    title: `${action.title} ${counted(acting.length, 'marked worker')}?`,
    ok: action.ok.replace('$', acting.length > 1 ? 'them' : 'it'),
    doing: action.doing,
    isDanger: action.isDanger,
    body: html`<p class="marked-names"><${Foreign} text=${namesOf(acting, MOST_ASKED)} /></p>
      ${means && html`<p><${Foreign} text=${means} /></p>`}
      ${leftAlone.size > 0 && html`<div class="left-alone"><p>Left alone:</p>
        <ul>${[...leftAlone].map(([why, keys]) => html`<li key=${why}><${Foreign} class="name" text=${namesOf(keys)} /> <span class="quiet">(<${Foreign} text=${why} />)</span></li>`)}</ul></div>`}`,
    field: action.hasText ? { label: 'Message', draft: 'send.marked', isNeeded: true } : undefined,
    once: name === 'retry' ? onceTried(ordered) : `${name} ${digestOf(acting)}`,
    run: async (text, key) => {
      const workers = ordered.map(partsOf).map(([taskId, agentInstance]) => ({ taskId, agentInstance }));
      const said = { workers, ...(action.hasText && { text }), ...(action.as && { key }) };
      const { data } = await post(`/workers/${name}`, said);
      /** @type {Sent.Outcomes} */
      const outcomes = data;
      if (outcomes.workers.some((one) => one.conflict)) throw doneBefore('They got the first text.');
      unmarkAll();
      tell(action, data, namesOf);
    },
  });
  return '';
}

/**
 * Say what became of each.
 * @param {Action} action
 * @param {Sent.Outcomes} outcomes
 * @param {NamesOf} namesOf
 */
function tell(action, { workers, below }, namesOf) {
  /** @param {Sent.Outcome} one */
  const nameOf = (one) => namesOf([`${one.taskId}/${one.agentInstance}`]);
  const done = workers.filter((one) => one.done);
  const refused = workers.length - done.length;
  const names = namesOf(done.map((one) => `${one.taskId}/${one.agentInstance}`));
  const more = below.length ? ` and ${below.length} below` : '';
  const parts = [
    done.length > 0 && `${names}${more} ${action.done}.`,
    refused > 0 && `${refused} of ${workers.length} not done:`,
  ];
  const list = [...workers, ...below].flatMap((one) => {
    const alive = (one.survivors ?? []).map(({ pid, command }) => `${pid} ${command ?? ''}`.trim()).join(', ');
    const { text: hint, links } = stepsInWords(one, `/tasks/${one.taskId}`);
    const detail = hint ? `${one.detail} (${hint})` : one.detail;
    const said = [one.startedAs && `${nameOf(one)} ${action.as} ${one.startedAs}`, detail, alive && `alive: ${alive}`];
    const text = said.filter(Boolean).join('; ');
    return text ? [{ text: text.startsWith(`${nameOf(one)} `) ? text : `${nameOf(one)}: ${text}`, links }] : [];
  });
  say(parts.filter(Boolean).join(' '), { isError: refused > 0, list });
}

/** Copy the names of the marked ones as commands take them: a line for each task. */
export async function copyMarked() {
  /** @type {Map<string, string[]>} */
  const byTask = new Map();
  for (const [task, instance] of marks.keys().filter((key) => !whyHidden(key)).map(partsOf)) {
    byTask.set(task, [...(byTask.get(task) ?? []), instance]);
  }
  const lines = [...byTask].map(([task, names]) => `${names.join(' ')} --task ${task}`);
  await copyText(lines.join('\n'));
  say(`Copied: ${lines.join('; ')}`);
}

/** What can be done to the marked ones, below the list: for the mouse, and for a thumb. */
export function MarksBar() {
  useTopics('marks', 'fleet', 'chosen', 'route');
  if (!areMarked()) return null;
  const possible = /** @type {Several[]} */ (Object.keys(ACTIONS)).filter(isPossible);
  return html`<section class="marks-bar" aria-label="The marked workers"><div class="buttons">
    <button type="button" onClick=${unmarkAll}>Unmark<kbd aria-hidden="true">Esc</kbd></button>
    ${possible.map((name) => html`<button key=${name} type="button" class=${ACTIONS[name].isDanger ? 'danger' : ''} onClick=${() => actOnMarked(name)}>${ACTIONS[name].button}…</button>`)}
  </div></section>`;
}
