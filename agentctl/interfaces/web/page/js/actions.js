// What a person does to a worker: each says what came of it, and what was refused.
import { get, post, segments, workerPath } from './api.js';
import { ask } from './dialogs.js';
import { html } from './dom.js';
import { digestOf } from './once.js';
import { copyText, Foreign } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { about, changed, fleet, isLive, partsOf, say, sayRefusal } from './store.js';
import { VARIABLES_OF } from './text/at_terminal.js';
import { LOOKED_AT } from './words.js';

/**
 * @param {string} task
 * @param {string} instance
 */
const linkTo = (task, instance) => ({ href: workerHref(task, instance), text: `Open ${instance}` });

/**
 * Which further runs of ended workers are accepted, as far as that was asked: an end does not change.
 * @type {Map<string, Sent.Shown['furtherRuns']>}
 */
const furtherRuns = new Map();
/** @param {Sent.Worker} worker */
const endOf = (worker) => `${worker.taskId}/${worker.agentInstance} ${worker.endedAt}`;

/**
 * Ask once which further runs of an ended worker are accepted, so that no other is offered.
 * @param {Sent.Worker} worker
 */
export async function learnFurtherRuns(worker) {
  const end = endOf(worker);
  if (furtherRuns.has(end)) return;
  furtherRuns.set(end, null);
  try {
    const shown = await get(workerPath(worker.taskId, worker.agentInstance));
    furtherRuns.set(end, shown.furtherRuns);
    changed('fleet');
  } catch {
    furtherRuns.delete(end);
  }
}

/** @typedef {Partial<Record<'cancel'|'pause'|'unpause'|'send'|'resume'|'retry'|'seen', boolean>>} Can */

/**
 * Which actions make sense for a worker now.
 * @param {Sent.Worker | null | undefined} worker
 * @returns {Can}
 */
export function actionsFor(worker) {
  if (!worker || about.readOnly || worker.observed) return {};
  const live = isLive(worker);
  const isAgent = Boolean(worker.driver);
  const further = live ? null : furtherRuns.get(endOf(worker));
  // Of a task that is not their own a person can only end what runs.
  if (fleet.tasks.get(worker.taskId)?.own === false) return { cancel: live, seen: LOOKED_AT.has(worker.need) };
  return {
    cancel: live,
    pause: live && worker.status !== 'queued' && !worker.paused,
    unpause: live && Boolean(worker.paused),
    send: live && worker.status !== 'queued',
    resume: !live && isAgent && further?.resume !== false,
    retry: !live && further?.retry !== false,
    seen: LOOKED_AT.has(worker.need),
  };
}

/** What is not there to be done to a worker, where an action does nothing. */
const VERBS = {
  cancel: 'cancel', pause: 'pause', unpause: 'continue', send: 'send to', retry: 'start again', seen: 'look at',
};

/**
 * What a worker is, that an action does nothing to it; empty where it does something.
 * @param {keyof typeof VERBS} name
 * @param {Sent.Worker | undefined} worker
 */
export function lackOf(name, worker) {
  if (!worker) return 'not there any more';
  const can = actionsFor(worker);
  if (can[name] || (name === 'send' && can.resume)) return '';
  if (worker.observed) return 'only observed: its own program can stop it';
  const isOver = !isLive(worker);
  if (fleet.tasks.get(worker.taskId)?.own === false && name !== 'seen' && !(name === 'cancel' && isOver)) {
    return 'in a task that is not yours: it can only be cancelled';
  }
  if (isOver && name === 'retry') return 'not to be started again: y says why it ended';
  if (isOver && name === 'send' && worker.driver) return 'not to be continued: y says why it ended';
  if (isOver && name === 'seen') return 'looked at already';
  if (worker.paused && name === 'pause') return 'paused already';
  return plain(`${worker.status}: there is nothing to ${VERBS[name]}`);
}

/**
 * @template T
 * @param {string} doing
 * @param {() => Promise<T>} work
 */
async function run(doing, work) {
  try {
    return await work();
  } catch (error) {
    sayRefusal(error, doing);
    return null;
  }
}

/**
 * @param {Sent.Done | Sent.Done[] | null | undefined} data
 * @returns {Sent.Done[]}
 */
const listed = (data) => (Array.isArray(data) ? data : data ? [data] : []);
/** @param {unknown[] | undefined} withIt */
const belowWords = (withIt) => (withIt?.length ? ` and ${withIt.length} below it` : '');

/**
 * @param {string} task
 * @param {string} instance
 */
