// What of an excerpt is shown where there is room for so many letters: what was found, and as much on both sides. Pure.

/**
 * @param {{ excerpt?: string | null, begin?: number | null, end?: number | null }} hit places are those of characters
 * @param {number} letters
 * @returns {[before: string, found: string, after: string]}
 */
export function excerptFor({ excerpt, begin, end }, letters) {
  const all = [...(excerpt ?? '')];
  const from = begin ?? 0;
  const to = Math.max(from, end ?? from);
  const found = all.slice(from, to);
  const room = Math.max(0, letters - found.length);
  const behind = all.length - to;
  // What one side does not need is the other's.
  const before = Math.min(from, Math.max(Math.floor(room / 2), room - behind));
  const after = Math.min(behind, room - before);
  const head = all.slice(from - before, from).join('');
  const tail = all.slice(to, to + after).join('');
  return [(before < from ? '…' : '') + head, found.join(''), tail + (after < behind ? '…' : '')];
}
