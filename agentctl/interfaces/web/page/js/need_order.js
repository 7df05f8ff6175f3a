// Which workers come first: groups by need, kept sorted while single workers change. Pure.
import { NEEDS } from './words.js';

/** @typedef {{ key: string, need: Sent.Need, since: string }} Rank */

/** @type {Set<Sent.Need>} */
const LATEST_FIRST = new Set(['review', 'failed', 'done', 'earlier']);

/**
 * @param {Rank} a
 * @param {Rank} b
 */
const compare = (a, b) => {
  if (a.since !== b.since) return a.since < b.since === !LATEST_FIRST.has(a.need) ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
};

/**
 * @param {Rank[]} group
 * @param {Rank} entry
 */
const placeOf = (group, entry) => {
  let low = 0;
  let high = group.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(group[middle], entry) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};

/**
 * The place of a worker: its group, and what it is sorted by there.
 * @param {string} key
 * @param {Sent.Worker} worker
 */
const rankOf = (key, worker) => ({ key, need: worker.need ?? 'done', since: worker.needSince ?? '' });

export class NeedOrder {
  constructor() {
    /** @type {Map<string, Rank>} */
    this.ranks = new Map();
    /** @type {Map<string, Rank[]>} */
    this.groups = new Map(NEEDS.map(([need]) => [need, []]));
  }

  /**
   * A group from top to bottom.
   * @param {Sent.Need} need
   */
  of(need) {
    return this.groups.get(need) ?? [];
  }

  /**
   * Sort all workers anew.
   * @param {Map<string, Sent.Worker>} workers
   */
  replace(workers) {
    this.ranks.clear();
    for (const group of this.groups.values()) group.length = 0;
    for (const [key, worker] of workers) {
      const rank = rankOf(key, worker);
      this.ranks.set(key, rank);
      this.groups.get(rank.need)?.push(rank);
    }
    for (const group of this.groups.values()) group.sort(compare);
  }

  /**
   * Put one worker, which changed or went (null), into its place.
   * @param {string} key
   * @param {Sent.Worker | null} worker
   */
  set(key, worker) {
    const was = this.ranks.get(key);
    const is = worker && rankOf(key, worker);
    if (was && is && was.need === is.need && was.since === is.since) return;
    if (was) {
      const group = this.of(was.need);
      const at = placeOf(group, was);
      if (group[at]?.key === key) group.splice(at, 1);
      this.ranks.delete(key);
    }
    if (is) {
      this.ranks.set(key, is);
      const group = this.of(is.need);
      group.splice(placeOf(group, is), 0, is);
    }
  }

  /**
   * The keys of each group as they are shown.
   * @param {(key: string) => boolean} shows
   * @param {Rank[]} held ranks that are kept, whatever became of the worker
   */
  shown(shows, held) {
    /** @type {Map<string, Rank[]>} */
    const found = new Map();
    const kept = new Set(held.map((rank) => rank.key));
    for (const [need, group] of this.groups) {
      found.set(need, group.filter((rank) => !kept.has(rank.key) && shows(rank.key)));
    }
    for (const rank of held) {
      const group = found.get(rank.need);
      if (group) group.splice(placeOf(group, rank), 0, rank);
    }
    return found;
  }
}
