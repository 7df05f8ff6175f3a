// What an address names. Pure.

export const WORKER_TABS = [
  'transcript', 'output', 'diff', 'result', 'questions', 'timeline', 'events', 'why', 'details',
];
export const TASK_TABS = ['workers', 'timeline', 'usage', 'events'];

/**
 * What may stand in an address behind its `?`, so that it is kept over a load and in a link; what is not there is as
 * usual. `filter`: of the lists. `q`, `logs`: of a search. `question`: the one that is meant. `find`: what was
 * searched for. `at`: the place in a text. `stream`: of an output. `file`, `since`: of a diff.
 * @typedef {'filter'|'q'|'logs'|'question'|'stream'|'find'|'at'|'file'|'since'} Query
 */

/** The views that are a list of workers: these have a filter. */
const LISTS = new Set(['needs', 'tree', 'task']);

/** @param {Place} place */
export const isList = (place) => LISTS.has(place.view) && (place.view !== 'task' || place.tab === 'workers');

/**
 * Put a value behind the `?` of an address, or take it out where it is empty.
 * @param {URLSearchParams} query
 * @param {Query} name
 * @param {string} value
 */
export function withValue(query, name, value) {
  const made = new URLSearchParams(query);
  if (value) made.set(name, value);
  else made.delete(name);
  return made;
}

/**
 * What an address names; `task`, `instance` and `tab` are empty where a view has none.
 * @typedef {{ view: 'needs'|'tree'|'search'|'task'|'worker'|'nowhere', task: string, instance: string, tab: string,
 *   query: URLSearchParams }} Place
 */

/**
 * @param {string} url
 * @returns {Place}
 */
export function placeOf(url) {
  const { pathname, searchParams: query } = new URL(url);
  const nothing = { task: '', instance: '', tab: '', query };
  let parts;
  try {
    parts = pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return { ...nothing, view: 'nowhere' };
  }
  const [first, task, what, instance, tab] = parts;
  if (!first) return { ...nothing, view: 'needs' };
  if (first === 'tree' && !task) return { ...nothing, view: 'tree' };
  if (first === 'search' && !task) return { ...nothing, view: 'search' };
  if (first !== 'tasks' || !task) return { ...nothing, view: 'nowhere' };
  if (what === 'workers' && instance && parts.length <= 5 && (!tab || WORKER_TABS.includes(tab))) {
    return { view: 'worker', task, instance, tab: tab ?? '', query };
  }
  if (parts.length <= 3 && (!what || TASK_TABS.includes(what))) {
    return { ...nothing, view: 'task', task, tab: what ?? 'workers' };
  }
  return { ...nothing, view: 'nowhere' };
}
