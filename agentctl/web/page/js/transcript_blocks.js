// Rows of an activity as blocks: each thing once, with its arguments, its outcome, and what a sub-agent did below it.
// Pure.

const PHASES = new Map([['start', 0], ['progress', 1], ['end', 2]]);
const FIELDS = ['parent', 'status', 'agentType', 'name', 'text', 'detail', 'percent'];

/** @typedef {{key: string, type: string, id: any, at: string, endedAt: string, offset: number, children: Block[]}} Block */

const size = (value) => (typeof value === 'string' ? value.length : JSON.stringify(value ?? '').length);

/** What is known of all rows so far; rows may come in any order, and twice. */
export class TranscriptBlocks {
  constructor() {
    this.byKey = new Map();
    this.seen = new Set();
  }

  /** Take rows; return whether any of them is new. */
  add(rows) {
    let isNew = false;
    for (const row of rows) {
      if (this.seen.has(row.offset)) continue;
      this.seen.add(row.offset);
      isNew = true;
      if (row.type !== 'usage') this._take(row);
    }
    return isNew;
  }

  _take(row) {
    const key = row.problem ? `problem:${row.offset}` : `${row.type}:${row.id ?? row.offset}`;
    let block = this.byKey.get(key);
    if (!block) {
      block = { key, type: row.problem ? 'problem' : row.type, id: row.id, first: row.offset, at: row.at, endedAt: '', has: {}, cuts: {}, label: row.label, problem: row.problem, revision: 0 };
      this.byKey.set(key, block);
    }
    block.revision += 1;
    if (row.offset < block.first) block.first = row.offset;
    if (row.at && (!block.at || row.at < block.at)) block.at = row.at;
    const phase = PHASES.get(row.phase) ?? 2;
    if (row.phase === 'end' && row.at) block.endedAt = row.at;
    for (const field of FIELDS) {
      if (row[field] == null) continue;
      const was = block.has[field];
      const isStronger = !was || phase > was.phase || (phase === was.phase && (row.offset > was.offset || size(row[field]) > was.size));
      if (!isStronger) continue;
      block.has[field] = { phase, offset: row.offset, size: size(row[field]) };
      block[field] = row[field];
      if (field === 'text' || field === 'detail') block.cuts[field] = row.cut ? row.offset : null;
    }
  }

  /** Put the whole row in the place of the one that was cut. */
  putWhole(block, row) {
    for (const field of ['text', 'detail']) {
      if (block.cuts[field] === row.offset && row[field] != null) {
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
      if (above && above !== block && !isBelow(above, block, agents)) above.children.push(block);
      else roots.push(block);
    }
    return roots;
  }
}

/** Whether one block is below another; a forged circle is none. */
function isBelow(block, other, agents) {
  const seen = new Set();
  for (let one = block; one && !seen.has(one); one = one.parent != null ? agents.get(one.parent) : null) {
    if (one === other) return true;
    seen.add(one);
  }
  return false;
}

/** How many calls are in a sub-agent, with those below it. */
export function callsIn(block) {
  return block.children.reduce((sum, child) => sum + (child.type === 'tool' ? 1 : 0) + (child.type === 'agent' ? callsIn(child) : 0), 0);
}

/** Changes with everything that is drawn of a block. */
export const stampOf = (block) => block.children.reduce((sum, child) => sum + stampOf(child) + 1, block.revision);
