// Which workers are marked: each by its name and by when it was queued, so that another one of the same name is not.
// Pure.

/**
 * Who of the marked ones is acted on; and who is left alone, by the reason.
 * @typedef {{ acting: string[], leftAlone: Map<string, string[]> }} Parted
 */

/**
 * @param {Map<string, Sent.Worker>} workers
 * @param {string} key
 */
const queuedAt = (workers, key) => workers.get(key)?.queuedAt ?? '';

export class Marks {
  constructor() {
    /** @type {Map<string, string>} */
    this.since = new Map();
    /** The last one that was marked by itself, or whose mark was taken away: where a range begins. */
    this.last = '';
  }

  get size() {
    return this.since.size;
  }

  /** @param {string} key */
  has(key) {
    return this.since.has(key);
  }

  /** The marked ones, in the order of their names. */
  keys() {
    return [...this.since.keys()].sort();
  }

  /**
   * Mark workers, or take their marks away.
   * @param {string[]} keys
   * @param {boolean} isOn
   * @param {Map<string, Sent.Worker>} workers
   */
  set(keys, isOn, workers) {
    for (const key of keys) {
      if (!isOn) this.since.delete(key);
      else if (workers.has(key)) this.since.set(key, queuedAt(workers, key));
    }
  }

  /**
   * Mark one worker, or take its mark away.
   * @param {string} key
   * @param {Map<string, Sent.Worker>} workers
   * @param {string[]} order as the workers stand, to do the same with all from the last one on
   */
  toggle(key, workers, order = []) {
    const [from, to] = [order.indexOf(this.last), order.indexOf(key)];
    const range = from < 0 || to < 0 ? [key] : order.slice(Math.min(from, to), Math.max(from, to) + 1);
    this.set(range, !this.has(key), workers);
    this.last = key;
  }

  /**
   * Mark all of these; if they are, take all marks away.
   * @param {string[]} keys
   * @param {Map<string, Sent.Worker>} workers
   */
  toggleAll(keys, workers) {
    if (keys.every((key) => this.has(key))) this.clear();
    else this.set(keys, true, workers);
  }

  clear() {
    this.since.clear();
    this.last = '';
  }

  /**
   * Take the marks of workers away that are not there any more; return whether there were any.
   * @param {Map<string, Sent.Worker>} workers
   */
  dropGone(workers) {
    const before = this.size;
    for (const [key, since] of this.since) {
      if (!workers.has(key) || queuedAt(workers, key) !== since) this.since.delete(key);
    }
    return this.size < before;
  }

  /**
   * Part the marked ones.
   * @param {(key: string) => string} why why a worker is left alone; empty if it is not
   * @returns {Parted}
   */
  parted(why) {
    /** @type {Parted} */
    const found = { acting: [], leftAlone: new Map() };
    for (const key of this.keys()) {
      const reason = why(key);
      if (!reason) found.acting.push(key);
      else found.leftAlone.set(reason, [...(found.leftAlone.get(reason) ?? []), key]);
    }
    return found;
  }
}
