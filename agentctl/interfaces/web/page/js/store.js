// What the page knows: the fleet as the stream tells it, the last events, and what happened. Whoever shows a topic is
// told once per frame, however much has changed.
import { useLayoutEffect, useState } from './dom.js';
import { NeedOrder } from './need_order.js';
import { TERMINAL } from './words.js';

/** How many patches are as much work as sorting anew. */
const MANY = 200;
/** So many events are remembered, of all tasks together. */
const MOST_EVENTS = 4000;

export const fleet = {
  /** @type {Map<string, Sent.Task>} */
  tasks: new Map(),
  /** @type {Map<string, Sent.Worker>} */
  workers: new Map(),
  order: new NeedOrder(),
  isKnown: false,
  isPartial: false,
  /** Counts the changes of which workers there are and to what they belong. */
  shape: 0,
};
/** @import { LinkState } from './stream.js' */
/**
 * What is known of the server. Others have it by `useConnection`: what is drawn of it is never what it was before.
 * @type {{ state: LinkState, heardAt: number, hiddenCount: number | null }}
 */
const connection = { state: 'opening', heardAt: 0, hiddenCount: null };
export const about = { version: '', root: '', readOnly: false, isKnown: false };
/**
 * The last events of this page's time, each once; `count` counts all, `epoch` how often some may have been missed.
 * @type {{ recent: Sent.Event[], count: number, lastSeq: Map<string, number>, epoch: number }}
 */
export const events = { recent: [], count: 0, lastSeq: new Map(), epoch: 0 };
/** @import { Link } from './text/next_steps.js' */
/** @typedef {{ text: string, links: Link[] }} Line */
/** @typedef {{ isError?: boolean, hint?: string, links?: Link[], list?: Line[] }} More */

/**
 * What a person is told, the newest last.
 * @type {{ lines: Array<More & { id: number, text: string }>, next: number }}
 */
export const said = { lines: [], next: 1 };
/** The questions, by TASK/INSTANCE/ID, that are being answered here, and that were, as they were asked. */
/** @type {Set<string>} */
export const sending = new Set();
/** @type {Map<string, string>} */
export const answered = new Map();

/** @type {Map<string, Set<() => void>>} */
const listeners = new Map();
/** @type {Set<string>} */
const pending = new Set();
let isScheduled = false;

function flush() {
  isScheduled = false;
  const topics = [...pending];
  pending.clear();
  /** @type {Set<() => void>} */
  const called = new Set();
  for (const topic of topics) for (const one of listeners.get(topic) ?? []) called.add(one);
  for (const one of called) one();
}

/**
 * Tell those who show a topic, in the next frame. A hidden page has no frames.
 * @param {string} topic
 */
export function changed(topic) {
  pending.add(topic);
  if (isScheduled) return;
  isScheduled = true;
  if (document.hidden) setTimeout(flush, 200);
  else requestAnimationFrame(flush);
}

/**
 * Tell them before the next frame: the next key is for what has just opened.
 * @param {string} topic
 */
export function changedNow(topic) {
  for (const one of listeners.get(topic) ?? []) one();
}

document.addEventListener('visibilitychange', () => {
  if (isScheduled) setTimeout(flush, 0);
});

/**
 * Have something done whenever a topic has changed.
 * @param {string} topic
 * @param {() => void} one
 */
export function listen(topic, one) {
  const here = listeners.get(topic) ?? new Set();
  listeners.set(topic, here.add(one));
  return () => here.delete(one);
}

/**
 * Draw a component again whenever one of these topics has changed.
 * @param {...string} topics
 */
export function useTopics(...topics) {
  const [, draw] = useState(0);
  // An effect after the frame would come too late: what changed since the drawing would be told to nobody.
  useLayoutEffect(() => {
    const again = () => draw((count) => count + 1);
    const ends = topics.map((topic) => listen(topic, again));
    return () => ends.forEach((end) => end());
  }, topics);
}

setInterval(() => {
  if (!document.hidden) changed('now');
}, 1000);

// -- the connection ---------------------------------------------------------------------------------------------------

/**
 * Take how the connection is; return whether it has just become open.
 * @param {LinkState} state
 * @param {number} heardAt
 */
