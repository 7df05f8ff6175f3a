// What an address names. Pure.

export const WORKER_TABS = [
  'transcript', 'output', 'diff', 'result', 'questions', 'timeline', 'events', 'why', 'details',
];
export const TASK_TABS = ['workers', 'timeline', 'usage', 'events'];

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