export function cancelWorker(task, instance) {
  const worker = fleet.workers.get(`${task}/${instance}`);
  const isQueued = worker?.status === 'queued';
  ask({
    title: `Cancel ${instance}?`,
    ok: 'Cancel it',
    doing: 'Cancelling…',
    isDanger: true,
    body: html`<p>${isQueued
      ? 'It leaves the queue, and is never started.'
      : 'All of its processes are told to stop (SIGINT), then told again (SIGTERM), and then killed (SIGKILL). The workers that it started are cancelled too.'}
      ${' '}What it has written stays.</p>`,
    run: async () => {
      const { data } = await post(workerPath(task, instance, 'cancel'));
      const [first] = listed(data);
      const all = listed(data).flatMap((one) => [one, ...listed(one.withIt)]);
      const survivors = all.flatMap((one) => one.survivors ?? []);
      const below = belowWords(first?.withIt);
      if (survivors.length) {
        say(`${instance} was cancelled, but ${survivors.length} of its processes survived: ${survivors.map((one) => `${one.pid} ${one.command ?? ''}`).join(', ').slice(0, 300)}`, { isError: true, hint: 'agentctl goes on watching and killing them' });
      } else if (first && first.cancelled === false) say(`${instance} had ended before: ${first.status}${first.note ? ` (${first.note})` : ''}`);
      else say(`${instance}${below} cancelled; nothing of it is left.`);
    },
  });
}

/**
 * What was asked of workers last, where no answer came: by task/instance.
 * @type {Map<string, 'pause' | 'unpause'>}
 */
const unheard = new Map();

/**
 * Which of the two the one key for both means. Pressed again behind an answer that was lost, it means the same: by now
 * the worker may be shown as it was wanted, and the other one would undo that.
 * @param {string} key
 * @returns {'pause' | 'unpause'}
 */
export function meantByPauseKey(key) {
  const before = unheard.get(key);
  unheard.delete(key);
  return before ?? (fleet.workers.get(key)?.paused ? 'unpause' : 'pause');
}

/**
 * @param {'pause' | 'unpause'} name
 * @param {string} doing
 * @param {string} done
 */
const turning = (name, doing, done) => (/** @type {string} */ task, /** @type {string} */ instance) => {
  const key = `${task}/${instance}`;
  unheard.delete(key);
  return run(doing, async () => {
    try {
      const { data } = await post(workerPath(task, instance, name));
      say(`${instance}${belowWords(listed(data)[0]?.withIt)} ${done}.`);
    } catch (error) {
      if (!error.status) unheard.set(key, name);
      throw error;
    }
  });
};
export const pauseWorker = turning('pause', 'Pause', 'paused');
export const unpauseWorker = turning('unpause', 'Continue', 'continues');

/**
 * Hold the queue of a task, or let it go: what is at work goes on.
 * @param {string} task
 */
export const holdQueue = (task) => run('Hold the queue', async () => {
  const { data } = await post(`/tasks/${segments(task)}/pause`);
  say(`The queue of ${task} is held: nothing is started${data?.queued ? `, ${data.queued} stay in it` : ''}.`);
});
/** @param {string} task */
export const letQueueGo = (task) => run('Let the queue go', async () => {
  await post(`/tasks/${segments(task)}/unpause`);
  say(`The queue of ${task} goes on.`);
});

/**
 * Send a message to a live worker.
 * @param {string} task
 * @param {string} instance
 * @param {string} text
 * @param {string} key
 */
export async function sendText(task, instance, text, key) {
  await post(workerPath(task, instance, 'send'), { text, key });
  say(`Sent to ${instance}.`);
}

/**
 * Continue an ended agent; return the name of the run that does so.
 * @param {string} task
 * @param {string} instance
 * @param {string} prompt
 * @param {string} key
 */
export async function resumeWith(task, instance, prompt, key) {
  const { data } = await post(workerPath(task, instance, 'resume'), { prompt, queue: true, key });
  const [made] = listed(data);
  const name = made?.agentInstance ?? instance;
  say(`${instance} is continued${name === instance ? '' : ` as ${name}`}${made?.message ? `: ${made.message}` : '.'}`, { links: [linkTo(made?.taskId ?? task, name)] });
  return name;
}

/**
 * @param {string} task
 * @param {string} instance
 */
export function sendToWorker(task, instance) {
  const worker = fleet.workers.get(`${task}/${instance}`);
  const isEnded = worker && !isLive(worker);
  ask({
    title: isEnded ? `Continue ${instance}` : `Send to ${instance}`,
    ok: isEnded ? 'Continue' : 'Send',
    body: isEnded ? html`<p>It has ended. A new run continues its session with this.</p>` : null,
    field: { label: isEnded ? 'What it should do next' : 'Message', draft: `send.${task}/${instance}`, isNeeded: true },
    run: (text, key) => (isEnded ? resumeWith(task, instance, text, key) : sendText(task, instance, text, key)),
  });
}