export function takeState(state, heardAt) {
  const isNews = connection.state !== state;
  const isOpened = isNews && state === 'open';
  if (isOpened) applyFleet();
  Object.assign(connection, { state, heardAt });
  if (isNews) changed('connection');
  return isOpened;
}

/**
 * Take how many need a person, of a page that has no connection.
 * @param {number} count
 */
export function takeCount(count) {
  connection.hiddenCount = count;
  changed('connection');
}

/** The connection, of a component that is drawn again when it changes; its `heardAt` changes all the time. */
export function useConnection() {
  useTopics('connection');
  return connection;
}

/** How many need a person: topics `fleet` and `connection`. */
export const countOfNeeds = () => connection.hiddenCount ?? fleet.order.of('needs_you').length;

// -- the fleet --------------------------------------------------------------------------------------------------------

/** @type {Sent.FleetMessage[]} */
const waiting = [];

/**
 * Take a message of the stream; all that came until the next frame is applied at once.
 * @param {Sent.FleetMessage} message
 */
export function takeFleet(message) {
  if (message.whole) waiting.length = 0;
  waiting.push(message);
  if (waiting.length === 1) {
    if (document.hidden) setTimeout(applyFleet, 100);
    else requestAnimationFrame(applyFleet);
  }
}
document.addEventListener('visibilitychange', () => setTimeout(applyFleet, 0));

/**
 * @template T
 * @param {Record<string, T | null>} [entries]
 * @returns {Map<string, T>}
 */
const present = (entries = {}) => new Map(Object.entries(entries).flatMap(([key, one]) => (one ? [[key, one]] : [])));

/** Apply what has come: before the page says that it is live, too, since nothing is known until then. */
export function applyFleet() {
  if (!waiting.length) return;
  const before = openQuestions();
  /** @type {Map<string, Sent.Worker | null>} */
  const touched = new Map();
  for (const message of waiting) {
    if (message.whole) {
      fleet.tasks = present(message.tasks);
      fleet.workers = present(message.workers);
      fleet.order.replace(fleet.workers);
      fleet.isKnown = true;
      fleet.shape += 1;
      touched.clear();
    } else {
      for (const [key, task] of Object.entries(message.tasks ?? {})) setOne(fleet.tasks, key, task);
      for (const [key, worker] of Object.entries(message.workers ?? {})) {
        setOne(fleet.workers, key, worker);
        touched.set(key, worker);
      }
    }
    fleet.isPartial = Boolean(message.isPartial);
  }
  waiting.length = 0;
  if (touched.size > MANY) fleet.order.replace(fleet.workers);
  else for (const [key, worker] of touched) fleet.order.set(key, worker);
  connection.hiddenCount = null;
  tellOfAnswered(before);
  changed('fleet');
}

/**
 * @template T
 * @param {Map<string, T>} map
 * @param {string} key
 * @param {T | null} value
 */
function setOne(map, key, value) {
  if (value === null) {
    if (map.delete(key)) fleet.shape += 1;
    return;
  }
  if (!map.has(key)) fleet.shape += 1;
  map.set(key, value);
}

/**
 * @param {string} task
 * @param {string} instance
 */
export const keyOf = (task, instance) => `${task}/${instance}`;

/**
 * The task and the instance of a key; neither has a slash in it.
 * @param {string} key
 * @returns {[task: string, instance: string]}
 */
export function partsOf(key) {
  const slash = key.lastIndexOf('/');
  return [key.slice(0, slash), key.slice(slash + 1)];
}

/** @param {Sent.Worker} worker */
export const isLive = (worker) => !TERMINAL.has(worker.status);

/**
 * Why a key for workers does nothing: before the fleet is known, nobody can tell what is not there.
 * @param {string} lack
 */
export function whyNobody(lack = 'no worker is under the cursor') {
  return fleet.isKnown ? lack : 'the workers are still being loaded';
}

// -- questions that somebody else answered ---------------------------------------------------------------------------

const shownQuestions = new Set();
/**
 * What was sent as an answer here, and may have been taken: whether it was, the server could not say.
 * @type {Map<string, string>}
 */
