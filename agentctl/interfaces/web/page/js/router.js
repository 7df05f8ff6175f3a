// What the address says is shown, and how one gets from one to the other.
import { segments } from './api.js';
import { placeOf } from './places.js';
import { changedNow } from './store.js';

/**
 * @param {string} task
 * @param {string} instance
 */
export const workerHref = (task, instance, tab = '') => `/tasks/${segments(task)}/workers/${segments(instance)}${tab ? `/${tab}` : ''}`;
/** @param {string} task */
export const taskHref = (task, tab = '') => `/tasks/${segments(task)}${tab && tab !== 'workers' ? `/${tab}` : ''}`;

export const route = {
  place: placeOf(location.href),
  depth: history.state?.depth ?? 0,
  /** @type {Map<number, number>} */
  scrolls: new Map(),
  isBack: false,
};

const scroller = () => document.getElementById('main');
const noteScroll = () => route.scrolls.set(route.depth, scroller()?.scrollTop ?? 0);

/**
 * Show what an address says. It is drawn before the next key, which is for what that shows: `]` twice goes on by two.
 * @param {string} href
 */
export function go(href, { isReplacing = false } = {}) {
  if (!isReplacing) noteScroll();
  const depth = route.depth + (isReplacing ? 0 : 1);
  history[isReplacing ? 'replaceState' : 'pushState']({ depth }, '', href);
  const was = route.place;
  route.depth = depth;
  route.isBack = false;
  route.place = placeOf(location.href);
  const { place } = route;
  const isSame = was.view === place.view && was.task === place.task && was.instance === place.instance;
  if (!isReplacing && !isSame) route.scrolls.delete(depth);
  changedNow('route');
}

/**
 * Keep in the address what is seen of a view, without drawing it anew; an empty value is not kept.
 * @param {Record<string, string>} values
 */
export function keepInAddress(values) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href === location.href) return;
  history.replaceState(history.state, '', url.pathname + url.search);
  route.place = placeOf(location.href);
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
  changedNow('route');
});

// Links of the page itself need no load; those of a picture are not HTML, and have but the attribute.
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  const href = link?.getAttribute('href');
  if (!href || href.startsWith('#') || link?.hasAttribute('target') || link?.hasAttribute('download')) return;
  const { origin, pathname, search, hash } = new URL(href, location.href);
  if (origin !== location.origin || pathname.startsWith('/api/')) return;
  event.preventDefault();
  go(pathname + search + hash);
});
