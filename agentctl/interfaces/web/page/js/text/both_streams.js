// Both streams of a worker in one list: what was there before one looked stream by stream, since nobody knows the
// order; from then on as it is seen to come. Pure.

import { MOST_PIECES } from './row_window.js';

const MOST = 2000;

/** @typedef {{ stream: string, row: Sent.OutputRow, key: string }} Item */

export class BothStreams {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    /** @type {Record<string, number>} */
    this.ends = {};
    /** How many of the items were there before. */
    this.past = 0;
    /** Whether there is more of it above, by stream. */
    /** @type {Record<string, boolean>} */
    this.isCut = {};
  }

  /**
   * Take the first page of each stream, in the order in which they are to stand.
   * @param {Sent.LogPage[]} pages
   */
  start(pages) {
    for (const page of pages) {
      this._put(page, this.items.length);
      this.isCut[page.stream] = page.begin > 0;
    }
    this.past = this.items.length;
  }

  /**
   * Take what came behind: what changes rows of its stream takes their place, the rest comes last.
   * @param {Sent.LogPage} page
   * @returns {boolean} whether anything is new
   */
  take(page) {
    if (!page.rows.length && page.end === this.ends[page.stream]) return false;
    const isOld = (/** @type {Item} */ item) => item.stream === page.stream && item.row.at >= page.begin;
    const first = this.items.findIndex(isOld);
    const before = first < 0 ? 0 : this.items.filter(isOld).length;
    const pastOnes = this.items.slice(0, this.past).filter(isOld).length;
    this.items = this.items.filter((item) => !isOld(item));
    this.past -= pastOnes;
    const changed = page.rows.slice(0, before);
    if (changed.length) {
      this._put({ ...page, rows: changed }, first);
      if (first <= this.past && pastOnes) this.past += changed.length;
    }
    this._put({ ...page, rows: page.rows.slice(changed.length) }, this.items.length);
    const over = this._over();
    if (over > 0) {
      for (const item of this.items.splice(0, over)) this.isCut[item.stream] = true;
      this.past = Math.max(0, this.past - over);
    }
    return true;
  }

  /** How many of the first items there is no room for. */
  _over() {
    let pieces = 0;
    const least = Math.max(0, this.items.length - MOST);
    for (let at = this.items.length - 1; at >= least; at -= 1) {
      pieces += this.items[at].row.spans.length;
      if (pieces > MOST_PIECES) return at + 1;
    }
    return least;
  }

  /**
   * @param {Sent.LogPage} page
   * @param {number} place
   */
  _put(page, place) {
    const items = page.rows.map((row) => ({ stream: page.stream, row, key: `${page.stream} ${row.at}` }));
    this.items.splice(place, 0, ...items);
    this.ends[page.stream] = page.end;
  }
}
