// The head of a worker: who it is and how it stands, and what a person can do to it. One of these is the next step.
import {
  actionsFor, cancelWorker, copyName, markSeen, pauseWorker, retryWorker, sendToWorker, unpauseWorker,
} from './actions.js';
import { openDialog } from './dialogs.js';
import { html } from './dom.js';
import { Sign, WorkerTime } from './pieces.js';
import { toQuestion } from './question_card.js';
import { go, taskHref, workerHref } from './router.js';
import { oneLine, plain } from './safe_text.js';
import { about, fleet, keyOf, useTopics } from './store.js';
import { nextStep } from './text/worker_steps.js';
import {
  agentWords, costWords, endWords, progressWords, saidAtEnd, shortNumber, signOf, standing, TERMINAL, tokensOf,
} from './words.js';

/**
 * What can be done; `isNext` of the one that is blue. What a key does in turn is one button, and keeps the focus.
 * @typedef {{ words: string, key?: string, run: () => unknown, isNext?: boolean, isDanger?: boolean }} Doing
 */

/**
 * @param {Sent.Worker} worker
 * @param {string} tab
 * @param {number} questions
 * @returns {Doing[]}
 */
function doings(worker, tab, questions) {
  const { taskId: task, agentInstance: instance } = worker;
  const can = actionsFor(worker);
  const step = nextStep(worker, tab, about.readOnly ? 0 : questions);
  /** @param {string} name */
  const show = (name) => () => go(workerHref(task, instance, name), { isReplacing: true });
  /** @type {Array<[boolean | undefined, Doing]>} */
  const all = [
    [step === 'answer', { words: 'Answer', run: () => toQuestion(keyOf(task, instance)), isNext: true }],
    [step === 'error', { words: 'See the error', key: 'y', run: show('why'), isNext: true }],
    [step === 'diff', { words: 'Review diff', key: 'd', run: show('diff'), isNext: true }],
    [step === 'result', { words: 'See the result', run: show('result'), isNext: true }],
    [can.send, { words: 'Send…', key: 's', run: () => sendToWorker(task, instance), isNext: step === 'send' }],
    [can.resume, { words: 'Continue…', key: 's', run: () => sendToWorker(task, instance) }],
    [can.pause, { words: 'Pause', key: 'p', run: () => pauseWorker(task, instance) }],
    [can.unpause, { words: 'Continue', key: 'p', run: () => unpauseWorker(task, instance), isNext: !questions }],
    [can.retry, { words: 'Try again', key: 'r', run: () => retryWorker(task, instance) }],
    [can.seen, { words: 'Mark as seen', key: 'v', run: () => markSeen(task, instance) }],
    [true, { words: 'Copy name', run: () => copyName(task, instance) }],
    [can.cancel, { words: 'Cancel…', key: 'x', run: () => cancelWorker(task, instance), isDanger: true }],
  ];
  return all.filter(([isThere]) => isThere).map(([, doing]) => doing);
}

/** @param {{ doing: Doing, class?: string }} props */
const Button = ({ doing, class: name = '' }) => html`<button type="button" class=${`${doing.isNext ? 'primary' : doing.isDanger ? 'danger' : ''} ${name}`} onClick=${doing.run}>${doing.words}${doing.key && html`<kbd aria-hidden="true">${doing.key}</kbd>`}</button>`;

/**
 * What can be done to a worker, as a list: where there is no room for all of it.
 * @param {{ close: () => void, workerKey: string, tab: string, questions: number }} props
 */
function Menu({ close, workerKey, tab, questions }) {
  useTopics('fleet');
  const worker = fleet.workers.get(workerKey);
  return html`<div class="menu"><h2 id="dialog-title" class="foreign">${plain(worker?.agentInstance ?? 'It is gone')}</h2>
    ${worker && doings(worker, tab, questions).map((doing) => html`<${Button} key=${doing.key ?? doing.words} doing=${{ ...doing, run: () => {
      close();
      // The next dialog, and what gets the focus, come behind the close of this one.
      setTimeout(doing.run, 50);
    } }} />`)}
    <button type="button" onClick=${close}>Close</button></div>`;
}

/** @param {{ worker: Sent.Worker, task: string, instance: string, tab: string, questions: number }} props */
export function WorkerHead({ worker, task, instance, tab, questions }) {
  const sign = signOf(worker);
  const tokens = tokensOf(worker);
  const cost = costWords(worker.usage?.costUsd);
  const ended = TERMINAL.has(worker.status);
  const unusual = worker.reason ? '' : standing(worker);
  const can = doings(worker, tab, questions);
  return html`<div class="worker-head">
    <p class="crumbs"><a href="/">All</a> <span aria-hidden="true">/</span> <a class="foreign" href=${taskHref(task)}>${plain(task)}</a>${worker.parent && html` <span aria-hidden="true">/</span> <a class="foreign" href=${workerHref(task, worker.parent)}>${plain(worker.parent)}</a>`}</p>
    <div class="title">
      <h1><${Sign} sign=${sign} /> <span class="foreign">${plain(instance)}</span></h1>
      <p class="facts-line">
        <span class=${sign.role}>${ended ? endWords(worker) : sign.words}</span>
        ${unusual && unusual !== sign.words && html`<span class="blocked">${unusual}</span>`}
        ${agentWords(worker) && html`<span class="agent foreign">${agentWords(worker)}</span>`}
        <${WorkerTime} worker=${worker} />
        ${(worker.attempt ?? 1) > 1 && html`<span>attempt ${worker.attempt}</span>`}
        ${tokens > 0 && html`<span>${shortNumber(tokens)} tokens</span>`}
        ${cost && html`<span>${cost}</span>`}
        ${!ended && worker.progress && html`<span class="foreign">${progressWords(worker.progress)}</span>`}
      </p>
      <div class="buttons">
        ${can.map((doing) => html`<${Button} key=${doing.key ?? doing.words} doing=${doing} class=${doing.isNext ? '' : 'wide-only'} />`)}
        <button type="button" class="narrow-only more-actions" aria-label="More actions" onClick=${() => openDialog(Menu, { workerKey: keyOf(task, instance), tab, questions })}>⋯</button>
      </div>
    </div>
    <${SaidAtEnd} worker=${worker} task=${task} instance=${instance} tab=${tab} />
  </div>`;
}

/**
 * What is said of a failure beside its reason, and the way to all that it wrote, which opens on the stream that tells.
 * @param {{ worker: Sent.Worker, task: string, instance: string, tab: string }} props
 */
function SaidAtEnd({ worker, task, instance, tab }) {
  const said = worker.status === 'failed' ? saidAtEnd(worker) : [];
  if (!said.length) return null;
  const isElsewhere = worker.lastLine && tab !== 'output' && tab !== 'why'; // These lead there themselves.
  return html`<div class="said-at-end">
    ${said.map((one) => html`<p key=${one} class="failed foreign">${oneLine(one)}</p>`)}
    ${isElsewhere && html`<a class="button small" href=${workerHref(task, instance, 'output')}>See its output</a>`}
  </div>`;
}
