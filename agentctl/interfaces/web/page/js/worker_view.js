// One worker: who it is and how it stands, what it asks, and a tab for each thing that is known of it.
import { learnFurtherRuns, markSeen } from './actions.js';
import { get, workerPath } from './api.js';
import { AskedBefore } from './asked_before.js';
import { DiffTab } from './diff_view.js';
import { html, useEffect, useRef } from './dom.js';
import { EventsTab } from './events_view.js';
import { useFoundWords } from './found_words.js';
import { useKeys } from './keys.js';
import { LogsTab } from './logs_view.js';
import { Foreign, Loading, Problem, Tabs, useFetched, useMissing } from './pieces.js';
import { WORKER_TABS } from './places.js';
import { cardKey, openQuestions, QuestionCard, questionKeys, takeWanted } from './question_card.js';
import { go, taskHref, workerHref } from './router.js';
import { plain } from './safe_text.js';
import { reveal } from './scrolling.js';
import { about, fleet, keyOf, useTopics, whyNobody } from './store.js';
import { TimelineTab } from './timeline_view.js';
import { TranscriptTab } from './transcript_view.js';
import { emptyTabs } from './text/worker_steps.js';
import { WhyTab } from './why_view.js';
import { LOOKED_AT, table, TERMINAL } from './words.js';
import { DetailsTab, QuestionsTab, ResultTab } from './worker_facts.js';
import { WorkerHead } from './worker_head.js';
import { useWorkerKeys } from './worker_keys.js';

/** @import { Place } from './places.js' */

const TAB_WORDS = table({
  transcript: 'Transcript', output: 'Output', diff: 'Diff', result: 'Result', questions: 'Questions',
  timeline: 'Timeline', events: 'Events', why: 'Why', details: 'Details',
});
/** @type {Record<string, ((props: any) => object) | undefined>} */
const TABS = table({
  transcript: TranscriptTab, output: LogsTab, diff: DiffTab, result: ResultTab, questions: QuestionsTab,
  timeline: TimelineTab, events: EventsTab, why: WhyTab, details: DetailsTab,
});