/**
 * The work of a worker, with its task. Where the answer to a further try was lost, the newest tries are those that it
 * would have told of: the works are the same.
 * @param {string} key
 */
export function workOf(key) {
  const [task, instance] = partsOf(key);
  return `${task}/${fleet.workers.get(key)?.work ?? instance}`;
}

/**
 * Under what the key of a further try is kept: of the same works it is the same, whichever way they were chosen.
 * @param {string[]} keys
 */
export function onceTried(keys) {
  const works = keys.map(workOf);
  return works.length === 1 ? `retry.${works[0]}` : `retry ${digestOf(works)}`;
}

/**
 * @param {string} task
 * @param {string} instance
 */
export const retryWorker = (task, instance) => {
  ask({
    title: `Try ${instance} again?`,
    ok: 'Try again',
    doing: 'Starting…',
    once: onceTried([`${task}/${instance}`]),
    body: html`<p>A new worker is started with the same order. <${Foreign} text=${instance} /> stays as it is.</p>`,
    run: async (_text, key) => {
      const { data } = await post(workerPath(task, instance, 'retry'), { queue: true, key });
      const [made] = listed(data);
      const name = made?.agentInstance ?? instance;
      const done = made?.reused ? `${name} was started before` : `Started ${name}`;
      say(`${done}${made?.message ? `: ${made.message}` : '.'}`, { links: [linkTo(made?.taskId ?? task, name)] });
    },
  });
};

/**
 * Start the work of several workers of a task once more: of one that failed, together with those that it waited for.
 * @param {string} task
 * @param {string[]} instances
 */
export const retryTogether = (task, instances) => {
  const names = instances.map(plain).join(', ');
  ask({
    title: `Try ${instances.length} again?`,
    ok: 'Try again',
    doing: 'Starting…',
    once: onceTried(instances.map((name) => `${task}/${name}`)),
    body: html`<p>New workers are started with the same orders. These stay as they are: <${Foreign} text=${names} />.</p>`,
    run: async (_text, key) => {
      const { data } = await post(`/tasks/${segments(task)}/retry`, { instances, queue: true, key });
      say(`Started ${listed(data).map((made) => made.agentInstance).join(', ')}`);
    },
  });
};

/**
 * Have those in the queue that lost their environment start with that of the server.
 * @param {string} task
 */
export const startWithEnvironment = (task) => {
  ask({
    title: 'Start them with the environment of the server?',
    ok: 'Start them',
    doing: 'Starting…',
    body: html`<p>All workers in the queue of <${Foreign} text=${task} /> that have lost their environment get the variables with which <code>${VARIABLES_OF}</code> was started.</p>`,
    run: async () => {
      await post(`/tasks/${segments(task)}/resume-queue`);
      say('They have an environment again, and start when it is their turn.');
    },
  });
};

/**
 * @param {string} task
 * @param {string} instance
 */
export const markSeen = (task, instance, isQuiet = false) => run('Mark as seen', async () => {
  await post(workerPath(task, instance, 'seen'));
  if (!isQuiet) say(`${instance} counts as seen.`);
});

/**
 * @param {string} task
 * @param {string} instance
 */
export const copyName = async (task, instance) => {
  await copyText(`${instance} --task ${task}`);
  say(`Copied: ${instance} --task ${task}`);
};

/**
 * @param {string} task
 * @param {string} instance
 * @param {() => void} onDone
 */
export function removeWorktree(task, instance, onDone) {
  ask({
    title: `Remove the worktree of ${instance}?`,
    ok: 'Remove it',
    doing: 'Removing…',
    isDanger: true,
    body: html`<p>The folder goes. It is refused while a worker or anything else runs in it, or while it has changes that are in no commit or on no other branch.</p>`,
    run: async () => {
      const { data } = await post(workerPath(task, instance, 'worktree', 'remove'));
      const [made] = listed(data);
      say(`The worktree of ${instance} was removed${made?.branchDeleted ? `, and its branch ${made.branch}` : made?.branch ? `; its branch ${made.branch} is still there` : ''}.`);
      onDone?.();
    },
  });
}

/**
 * Answer a question. `shown` is its body as the person saw it.
 * @param {string} task
 * @param {string} instance
 * @param {Sent.Question} question
 * @param {string} answer
 * @param {string} [reason]
 */
export async function respond(task, instance, question, answer, reason = undefined) {
  const { id, ...shown } = question;
  const body = { answer, shown, ...(reason && { reason }) };
  const { data } = await post(workerPath(task, instance, 'interact', id), body);
  return data?.answer ?? answer;
}
