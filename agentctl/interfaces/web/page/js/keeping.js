// How values are kept in the storage of a browser: each with its time, and what was kept longest ago gives way. Pure,
// but for the storage.

const MOST = 200;
const LONGEST = 200_000;
const OURS = 'agentctl.kept ';

/**
 * @param {Storage} storage
 * @param {string} key
 * @returns {{ at?: number, value?: any }}
 */
function read(storage, key) {
  try {
    return JSON.parse(storage.getItem(key) ?? '{}') ?? {};
  } catch {
    return {};
  }
}

/**
 * Under what the storage itself has what is kept under a name.
 * @param {string} name
 */
export const keyOf = (name) => OURS + name;

/**
 * What was kept under a name; undefined if nothing was.
 * @param {Storage} storage
 * @param {string} name
 */
export const keptIn = (storage, name) => read(storage, keyOf(name)).value;

/** @param {any} value */
function isNothing(value) {
  if (value && typeof value === 'object') return !Object.keys(value).length;
  return value === '' || value === null;
}

/**
 * Keep a value; nothing (null, '', [], {}) takes it away. Tells whether there was room for it.
 * @param {Storage} storage
 * @param {string} name
 * @param {any} value what JSON can hold
 * @param {number} [now]
 */
export function keepIn(storage, name, value, now = Date.now()) {
  const key = keyOf(name);
  if (isNothing(value)) {
    storage.removeItem(key);
    return true;
  }
  const text = JSON.stringify({ at: now, value });
  if (text.length > LONGEST) return false;
  if (storage.getItem(key) === null) makeRoom(storage);
  try {
    storage.setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

/** @param {Storage} storage */
function makeRoom(storage) {
  const keys = Object.keys(storage).filter((key) => key.startsWith(OURS));
  if (keys.length < MOST) return;
  const ages = new Map(keys.map((key) => [key, read(storage, key).at ?? 0]));
  keys.sort((a, b) => (ages.get(a) ?? 0) - (ages.get(b) ?? 0));
  for (const key of keys.slice(0, keys.length - MOST + 1)) storage.removeItem(key);
}
