// What a person does to a worker: each says what came of it, and what was refused.
import { get, post, segments, workerPath } from './api.js';
import { ask } from './dialogs.js';
import { html } from './dom.js';
import { useKeys } from './keys.js';
import { copyText, Foreign } from './pieces.js';
import { go, route, workerHref } from './router.js';
import { about, changed, fleet, isLive, partsOf, say, sayRefusal } from './store.js';

const linkTo = (task, instance) => ({ href: workerHref(task, instance), text: `Open ${instance}` });

/** Which further runs of ended workers are accepted, as far as that was asked: an end does not change. */
const furtherRuns = new Map();
const endOf = (worker) => `${worker.taskId}/${worker.agentInstance} ${worker.endedAt}`;

/** Ask once which further runs of an ended worker are accepted, so that no other is offered. */
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

/** Which actions make sense for a worker now. */
export function actionsFor(worker) {
  if (!worker || about.readOnly || worker.observed) return {};
  const live = isLive(worker);
  const isAgent = Boolean(worker.driver);
  const further = live ? null : furtherRuns.get(endOf(worker));
  // Of a task that is not their own a person can only end what runs.
  if (fleet.tasks.get(worker.taskId)?.own === false) return { cancel: live, seen: worker.need === 'review' };
  return {
    cancel: live,
    pause: live && worker.status !== 'queued' && !worker.paused,
    unpause: live && Boolean(worker.paused),
    send: live && worker.status !== 'queued',
    resume: !live && isAgent && further?.resume !== false,
    retry: !live && further?.retry !== false,
    seen: worker.need === 'review',
  };
}

async function run(doing, work) {
  try {
    return await work();
  } catch (error) {
    sayRefusal(error, doing);
    return null;
  }
}

const listed = (data) => (Array.isArray(data) ? data : data ? [data] : []);
const belowWords = (withIt) => (withIt?.length ? ` and ${withIt.length} below it` : '');

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
      const survivors = listed(data).flatMap((one) => [...(one.survivors ?? []), ...listed(one.withIt).flatMap((below) => below.survivors ?? [])]);
      const below = belowWords(first?.withIt);
      if (survivors.length) {
        say(`${instance} was cancelled, but ${survivors.length} of its processes survived: ${survivors.map((one) => `${one.pid} ${one.command ?? ''}`).join(', ').slice(0, 300)}`, { isError: true, hint: 'agentctl goes on watching and killing them' });
      } else if (first && first.cancelled === false) say(`${instance} had ended before: ${first.status}${first.note ? ` (${first.note})` : ''}`);
      else say(`${instance}${below} cancelled; nothing of it is left.`);
    },
  });
}

export const pauseWorker = (task, instance) => run('Pause', async () => {
  const { data } = await post(workerPath(task, instance, 'pause'));
  say(`${instance}${belowWords(listed(data)[0]?.withIt)} paused.`);
});

export const unpauseWorker = (task, instance) => run('Continue', async () => {
  const { data } = await post(workerPath(task, instance, 'unpause'));
  say(`${instance}${belowWords(listed(data)[0]?.withIt)} continues.`);
});

/** Hold the queue of a task, or let it go: what is at work goes on. */
export const holdQueue = (task) => run('Hold the queue', async () => {
  const { data } = await post(`/tasks/${segments(task)}/pause`);
  say(`The queue of ${task} is held: nothing is started${data?.queued ? `, ${data.queued} stay in it` : ''}.`);
});
export const letQueueGo = (task) => run('Let the queue go', async () => {
  await post(`/tasks/${segments(task)}/unpause`);
  say(`The queue of ${task} goes on.`);
});

/** Send a message to a live worker. */
export async function sendText(task, instance, text) {
  await post(workerPath(task, instance, 'send'), { text });
  say(`Sent to ${instance}.`);
}

