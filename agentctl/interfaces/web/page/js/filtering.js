// What a person types, word by word: a search, and the filter, whose words a worker has to have, such as
// `s:blocked a:explore t:login -n:old "log in"`. Pure.
import { NEED_WORDS, signOf, standing } from './words.js';

/** @import { Shows } from './tree_order.js' */

const TERM = /"([^"]*)"?|([^\s"]+)/g;
const PART = /(?:[^\s"']+|"[^"]*"|'[^']*'|["'])+/g;

/**
 * The words of a search: what is in double quotes is one of them, as in `watch` (`terms_of` of textquery.py).
 * @param {string} text
 */
export const termsOf = (text) => [...text.matchAll(TERM)].map(([, quoted, word]) => quoted || word || '')
  .filter((term) => term.trim());

/**
 * The words of a filter, as they were typed: quotes hold several together.
 * @param {string} text
 */
const partsOf = (text) => (text.match(PART) ?? []).map(
  (part) => part.replace(/"([^"]*)"|'([^']*)'/g, (_, a, b) => a ?? b ?? '').replace(/^["']/, ''),
);

/**
 * The words of a filter: where each is looked for, its text, and whether it must be missing.
 * @param {string} text
 */
export function wordsOf(text) {
  return partsOf(text).map((bare) => {
    const isNegated = bare.startsWith('-') && bare.length > 1;
    const word = isNegated ? bare.slice(1) : bare;
    const [, where, rest] = /^([satn]):(.*)$/s.exec(word) ?? [null, '', word];
    return { where, text: rest.toLowerCase(), isNegated };
  });
}

/** @type {WeakMap<Sent.Worker, { title?: string, places: Record<string, string> }>} */
const haystacks = new WeakMap();

/**
 * @param {Sent.Worker} worker
 * @param {Sent.Task | undefined} task
 */
function haystackOf(worker, task) {
  const found = haystacks.get(worker);
  if (found && found.title === task?.title) return found.places;
  /** @type {Record<string, string>} */
  const places = {
    s: `${worker.status} ${NEED_WORDS[worker.need ?? ''] ?? ''} ${signOf(worker).words} ${standing(worker)}`,
    a: `${worker.agent ?? ''} ${worker.driver ?? ''}`,
    t: `${worker.taskId} ${task?.title ?? ''}`,
    n: `${worker.agentInstance} ${worker.command ?? ''}`,
  };
  for (const place of Object.keys(places)) places[place] = places[place].toLowerCase();
  haystacks.set(worker, { title: task?.title, places });
  return places;
}

/**
 * Whether a filter shows a worker; null for an empty filter, which shows all.
 * @param {string} text
 * @returns {Shows | null}
 */
export function filterOf(text) {
  const words = wordsOf(text);
  if (!words.length) return null;
  return (worker, task) => {
    const places = haystackOf(worker, task);
    return words.every(({ where, text: word, isNegated }) => {
      const has = where ? places[where].includes(word) : Object.values(places).some((place) => place.includes(word));
      return has !== isNegated;
    });
  };
}
