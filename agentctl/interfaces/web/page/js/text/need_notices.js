// What a person is told of while nobody looks at the page: a question, a failure, an answer to be looked at. Pure.
import { oneLine } from '../safe_text.js';
import { endWords, saidAtEnd } from '../words.js';

/**
 * Something to be told; `id` is the same in each tab.
 * @typedef {{ id: string, title: string, body: string, key: string, question?: string }} NeedNotice
 */

/** More at once become one. */
const MOST = 3;
const LONGEST = 200;
/** @param {unknown} text */
const short = (text) => oneLine(text ?? '', LONGEST);

/**
 * What there is to be told of a worker now.
 * @param {string} key
 * @param {Sent.Worker} worker
 * @returns {NeedNotice[]}
 */
function noticesOf(key, worker) {
  const name = oneLine(worker.agentInstance, 80);
  if (worker.questions?.length) {
    return worker.questions.map((one) => ({
      id: `${key} ${one.id}`, title: `${name} ${one.isPermission ? 'asks for permission' : 'asks'}`, body: short(one.line), key, question: one.id,
    }));
  }
  const at = worker.endedAt ?? worker.needSince ?? '';
  if (worker.need === 'failed') {
    return [{ id: `${key} failed ${at}`, title: `${name} ${endWords(worker)}`, body: short(saidAtEnd(worker)[0]), key }];
  }
  return worker.need === 'review' ? [{ id: `${key} review ${at}`, title: `${name} is ready for review`, body: short(worker.lastWords), key }] : [];
}

/**
 * What there is to be told of some workers now, by id.
 * @param {Iterable<[key: string, worker: Sent.Worker]>} workers
 */
export function needNotices(workers) {
  /** @type {Map<string, NeedNotice>} */
  const found = new Map();
  for (const [key, worker] of workers) for (const one of noticesOf(key, worker)) found.set(one.id, one);
  return found;
}

/**
 * What is new among it, as it is told: each by itself, or of many only how many.
 * @param {Map<string, NeedNotice>} now
 * @param {Set<string>} known
 * @returns {NeedNotice[]}
 */
export function newNotices(now, known) {
  const found = [...now.values()].filter((one) => !known.has(one.id));
  if (found.length <= MOST) return found;
  const names = [...new Set(found.map((one) => one.title))];
  const body = short(names.slice(0, MOST).join(', ') + (names.length > MOST ? `, and ${names.length - MOST} more` : ''));
  return [{ id: 'several', title: `${found.length} things need you`, body, key: '' }];
}
