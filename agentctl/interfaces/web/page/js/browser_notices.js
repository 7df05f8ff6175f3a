// Tells a person by the browser, where they have asked for it, of what needs them while no tab of the page is seen.
import { change, kept } from './kept.js';
import { go, workerHref } from './router.js';
import { countOfNeeds, fleet, listen, partsOf } from './store.js';
import { needNotices, newNotices } from './text/need_notices.js';
import { isSeenElsewhere, showWhetherSeen, turn } from './turns.js';

/** @import { NeedNotice } from './text/need_notices.js' */

const CHOSEN = 'agentctl.tell';
const TOLD = 'told';
/** @type {string[]} */
const NONE = [];
/** So many are remembered for the other tabs. */
const MOST_TOLD = 500;
const TOLD_OF = /** @type {const} */ (['needs_you', 'failed', 'review']);

/** Whether this browser can tell anything: over http only on this machine, and not on every phone. */
export const canTell = () => 'Notification' in window && Boolean(navigator.locks);
export const isForbidden = () => Notification.permission === 'denied';
export const tells = () => canTell() && Notification.permission === 'granted' && localStorage.getItem(CHOSEN) === 'yes';

/** Turn it on, if the person allows it to the browser, or off. */
export async function switchTelling() {
  const isOn = !tells() && await Notification.requestPermission() === 'granted';
  localStorage.setItem(CHOSEN, isOn ? 'yes' : 'no');
  showCount();
}

/** What was there when the page was last seen, and what was told since. */
/** @type {Set<string> | null} */
let known = null;
/** @type {Map<string, Notification>} */
const shown = new Map();

const current = () => needNotices(TOLD_OF.flatMap((need) => fleet.order.of(need)).flatMap(({ key }) => {
  const worker = fleet.workers.get(key);
  return worker ? [/** @type {[string, Sent.Worker]} */ ([key, worker])] : [];
}));

async function look() {
  if (!fleet.isKnown) return;
  if (!document.hidden || !known) {
    known = null;
    if (document.hidden) known = new Set(current().keys());
    return;
  }
  if (!turn.isMine || !tells()) return;
  const now = current();
  for (const [id, one] of shown) if (!now.has(id) && id !== 'several') one.close();
  const before = new Set([...known, ...kept(TOLD, NONE)]);
  const news = newNotices(now, before);
  const fresh = [...now.keys()].filter((id) => !before.has(id));
  for (const id of fresh) known.add(id);
  if (!fresh.length) return;
  change(TOLD, NONE, (now) => [...now, ...fresh].slice(-MOST_TOLD));
  if (!await isSeenElsewhere()) news.forEach(tell);
}

/** @param {NeedNotice} notice */
function tell({ id, title, body, key, question }) {
  try {
    const one = new Notification(title, { body, tag: `agentctl ${id}`, icon: '/static/icons/icon-192.png' });
    shown.set(id, one);
    one.onclose = () => shown.delete(id);
    one.onclick = () => {
      one.close();
      window.focus();
      if (!key) go('/');
      else go(`${workerHref(...partsOf(key))}${question ? `?question=${encodeURIComponent(question)}` : ''}`);
    };
  } catch { /* Some browsers have the word alone, for pages with a service worker. */ }
}

function seen() {
  if (document.hidden) {
    if (fleet.isKnown) known = new Set(current().keys());
    return;
  }
  known = null;
  for (const one of shown.values()) one.close();
  shown.clear();
}

/** How many need a person, at the icon of the page where a system shows it. */
function showCount() {
  if (!navigator.setAppBadge) return;
  const count = tells() ? countOfNeeds() : 0;
  (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
}

export function startTelling() {
  showWhetherSeen();
  document.addEventListener('visibilitychange', seen);
  listen('fleet', () => {
    look();
    showCount();
  });
  listen('connection', showCount);
}
