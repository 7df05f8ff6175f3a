// The rows of an output that are here: a window that moves over a file of any size. Pure.

/** So many rows are here, about so many characters, and pieces of other looks: each of these is an element. */
export const MOST_ROWS = 1500;
const MOST_CHARACTERS = 1_000_000;
export const MOST_PIECES = 20_000;
/** Rows are laid out in chunks of so many, and only those near the screen. */
const CHUNK = 50;

/**
 * @typedef {{ key: string, rows: Sent.OutputRow[], stamp: number }} Chunk
 * @typedef {{ at: number, words: string }} Mark
 */

/** @param {Sent.OutputRow} row */
const lengthOf = (row) => row.spans.reduce((sum, [text]) => sum + text.length, 1);

export class RowWindow {
  /** @param {Sent.LogPage} page */
  constructor(page) {
    /** @type {Chunk[]} */
    this.chunks = [];
    /** @type {Mark[]} */
    this.marks = [];
    this.stamp = 0;
    this.rows = 0;
    this.characters = 0;
    this.pieces = 0;
    this.widest = 0;
    this.begin = page.begin;
    this.end = page.begin;
    this.size = page.size;
    this.hasEnded = false;
    this.append(page);
  }

  /** Whether nothing of the file is below what is here. */
  get isAtEnd() {
    return this.end >= this.size;
  }

  /**
   * Take what comes behind: rows from its beginning on are in the place of those that are here.
   * @param {Sent.LogPage} page
   * @returns {boolean} whether anything is new
   */
  append(page) {
    const isNew = page.rows.length > 0 || page.end !== this.end;
    this._cut(page.begin);
    this.begin = Math.min(this.begin, page.begin);
    this._add(page.rows);
    this.end = page.end;
    this.size = page.size;
    this.hasEnded = page.ended && page.end >= page.size;
    return isNew;
  }

  /**
   * Take what comes before.
   * @param {Sent.LogPage} page
   */
  prepend(page) {
    const rows = page.rows.filter((row) => row.at < this.begin);
    const chunks = this.chunks;
    this.chunks = [];
    this._add(rows);
    this.chunks.push(...chunks);
    this.begin = Math.min(this.begin, page.begin);
  }

  /** Let go of what is far above, or far below, where there is too much. */
  dropAbove() {
    while (this._isFull() && this.chunks.length > 1) {
      this._forget(/** @type {Chunk} */ (this.chunks.shift()));
      this.begin = this.chunks[0].rows[0].at;
    }
  }

  dropBelow() {
    while (this._isFull() && this.chunks.length > 1) {
      const last = /** @type {Chunk} */ (this.chunks.pop());
      this._forget(last);
      this.end = last.rows[0].at;
      this.hasEnded = false;
    }
  }

  /**
   * Draw a line below what is there now.
   * @param {string} words
   */
  mark(words) {
    this.marks.push({ at: this.end, words });
    this.stamp += 1;
    const last = this.chunks[this.chunks.length - 1];
    if (last) last.stamp = this.stamp;
  }

  /**
   * The row that begins at a place of the file, or the last one before it.
   * @param {number} at
   * @returns {Sent.OutputRow | undefined}
   */
  rowAt(at) {
    const chunk = this.chunks.findLast((one) => one.rows[0].at <= at) ?? this.chunks[0];
    return chunk?.rows.findLast((row) => row.at <= at) ?? chunk?.rows[0];
  }

  _isFull() {
    return this.rows > MOST_ROWS || this.characters > MOST_CHARACTERS || this.pieces > MOST_PIECES;
  }

  /** @param {number} begin */
  _cut(begin) {
    let last = this.chunks[this.chunks.length - 1];
    while (last && last.rows[last.rows.length - 1].at >= begin) {
      this._forget(last);
      const kept = last.rows.filter((row) => row.at < begin);
      this.chunks.pop();
      if (kept.length) this._add(kept, last.key);
      last = this.chunks[this.chunks.length - 1];
      if (kept.length) break;
    }
  }

  /** @param {Chunk} chunk */
  _forget(chunk) {
    for (const row of chunk.rows) this._count(row, -1);
  }

  /**
   * @param {Sent.OutputRow} row
   * @param {1 | -1} by
   */
  _count(row, by) {
    this.rows += by;
    this.characters += by * lengthOf(row);
    this.pieces += by * row.spans.length;
  }

  /**
   * @param {Sent.OutputRow[]} rows
   * @param {string | undefined} key
   */
  _add(rows, key = undefined) {
    this.stamp += 1;
    for (const row of rows) {
      let last = this.chunks[this.chunks.length - 1];
      if (!last || last.rows.length >= CHUNK) {
        last = { key: key ?? `${row.at}`, rows: [], stamp: 0 };
        this.chunks.push(last);
      }
      last.rows.push(row);
      last.stamp = this.stamp;
      this._count(row, 1);
      this.widest = Math.max(this.widest, lengthOf(row));
    }
  }
}