/** @param {{ place: Place }} props */
export function WorkerView({ place }) {
  useTopics('fleet', 'about');
  const { task, instance } = place;
  const key = keyOf(task, instance);
  const inFleet = fleet.workers.get(key);
  const isMissing = fleet.isKnown && !inFleet;
  const asked = useMissing(workerPath(task, instance), isMissing);
  // What `show` has of its questions does not make a card: the fleet alone says which answers may be given.
  /** @type {Sent.Worker | null} */
  const worker = inFleet ?? (asked.data && { ...asked.data, questions: [], taskId: task, need: 'done' });

  // Whoever opens the screen of a worker has looked at its end, or at its answer.
  const isUnseen = LOOKED_AT.has(worker?.need);
  useEffect(() => {
    if (!isUnseen || !about.isKnown || about.readOnly) return undefined;
    const look = () => {
      if (!document.hidden) markSeen(task, instance, true);
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, [key, isUnseen, about.isKnown]);

  useEffect(() => {
    if (worker && TERMINAL.has(worker.status)) learnFurtherRuns(worker);
  }, [key, worker?.endedAt]);

  const tab = place.tab || (worker?.driver ? 'transcript' : 'output');
  const questions = worker ? openQuestions(key, worker) : [];
  /** @param {number} step */
  const showTab = (step) => {
    const at = WORKER_TABS.indexOf(tab) + step;
    go(workerHref(task, instance, WORKER_TABS[(at + WORKER_TABS.length) % WORKER_TABS.length]), { isReplacing: true });
  };
  const keys = questionKeys(() => questions[0] && cardKey(key, questions[0]), () => whyNobody(`${instance} asks nothing`));
  useKeys({
    ...keys,
    digit: (event) => {
      if (questions.length || !fleet.isKnown) return keys.digit(event);
      const name = WORKER_TABS[Number(event.key) - 1];
      if (name) go(workerHref(task, instance, name), { isReplacing: true });
      return Boolean(name);
    },
    tab: (event) => showTab(event.key === '[' ? -1 : 1),
  });
  useWorkerKeys(() => key);
  const body = useRef(null);
  // An output is not here as a whole: it has its own search, in the server.
  useFoundWords(body, tab === 'output' ? [] : place.query.getAll('find'), `${key} ${tab} ${Boolean(worker)}`);

  if (!worker) {
    if (asked.error) return html`<div class="empty"><h1><${Foreign} text=${instance} /></h1><${Problem} error=${asked.error} /><p>${fleet.tasks.has(task) ? html`<a href=${taskHref(task)}>The task <${Foreign} text=${task} /></a>` : html`<a href="/tree">All tasks</a>`}</p></div>`;
    return html`<h1 class="unseen">${plain(instance)}</h1><${Loading} />`;
  }
  const Tab = TABS[tab];
  const wanted = place.query.get('question');
  const asks = questions.length > 0 && html`<${Asking} key=${key} task=${task} instance=${instance} workerKey=${key} questions=${questions} wanted=${wanted} />`;
  const isOver = wanted && !questions.some((one) => one.id === wanted);
  const isFollowing = tab === 'transcript' || tab === 'output';
  return html`<${WorkerHead} worker=${worker} task=${task} instance=${instance} tab=${tab} questions=${questions.length} />
    <${WorkerTabs} worker=${worker} task=${task} instance=${instance} tab=${tab} />
    <div class="worker-body" ref=${body}>
      ${isOver && html`<${AskedBefore} key=${wanted} task=${task} instance=${instance} id=${wanted} worker=${worker} />`}
      ${!isFollowing && tab !== 'questions' && asks}
      <${Tab} key=${`${key} ${tab}`} task=${task} instance=${instance} worker=${worker} workerKey=${key} asks=${asks} />
    </div>`;
}

/** @param {{ worker: Sent.Worker, task: string, instance: string, tab: string }} props */
function WorkerTabs({ worker, task, instance, tab }) {
  const ids = (worker.questions ?? []).map((one) => one.id).join();
  /** @returns {Promise<Sent.Shown>} */
  const load = () => get(workerPath(task, instance));
  const { data } = useFetched(load, [task, instance], 0, [worker.status, ids]);
  const empty = emptyTabs(worker, data);
  const open = worker.questions?.length ?? 0;
  const asked = data?.questions?.length ?? 0;
  /** @type {(name: string) => object | string} */
  const countOf = (name) => {
    if (name === 'diff' && worker.changedFiles) return html` <span class="count">${worker.changedFiles}</span>`;
    if (name !== 'questions' || !(open || asked)) return '';
    return open ? html` <span class="badge">${open}</span>` : html` <span class="count">${asked}</span>`;
  };
  return html`<${Tabs} label=${`About ${plain(instance)}`} names=${WORKER_TABS} current=${tab} hrefOf=${(/** @type {string} */ name) => workerHref(task, instance, name)}
    isEmpty=${(/** @type {string} */ name) => empty.has(name)} wordsOf=${(/** @type {string} */ name) => html`${TAB_WORDS[name]}${countOf(name)}`} />`;
}

/**
 * The open questions of a worker; the one that the address names gets the focus.
 * @param {{ task: string, instance: string, workerKey: string, questions: Sent.Question[],
 *   wanted: string | null }} props
 */
export function Asking({ task, instance, workerKey, questions, wanted }) {
  const box = useRef(null);
  useEffect(() => takeWanted(workerKey), []);
  useEffect(() => {
    if (!wanted) return;
    const element = box.current.querySelector(`[data-question="${CSS.escape(`${workerKey}/${wanted}`)}"]`);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      reveal(element, 'center');
      element?.focus({ preventScroll: true });
    }));
  }, [wanted]);
  return html`<section class="asking-here" ref=${box} aria-label="Open questions">${questions.map((question) => html`<${QuestionCard} key=${question.id} workerKey=${workerKey} task=${task} instance=${instance} question=${question} isNamed=${false} />`)}</section>`;
}

