// What the browser keeps for a person from one load to the next: drafts, comments, what was unfolded. Each root has its
// own, whichever server shows it at this address.
import { keepIn, keptIn } from './keeping.js';
import { about } from './store.js';

/** @param {string} name */
const ofRoot = (name) => `${about.root} ${name}`;

/**
 * What was kept under a name, or else `otherwise`.
 * @template [T=any]
 * @param {string} name
 * @param {T | null} otherwise
 * @returns {T}
 */
export const kept = (name, otherwise = null) => keptIn(localStorage, ofRoot(name)) ?? otherwise;

/**
 * Keep a value; nothing (null, '', []) takes it away.
 * @param {string} name
 * @param {any} value what JSON can hold
 */
export const keep = (name, value) => keepIn(localStorage, ofRoot(name), value);

/**
 * The same of this tab alone.
 * @template [T=any]
 * @param {string} name
 * @param {T | null} otherwise
 * @returns {T}
 */
export const keptHere = (name, otherwise = null) => keptIn(sessionStorage, ofRoot(name)) ?? otherwise;

/**
 * @param {string} name
 * @param {any} value what JSON can hold
 */
export const keepHere = (name, value) => keepIn(sessionStorage, ofRoot(name), value);
