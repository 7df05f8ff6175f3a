// What the address says is shown, and how one gets from one to the other.
import { segments } from './api.js';
import { isList, placeOf, withValue } from './places.js';
import { changed, changedNow, useTopics } from './store.js';

/** @import { Place, Query } from './places.js' */

/** Browsers refuse an address at each key that is typed: Safari more than 100 in 30 seconds. */
const WRITES_MS = 350;

/**
 * @param {string} task
 * @param {string} instance
 */
export const workerHref = (task, instance, tab = '') => `/tasks/${segments(task)}/workers/${segments(instance)}${tab ? `/${tab}` : ''}`;
/** @param {string} task */
export const taskHref = (task, tab = '') => `/tasks/${segments(task)}${tab && tab !== 'workers' ? `/${tab}` : ''}`;

/** @type {{ depth?: number, scroll?: number }} */
const before = history.state ?? {};
const first = placeOf(location.href);

export const route = {
  place: first,
  depth: before.depth ?? 0,
  /** @type {Map<number, number>} */
  scrolls: new Map(before.scroll ? [[before.depth ?? 0, before.scroll]] : []),
  isBack: Boolean(before.scroll),
  /** The filter goes along from list to list. */
  filter: first.query.get('filter') ?? '',
};

const scroller = () => document.getElementById('main');
const noteScroll = () => route.scrolls.set(route.depth, scroller()?.scrollTop ?? 0);

/** @param {Place} place */
function setPlace(place) {
  route.place = place;
  if (isList(place)) route.filter = place.query.get('filter') ?? '';
}

/** How deep the steps back lead that the browser has not carried out yet; it may take several as one. */
let goal = Infinity;

let timer = 0;
let writtenAt = -WRITES_MS;

/** Have the address say what is shown, and its entry where the page is scrolled to: a load comes back to both. */
function write() {
  clearTimeout(timer);
  timer = 0;
  writtenAt = performance.now();
  const query = `${route.place.query}`;
  const state = { depth: route.depth, scroll: scroller()?.scrollTop ?? 0 };
  history.replaceState(state, '', `${location.pathname}${query && `?${query}`}${location.hash}`);
}
/** @param {number} ms */
function writeIn(ms) {
  clearTimeout(timer);
  if (ms > 0) timer = setTimeout(write, ms);
  else write();
}
const writeNow = () => {
  if (timer) write();
};

/**
 * Have the address of what is shown say one thing more, without telling anybody. No step leads back to what it said
 * before; an empty value is not in it.
 * @param {Query} name
 * @param {string} value
 */
export function noteQuery(name, value) {
  const { place } = route;
  if ((place.query.get(name) ?? '') === value) return;
  setPlace({ ...place, query: withValue(place.query, name, value) });
  writeIn(writtenAt + WRITES_MS - performance.now());
}

/**
 * The same, and what shows the address is drawn again.
 * @param {Query} name
 * @param {string} value
 */
export function setQuery(name, value) {
  noteQuery(name, value);
  changed('route');
}

/** The place in a text that the address names, in bytes; -1 if it names none. */
export const placeIn = () => {
  const named = route.place.query.get('at') ?? '';
  return /^\d{1,15}$/.test(named) ? Number(named) : -1;
};

/**
 * A value that stands in the address, and how it is changed. The usual one does not stand there.
 * @param {Query} name
 * @returns {[value: string, set: (value: string) => void]}
 */
export function useAddress(name, usual = '') {
  useTopics('route');
  return [route.place.query.get(name) ?? usual, (value) => setQuery(name, value === usual ? '' : value)];
}

/**
 * An address with the present filter, where it is that of a list and has none of its own.
 * @param {string} href
 */
function filtered(href) {
  const url = new URL(href, location.href);
  if (!route.filter || url.searchParams.has('filter') || !isList(placeOf(url.href))) return href;
  url.searchParams.set('filter', route.filter);
  return url.pathname + url.search + url.hash;
}

/**
 * Show what an address says. It is drawn before the next key, which is for what that shows: `]` twice goes on by two.
 * @param {string} href
 */
export function go(href, { isReplacing = false } = {}) {
  writeNow();
  if (!isReplacing) noteScroll();
  const depth = route.depth + (isReplacing ? 0 : 1);
  history[isReplacing ? 'replaceState' : 'pushState']({ depth }, '', filtered(href));
  const was = route.place;
  route.depth = depth;
  goal = Infinity;
  route.isBack = false;
  setPlace(placeOf(location.href));
  const { place } = route;
  const isSame = was.view === place.view && was.task === place.task && was.instance === place.instance;
  if (!isReplacing && !isSame) route.scrolls.delete(depth);
  changedNow('route');
}

/** Back to where one came from; to the list, for whoever came by a link. */
export function back() {
  writeNow();
  if (route.depth > 0) {
    // One more than there are, before the first has been carried out, would leave the page.
    const depth = Math.min(route.depth, goal) - 1;
    if (depth < 0) return;
    goal = depth;
    history.back();
  } else if (route.place.view !== 'needs') go('/', { isReplacing: true });
}

/** Where the page was scrolled to when one left it. */
export const lastScroll = () => (route.isBack ? route.scrolls.get(route.depth) : undefined);

addEventListener('popstate', (event) => {
  clearTimeout(timer); // What was to be written is about the address that was left.
  timer = 0;
  noteScroll();
  route.depth = event.state?.depth ?? 0;
  if (route.depth <= goal) goal = Infinity;
  route.isBack = true;
  setPlace(placeOf(location.href));
  changedNow('route');
});

document.addEventListener('scroll', (event) => {
  if (event.target === scroller()) writeIn(WRITES_MS); // Once it rests.
}, { capture: true, passive: true });

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
