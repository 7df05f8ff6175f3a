// Where the rows of a long list are, of which only some are drawn: measured where that has been done, estimated
// elsewhere. A list that grows at its end costs what is new. Pure.

/** The places of some rows below each other, by the heights that are known now. */
export class RowPlaces {
  /**
   * @param {readonly unknown[]} keys of the rows, from top to bottom; more may come behind them (`extend`)
   * @param {ReadonlyMap<unknown, number>} heights that were measured, by key
   * @param {number} estimate the height of every other row
   */
  constructor(keys, heights, estimate) {
    this.keys = keys;
    this.heights = heights;
    this.estimate = estimate;
    this.count = keys.length;
    this.tops = new Float64Array(keys.length + 1);
    this.remeasure(0);
  }

  get height() {
    return this.tops[this.count];
  }

  /**
   * Take up other heights of the rows from one on.
   * @param {number} from
   */
  remeasure(from) {
    for (let at = from; at < this.count; at += 1) {
      this.tops[at + 1] = this.tops[at] + (this.heights.get(this.keys[at]) ?? this.estimate);
    }
  }

  /** Take up the rows that came behind the others; those stay where they are. */
  extend() {
    const from = this.count;
    this.count = this.keys.length;
    if (this.tops.length <= this.count) {
      const tops = new Float64Array(2 * this.count + 1);
      tops.set(this.tops);
      this.tops = tops;
    }
    this.remeasure(from);
  }

  /**
   * The row that a line through the list is in; the first or the last one for a line above or below them.
   * @param {number} y
   */
  indexAt(y) {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /**
   * The row at a line, and how far into it the line is; null where no row is there.
   * @param {number} y
   */
  placeAt(y) {
    if (y <= 0 || y >= this.height) return null;
    const index = this.indexAt(y);
    return { key: this.keys[index], into: y - this.tops[index] };
  }

  /**
   * Where the line of such a place is now; null if its row is gone.
   * @param {{ key: unknown, into: number }} place
   */
  lineOf({ key, into }) {
    const index = this.keys.indexOf(key);
    return index < 0 ? null : this.tops[index] + Math.min(into, this.tops[index + 1] - this.tops[index]);
  }
}

/**
 * Which rows are drawn: those near the screen, and others that have to exist; in their order, each once.
 * @param {number} begin
 * @param {number} end
 * @param {readonly number[]} others
 * @param {number} count
 */
export function drawnRows(begin, end, others, count) {
  const found = new Set(others.filter((index) => index >= 0 && index < count));
  for (let index = Math.max(0, begin); index < Math.min(end, count); index += 1) found.add(index);
  return [...found].sort((one, other) => one - other);
}

/**
 * Forget the heights of rows that are gone, once they are more than those that are there.
 * @param {Map<unknown, number>} heights
 * @param {readonly unknown[]} keys
 */
export function forgetHeights(heights, keys) {
  if (heights.size <= 2 * keys.length + 1000) return;
  const there = new Set(keys);
  for (const key of heights.keys()) if (!there.has(key)) heights.delete(key);
}
