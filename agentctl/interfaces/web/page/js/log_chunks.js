// The lines of an output in chunks of a hundred, so that only those near the screen are laid out. Pure.

const LINES = 100;
/** A chunk is no longer than this, however few lines it has. */
const CHARACTERS = 32_000;
/** Of a longer line the beginning is laid out. */
export const LONG_LINE = 4096;

/**
 * @typedef {{ id: number, kind: 'lines'|'long'|'mark', lines: string[], size: number, revision: number,
 *   at?: string }} Chunk
 * @typedef {{ chunk: Chunk, line: number, begin: number }} Hit
 */

/**
 * @param {number} id
 * @param {'lines'|'long'} kind
 * @param {string} line
 * @returns {Chunk}
 */
const chunkOf = (id, kind, line) => ({ id, kind, lines: [line], size: line.length, revision: 0 });

export class LogChunks {
  constructor() {
    /** @type {Chunk[]} */
    this.chunks = [];
    this.next = 1;
    this.before = -1;
    this.isOpen = false; // Whether the last line has no end yet.
    this.lines = 0;
    this.characters = 0;
    this.widest = 0;
  }

  /**
   * Put text behind what is there.
   * @param {string} text
   */
  append(text) {
    if (!text) return;
    this.characters += text.length;
    const lines = text.split('\n');
    const isComplete = lines[lines.length - 1] === '';
    if (isComplete) lines.pop();
    if (this.isOpen && lines.length) {
      const last = this._lastText();
      if (last) {
        const joined = `${last.lines.pop()}${lines.shift()}`;
        this.lines -= 1;
        last.size = last.lines.reduce((sum, line) => sum + line.length, 0);
        last.revision += 1;
        if (!last.lines.length) this.chunks.splice(this.chunks.indexOf(last), 1);
        lines.unshift(joined);
      }
    }
    this.isOpen = !isComplete;
    this._put(lines, this.chunks, () => this.next++);
  }

  /**
   * Put text in front of what is there. `isWholeLine`: the text below it begins with a line of its own.
   * @param {string} text
   */
  prepend(text) {
    if (!text) return;
    this.characters += text.length;
    const lines = text.split('\n');
    const rest = lines.pop();
    const first = this.chunks.find((chunk) => chunk.kind !== 'mark');
    if (rest && first) {
      lines.push(rest + first.lines.shift());
      this.lines -= 1;
      first.revision += 1;
      first.size = first.lines.reduce((sum, line) => sum + line.length, 0);
      if (!first.lines.length) this.chunks.splice(this.chunks.indexOf(first), 1);
    } else if (rest) lines.push(rest);
    /** @type {Chunk[]} */
    const made = [];
    const ids = [];
    this._put(lines, made, () => {
      ids.push(0);
      return 0;
    });
    for (let at = made.length - 1; at >= 0; at -= 1) {
      made[at].id = this.before;
      this.before -= 1;
    }
    this.chunks.unshift(...made);
  }

  /**
   * Draw a line below what is there now.
   * @param {string} at
   */
  mark(at) {
    this.chunks.push({ id: this.next++, kind: 'mark', lines: [], size: 0, revision: 0, at });
  }

  _lastText() {
    for (let at = this.chunks.length - 1; at >= 0; at -= 1) if (this.chunks[at].kind !== 'mark') return this.chunks[at];
    return null;
  }

  /**
   * @param {string[]} lines
   * @param {Chunk[]} chunks
   * @param {() => number} id
   */
  _put(lines, chunks, id) {
    for (const line of lines) {
      this.lines += 1;
      const cells = Math.min(line.length, LONG_LINE) * (/[^\x00-\u10ff]/.test(line.slice(0, LONG_LINE)) ? 2 : 1);
      if (cells > this.widest) this.widest = cells;
      const last = chunks[chunks.length - 1];
      if (line.length > LONG_LINE) chunks.push(chunkOf(id(), 'long', line));
      else if (last?.kind === 'lines' && last.lines.length < LINES && last.size < CHARACTERS) {
        last.lines.push(line);
        last.size += line.length;
        last.revision += 1;
      } else chunks.push(chunkOf(id(), 'lines', line));
    }
  }

  /**
   * Where a text occurs: [{chunk, line, begin}], at most so many.
   * @param {string} needle
   * @param {(line: string) => string} shown
   */
  find(needle, shown, most = 10_000) {
    const wanted = needle.toLowerCase();
    /** @type {Hit[]} */
    const found = [];
    if (!wanted) return found;
    for (const chunk of this.chunks) {
      for (let line = 0; line < chunk.lines.length; line += 1) {
        const text = shown(chunk.lines[line].slice(0, LONG_LINE)).toLowerCase();
        for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
          found.push({ chunk, line, begin: at });
          if (found.length >= most) return found;
        }
      }
    }
    return found;
  }
}
