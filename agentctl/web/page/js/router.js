// What the address says is shown, and how one gets from one to the other.
import { segments } from './api.js';
import { changed } from './store.js';

export const WORKER_TABS = ['transcript', 'output', 'diff', 'result', 'questions', 'timeline', 'events', 'why', 'details'];
export const TASK_TABS = ['workers', 'timeline', 'usage', 'events'];

/** @returns {{view: string, task?: string, instance?: string, tab?: string, query: URLSearchParams}} */
export function placeOf(url) {
  const { pathname, searchParams: query } = new URL(url, location.origin);
  let parts;
  try {
    parts = pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return { view: 'nowhere', query };
  }
  const [first, task, what, instance, tab] = parts;
  if (!first) return { view: 'needs', query };
  if (first === 'tree' && !task) return { view: 'tree', query };
  if (first === 'search' && !task) return { view: 'search', query };
  if (first === 'tasks' && task && what === 'workers' && instance && parts.length <= 5 && (!tab || WORKER_TABS.includes(tab))) {
    return { view: 'worker', task, instance, tab: tab ?? '', query };
  }
  if (first === 'tasks' && task && parts.length <= 3 && (!what || TASK_TABS.includes(what))) {
    return { view: 'task', task, tab: what ?? 'workers', query };
  }
  return { view: 'nowhere', query };
}

export const workerHref = (task, instance, tab = '') => `/tasks/${segments(task)}/workers/${segments(instance)}${tab ? `/${tab}` : ''}`;
export const taskHref = (task, tab = '') => `/tasks/${segments(task)}${tab && tab !== 'workers' ? `/${tab}` : ''}`;

export const route = { place: placeOf(location.href), depth: history.state?.depth ?? 0, scrolls: new Map(), isBack: false };

const scroller = () => document.getElementById('main');
const noteScroll = () => route.scrolls.set(route.depth, scroller()?.scrollTop ?? 0);

/** Show what an address says. */
export function go(href, { isReplacing = false } = {}) {
  if (!isReplacing) noteScroll();
  const depth = route.depth + (isReplacing ? 0 : 1);
  history[isReplacing ? 'replaceState' : 'pushState']({ depth }, '', href);
  const was = route.place;
  route.depth = depth;
  route.isBack = false;
  route.place = placeOf(location.href);
  const isSame = was.view === route.place.view && was.task === route.place.task && was.instance === route.place.instance;
  if (!isReplacing && !isSame) route.scrolls.delete(depth);
  changed('route');
}

/** Back to where one came from; to the list, for whoever came by a link. */
export function back() {
  if (route.depth > 0) history.back();
  else if (route.place.view !== 'needs') go('/', { isReplacing: true });
}

/** Where the page was scrolled to when one left it. */
export const lastScroll = () => (route.isBack ? route.scrolls.get(route.depth) : undefined);

addEventListener('popstate', (event) => {
  noteScroll();
  route.depth = event.state?.depth ?? 0;
  route.isBack = true;
  route.place = placeOf(location.href);
  changed('route');
});

// Links of the page itself need no load.
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest?.('a[href]');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.getAttribute('href').startsWith('#') || link.pathname.startsWith('/api/')) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
});
