// What the browser keeps for a person from one load to the next: drafts, comments, what was unfolded. Each root has its
// own, whichever server shows it at this address. Other tabs keep, too: what has several parts is changed from what is
// kept now, never from what was read before.
import { useLayoutEffect, useState } from './dom.js';
import { keepIn, keptIn, keyOf } from './keeping.js';
import { about } from './store.js';

/** @import { Form } from './dispatch_order.js' */

/**
 * What becomes of what is kept.
 * @typedef {(was: any) => any} Step
 */

/** What was to be kept before the root was known. @type {Map<string, Step>} */
const early = new Map();
/** What the browser had no room for: it is there until the page is left. @type {Map<string, any>} */
const unkept = new Map();

/** @param {string} name */
const ofRoot = (name) => `${about.root} ${name}`;

/** @param {string} name */
function valueOf(name) {
  if (!about.isKnown) return early.get(name)?.(undefined);
  return unkept.get(name) ?? keptIn(localStorage, ofRoot(name));
}

/**
 * @param {string} name
 * @param {Step} step
 */
function take(name, step) {
  if (!about.isKnown) {
    const before = early.get(name);
    early.set(name, before ? (was) => step(before(was)) : step);
    return;
  }
  const next = step(valueOf(name));
  if (keepIn(localStorage, ofRoot(name), next)) unkept.delete(name);
  else unkept.set(name, next);
}

/** Now that the root is known, keep what was to be kept before. */
export function keepEarly() {
  for (const [name, step] of early) take(name, step);
  early.clear();
}

/**
 * What was kept under a name, or else `otherwise`.
 * @template [T=any]
 * @param {string} name
 * @param {T | null} otherwise
 * @returns {T}
 */
export const kept = (name, otherwise = null) => valueOf(name) ?? otherwise;

/**
 * Keep a value whole; nothing (null, '') takes it away. What nobody could see yet, since the root was not known, stays.
 * @param {string} name
 * @param {string | boolean | null | Form} value
 * @param {(was: any) => boolean} isWorth whether what was kept before is worth that
 */
export function keep(name, value, isWorth = Boolean) {
  if (about.isKnown) {
    take(name, () => value);
    return;
  }
  early.set(name, (was) => (isWorth(was) ? was : value));
}

/**
 * Change what is kept, as it is now.
 * @template T
 * @param {string} name
 * @param {T} otherwise what it is where nothing is kept
 * @param {(now: T) => T} next
 */
export const change = (name, otherwise, next) => take(name, (was) => next(was ?? otherwise));

/**
 * What is kept, as it changes here and in other tabs; and what changes it.
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {[value: T, change: (next: (now: T) => T) => void]}
 */
export function useKept(name, otherwise) {
  const [value, setValue] = useState(() => kept(name, otherwise));
  const look = () => setValue(kept(name, otherwise));
  useLayoutEffect(() => {
    const over = new AbortController();
    addEventListener('storage', ({ key }) => {
      if (key === null || key === keyOf(ofRoot(name))) look();
    }, { signal: over.signal });
    return () => over.abort();
  }, [name]);
  return [value, (next) => {
    change(name, otherwise, next);
    look();
  }];
}

/**
 * A value that the page has of each root: made once that is known, and before that for as long as it is not.
 * @template T
 * @param {() => T} make
 * @returns {() => T}
 */
export function ofEachRoot(make) {
  /** @type {{ root: string | null, value: T } | undefined} */
  let made;
  return () => {
    const root = about.isKnown ? about.root : null;
    if (made?.root !== root) made = { root, value: make() };
    return made.value;
  };
}

/**
 * What was kept of this tab alone.
 * @template [T=any]
 * @param {string} name
 * @param {T | null} otherwise
 * @returns {T}
 */
export function keptHere(name, otherwise = null) {
  return (about.isKnown ? keptIn(sessionStorage, ofRoot(name)) : null) ?? otherwise;
}

/**
 * @param {string} name
 * @param {any} value what JSON can hold
 */
export function keepHere(name, value) {
  if (about.isKnown) keepIn(sessionStorage, ofRoot(name), value);
}
