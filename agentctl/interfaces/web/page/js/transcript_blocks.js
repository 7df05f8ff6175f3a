// Rows of an activity as blocks: each thing once, with its arguments, its outcome, and what a sub-agent did below it.
// Pure.

const PHASES = new Map([['start', 0], ['progress', 1], ['end', 2]]);
/** @type {Array<keyof Fields>} */
const FIELDS = ['parent', 'status', 'agentType', 'name', 'text', 'shown', 'detail', 'percent'];

/**
 * What rows tell of a block, each the latest.
 * @typedef {Pick<Sent.ActivityRow, 'parent' | 'status' | 'agentType' | 'name' | 'text' | 'shown' | 'detail'
 *   | 'percent'>} Fields
 *
 * Of a field the server has not sent all: where the whole row is, and which arguments are cut; none: the field itself.
 * @typedef {{ offset: number, names: Array<string | undefined> }} Cut
 *
 * One thing that a worker said or did. `has`: which row each field is from; `cuts`: of which field there is more;
 * `call`: of a sub-agent the call that started it; `revision` counts its changes.
 * @typedef {Fields & { key: string, type: string, id?: string | number, first: number, at?: string, endedAt: string,
 *   has: Partial<Record<keyof Fields, { phase: number, offset: number, size: number }>>,
 *   cuts: Record<string, Cut | null>, label?: string, problem?: string, revision: number, children: Block[],
 *   call?: Block }} Block
 */

/** A sub-agent that lies deeper stands by itself: nobody reads that, and each costs a frame of the stack. */
const DEEPEST = 20;

/** What anybody may have written, and is not a text, is left out. */
const IN_A_LINE = new Set(['status', 'agentType', 'name']);

/**
 * @param {Sent.ActivityRow} row
 * @param {string} field
 * @returns {Cut | null}
 */
function cutOf({ offset, cutAt = [] }, field) {
  const names = cutAt.filter(([one]) => one === field).map(([, name]) => name);
  return names.length ? { offset, names } : null;
}

/** @param {unknown} value */
const size = (value) => (typeof value === 'string' ? value.length : JSON.stringify(value ?? '').length);

/** What is known of all rows so far; rows may come in any order, and twice. */
export class TranscriptBlocks {
  constructor() {
    /** @type {Map<string, Block>} */
    this.byKey = new Map();
    /** The key of the block that each row belongs to, by where the row begins.
     * @type {Map<number, string>} */
    this.keyOf = new Map();
  }

  /**
   * Take rows; return whether any of them is new.
   * @param {Sent.ActivityRow[]} rows
   */
  add(rows) {
    let isNew = false;
    for (const row of rows) {
      if (this.keyOf.has(row.offset)) continue;
      const key = row.problem ? `problem:${row.offset}` : `${row.type}:${row.id ?? row.offset}`;
      this.keyOf.set(row.offset, key);
      isNew = true;
      if (row.type !== 'usage') this._take(key, row);
    }
    return isNew;
  }

  /**
   * The block of the row that begins at a place of the file.
   * @param {number} offset
   */
  blockAt(offset) {
    return this.byKey.get(this.keyOf.get(offset) ?? '') ?? null;
  }

  /**
   * @param {string} key
   * @param {Sent.ActivityRow} row
   */
  _take(key, row) {
    let block = this.byKey.get(key);
    if (!block) {
      const { id, offset: first, at, label, problem } = row;
      const type = problem ? 'problem' : row.type;
      block = { key, type, id, first, at, endedAt: '', has: {}, cuts: {}, label, problem, revision: 0, children: [] };
      this.byKey.set(key, block);
    }
    block.revision += 1;
    if (row.offset < block.first) block.first = row.offset;
    if (row.at && (!block.at || row.at < block.at)) block.at = row.at;
    const phase = PHASES.get(row.phase ?? '') ?? 2;
    if (row.phase === 'end' && row.at) block.endedAt = row.at;
    for (const field of FIELDS) {
      const cut = cutOf(row, field);
      const value = row[field] ?? (cut && field === 'text' ? '' : null); // There was no room for any of it.
      if (value == null || (IN_A_LINE.has(field) && typeof value !== 'string')) continue;
      const was = block.has[field];
      const isLater = !was || row.offset > was.offset || size(value) > was.size;
      const isStronger = !was || phase > was.phase || (phase === was.phase && isLater);
      if (!isStronger) continue;
      block.has[field] = { phase, offset: row.offset, size: size(value) };
      block[field] = value;
      if (field === 'text' || field === 'detail') block.cuts[field] = cut;
    }
  }

  /**
   * Put the whole row in the place of the one that was cut.
   * @param {Block} block
   * @param {Sent.ActivityRow} row
   */
  putWhole(block, row) {
    for (const field of /** @type {const} */ (['text', 'detail'])) {
      if (block.cuts[field]?.offset === row.offset && row[field] != null) {
        block[field] = row[field];
        block.cuts[field] = null;
      }
    }
    block.revision += 1;
  }

  /** The blocks from top to bottom, those of a sub-agent below it. */
  roots() {
    const all = [...this.byKey.values()].sort((a, b) => a.first - b.first);
    const agents = new Map();
    for (const block of all) {
      block.children = [];
      if (block.type === 'agent') agents.set(block.id, block);
    }
    // A call and the sub-agent that it starts may share an id: the sub-agent is shown, and not the call as well.
    const calls = new Map();
    for (const block of all) if (block.type === 'tool' && agents.has(block.id)) calls.set(block.id, block);
    const roots = [];
    for (const block of all) {
      if (calls.get(block.id) === block) continue;
      if (block.type === 'agent') block.call = calls.get(block.id);
      const above = block.parent != null ? agents.get(block.parent) : null;
      if (above && above !== block && isReached(above, block, agents)) above.children.push(block);
      else roots.push(block);
    }
    return roots;
  }
}

/**
 * Whether one gets from the top to a block, not by way of another one, and not too deep: of a forged circle nothing is
 * below anything.
 * @param {Block} block
 * @param {Block} other
 * @param {Map<unknown, Block>} agents
 */
function isReached(block, other, agents) {
  /** @type {Block | undefined} */
  let one = block;
  for (let depth = 0; one && one !== other && depth < DEEPEST; depth += 1) {
    one = one.parent != null ? agents.get(one.parent) : undefined;
  }
  return !one;
}

/**
 * How many calls are in a sub-agent, with those below it.
 * @param {Block} block
 * @returns {number}
 */
export function callsIn(block) {
  let count = 0;
  for (const child of block.children) {
    if (child.type === 'tool') count += 1;
    else if (child.type === 'agent') count += callsIn(child);
  }
  return count;
}

/**
 * Changes with everything that is drawn of a block.
 * @param {Block} block
 * @returns {number}
 */
export const stampOf = (block) => block.children.reduce((sum, child) => sum + stampOf(child) + 1,
  block.revision + (block.call ? block.call.revision + 1 : 0));

/**
 * Whether a block is another one, or has it below it.
 * @param {Block} block
 * @param {Block | null} other
 * @returns {boolean}
 */
export const holds = (block, other) => other !== null
  && (block === other || block.call === other || block.children.some((child) => holds(child, other)));
