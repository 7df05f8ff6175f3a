// Draws rows of an output as a terminal shows them: text nodes in elements of our own, with looks that are known.
import { html } from './dom.js';
import { plain } from './safe_text.js';
import { looksOf, partsOf } from './text/spans.js';

/** @import { Part as PartOfRow } from './text/spans.js' */

/** @param {PartOfRow} part */
function Part({ text, style, isHit }) {
  const shown = plain(text);
  if (!style) return isHit ? html`<mark>${shown}</mark>` : shown;
  const { classes, f, b } = looksOf(style);
  const own = { ...(f ? { '--f': f } : {}), ...(b ? { '--b': b } : {}) };
  const drawn = html`<span class=${classes} style=${own}>${shown}</span>`;
  return isHit ? html`<mark>${drawn}</mark>` : drawn;
}

/**
 * One row; where `words` are searched for, each place that has them is marked.
 * @param {{ row: Sent.OutputRow, words?: string, isCurrent?: boolean, kind?: string }} props
 */
export function ShownRow({ row, words = '', isCurrent = false, kind = '' }) {
  const classes = `printed ${kind}${isCurrent ? ' current' : ''}${row.continued ? ' continued' : ''}`;
  return html`<div class=${classes} data-at=${row.at}>${partsOf(row, words).map(Part)}${'\n'}</div>`;
}

/**
 * Several rows, as a block of their own.
 * @param {{ rows: Sent.OutputRow[] }} props
 */
export function ShownRows({ rows }) {
  return html`<div class="shown-rows foreign">${rows.map((row) => html`<${ShownRow} key=${row.at} row=${row} />`)}</div>`;
}