/** Continue an ended agent; return the name of the run that does so. */
export async function resumeWith(task, instance, prompt) {
  const { data } = await post(workerPath(task, instance, 'resume'), { prompt, queue: true });
  const [made] = listed(data);
  const name = made?.agentInstance ?? instance;
  say(`${instance} is continued${name === instance ? '' : ` as ${name}`}${made?.message ? `: ${made.message}` : '.'}`, { link: linkTo(made?.taskId ?? task, name) });
  return name;
}

export function sendToWorker(task, instance) {
  const worker = fleet.workers.get(`${task}/${instance}`);
  const isEnded = worker && !isLive(worker);
  ask({
    title: isEnded ? `Continue ${instance}` : `Send to ${instance}`,
    ok: isEnded ? 'Continue' : 'Send',
    body: isEnded ? html`<p>It has ended. A new run continues its session with this.</p>` : null,
    field: { label: isEnded ? 'What it should do next' : 'Message', draft: `send.${task}/${instance}`, isNeeded: true },
    run: (text) => (isEnded ? resumeWith(task, instance, text) : sendText(task, instance, text)),
  });
}

export const retryWorker = (task, instance) => {
  ask({
    title: `Try ${instance} again?`,
    ok: 'Try again',
    doing: 'Starting…',
    body: html`<p>A new worker is started with the same order. <${Foreign} text=${instance} /> stays as it is.</p>`,
    run: async () => {
      const { data } = await post(workerPath(task, instance, 'retry'), { queue: true });
      const [made] = listed(data);
      say(`Started ${made?.agentInstance ?? instance}${made?.message ? `: ${made.message}` : '.'}`, { link: linkTo(made?.taskId ?? task, made?.agentInstance ?? instance) });
    },
  });
};

export const markSeen = (task, instance, isQuiet = false) => run('Mark as seen', async () => {
  await post(workerPath(task, instance, 'seen'));
  if (!isQuiet) say(`${instance} counts as seen.`);
});

export const copyName = async (task, instance) => {
  await copyText(`${instance} --task ${task}`);
  say(`Copied: ${instance} --task ${task}`);
};

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

/** Answer a question. `shown` is its body as the person saw it. */
export async function respond(task, instance, question, answer, reason = undefined) {
  const { id, ...shown } = question;
  const body = { answer, shown };
  if (reason) body.reason = reason;
  const { data } = await post(workerPath(task, instance, 'interact', id), body);
  return data?.answer ?? answer;
}

/** The keys that act on one worker, of which `keyNow` says which. */
export function useWorkerKeys(keyNow) {
  const act = (name, work) => () => {
    const key = keyNow();
    const worker = key && fleet.workers.get(key);
    if (!worker) return false;
    const can = actionsFor(worker);
    const [task, instance] = partsOf(key);
    if (name && !can[name]) {
      const why = about.readOnly ? 'this page may only look' : `nothing to ${name === 'seen' ? 'mark' : name} there: ${instance} is ${worker.status}`;
      say(why);
      return true;
    }
    work(task, instance, worker, can);
    return true;
  };
  const showTab = (tab) => (task, instance) => go(workerHref(task, instance, tab), { isReplacing: route.place.view === 'worker' });
  useKeys({
    cancel: act('cancel', cancelWorker),
    pause: act('', (task, instance, worker, can) => {
      if (can.unpause) unpauseWorker(task, instance);
      else if (can.pause) pauseWorker(task, instance);
      else say(`nothing to pause: ${instance} is ${worker.status}`);
    }),
    send: act('', (task, instance, worker, can) => {
      if (can.send || can.resume) sendToWorker(task, instance);
      else say(`nothing can be sent to it: ${instance} is ${worker.status}`);
    }),
    retry: act('retry', retryWorker),
    seen: act('seen', (task, instance) => markSeen(task, instance)),
    why: act('', showTab('why')),
    diff: act('', showTab('diff')),
    copy: act('', copyName),
  });
}