export const lostAnswers = new Map();
/**
 * Note that a question is drawn: only of these it is news that somebody else has answered.
 * @param {string} task
 * @param {string} instance
 * @param {string} id
 */
export function noteShown(task, instance, id) {
  const key = `${task}/${instance}/${id}`;
  shownQuestions.add(key);
  return () => setTimeout(() => shownQuestions.delete(key), 3000);
}

function openQuestions() {
  /** @type {Set<string>} */
  const found = new Set();
  for (const rank of fleet.order.of('needs_you')) {
    for (const one of fleet.workers.get(rank.key)?.questions ?? []) found.add(`${rank.key}/${one.id}`);
  }
  return found;
}

/** @param {Set<string>} before */
function tellOfAnswered(before) {
  const now = openQuestions();
  for (const key of before) {
    if (now.has(key) || answered.has(key) || sending.has(key) || !shownQuestions.has(key)) continue;
    // The event that says who and what may come a moment later.
    setTimeout(() => tellWho(key), 400);
  }
  for (const key of answered.keys()) if (!now.has(key)) answered.delete(key);
}

/**
 * Say what became of a question that is no longer open.
 * @param {string} key
 */
export function tellWho(key) {
  const [worker, id] = partsOf(key);
  const [task, instance] = partsOf(worker);
  const event = events.recent.findLast(
    (one) => one.taskId === task && one.agentInstance === instance && one.payload?.id === id && /^interaction\.(responded|expired)$/.test(one.type ?? ''),
  );
  const after = fleet.workers.get(worker);
  if (event?.type === 'interaction.expired') say(`The question of ${instance} has expired.`);
  else if (event && lostAnswers.get(key) === event.payload?.answer) say(`${instance} was answered: ${String(event.payload?.answer).slice(0, 200)}`);
  else if (event) {
    const { answer, by } = event.payload ?? {};
    say(`The question of ${instance} was answered elsewhere${by ? `, by ${by}` : ''}${answer == null ? '' : `: ${String(answer).slice(0, 200)}`}`);
  } else if (!after || TERMINAL.has(after.status)) say(`${instance} has ended, and its question with it.`);
  else say(`The question of ${instance} was answered elsewhere.`);
}

// -- events ----------------------------------------------------------------------------------------------------------

/**
 * Take an event of the stream, unless it was there before.
 * @param {Sent.Event} event
 */
export function takeEvent(event) {
  const last = events.lastSeq.get(event.taskId) ?? 0;
  if (event.seq <= last) return;
  events.lastSeq.set(event.taskId, event.seq);
  events.recent.push(event);
  events.count += 1;
  if (events.recent.length > 2 * MOST_EVENTS) events.recent.splice(0, MOST_EVENTS);
  changed('events');
}

/**
 * The events behind the first `count`; null if not all of them are remembered.
 * @param {number} count
 */
export function eventsSince(count) {
  const begin = events.recent.length - (events.count - count);
  return begin < 0 ? null : events.recent.slice(begin);
}

/**
 * The stream cannot say what was missed: whoever shows events fetches what may be missing.
 * @param {boolean} isLost
 */
export function takeReset(isLost) {
  events.epoch += 1;
  if (isLost) {
    events.lastSeq.clear();
    events.recent.length = 0;
  }
  changed('events');
}

// -- what is said ----------------------------------------------------------------------------------------------------

const SAID_MS = 12_000;

/**
 * Tell the person what happened: a line that goes after a while, read out by screen readers.
 * @param {string} text
 * @param {More} more
 */
export function say(text, more = {}) {
  const line = { id: said.next, text, ...more };
  said.next += 1;
  said.lines = [...said.lines, line].slice(-4);
  changed('said');
  if (!more.isError) setTimeout(() => unsay(line.id), SAID_MS);
  return line.id;
}

/** @param {number} id */
export function unsay(id) {
  said.lines = said.lines.filter((line) => line.id !== id);
  changed('said');
}

/** @param {Refused} error */
export function sayRefusal(error, doing = '') {
  say(`${doing ? `${doing}: ` : ''}${error.message}`, { isError: true, hint: error.hint, links: error.links });
}
