// What the browser keeps for a person from one load to the next: drafts, comments, what was unfolded. Each root has its
// own, whichever server shows it at this address; what was kept longest ago gives way.
import { about } from './store.js';

const MOST = 200;
const LONGEST = 200_000;
const OURS = 'agentctl.kept ';
const keyOf = (name) => `${OURS}${about.root} ${name}`;

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {};
  }
}

/** What was kept under a name, or else `otherwise`. */
export const kept = (name, otherwise = null) => read(keyOf(name)).value ?? otherwise;

/** Keep a value; nothing (null, '', []) takes it away. */
export function keep(name, value) {
  const key = keyOf(name);
  if (value === null || value.length === 0) {
    localStorage.removeItem(key);
    return;
  }
  const text = JSON.stringify({ at: Date.now(), value });
  if (text.length > LONGEST) return;
  if (localStorage.getItem(key) === null) makeRoom();
  try {
    localStorage.setItem(key, text);
  } catch { /* The browser has no room: it is there until the page is left. */ }
}

function makeRoom() {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(OURS));
  if (keys.length < MOST) return;
  const ages = new Map(keys.map((key) => [key, read(key).at ?? 0]));
  keys.sort((a, b) => ages.get(a) - ages.get(b));
  for (const key of keys.slice(0, keys.length - MOST + 1)) localStorage.removeItem(key);
}
