// A list of which only the rows near the screen exist. Each has the height that it needs; until it was drawn once, that
// is an estimate. The row at the top of the screen stays there, whatever is put above it or turns out to be higher.
import { html, main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { drawnRows, forgetHeights, RowPlaces } from './row_heights.js';
import { follow, topOf, upperEdge, useScrolled } from './scrolling.js';

const BEYOND = 10;
const FIRST = 40;
/**
 * An array that grows at its end stays the same one.
 * @typedef {readonly unknown[]} Keys
 */

/**
 * Which rows of a list are near the screen: from the first up to the last one.
 * @param {Ref<Element | null>} box where the list is
 * @param {Ref<RowPlaces>} places where its rows are
 * @param {() => void} [onWidth] tells that the page has another width
 * @returns {{ range: [begin: number, end: number], look: () => void }} `look` is called after each drawing
 */
export function useNear(box, places, onWidth) {
  const [range, setRange] = useState(/** @type {[number, number]} */ ([0, FIRST]));
  const look = () => {
    if (!box.current) return;
    const above = upperEdge() - (topOf(box.current) ?? 0);
    const first = places.current.indexAt(above) - BEYOND;
    const last = places.current.indexAt(above + main().clientHeight) + BEYOND;
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
  };
  const latest = useRef(look);
  latest.current = look;
  const frame = useRef(0);
  const later = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      latest.current();
    });
  };
  useScrolled(later);
  useEffect(() => {
    let width = 0;
    const observer = new ResizeObserver(([entry]) => {
      if (width && width !== entry.contentRect.width) onWidth?.();
      width = entry.contentRect.width;
      later();
    });
    observer.observe(main());
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  return { range, look };
}

/**
 * @param {{ keys: Keys, rowHeight: number, heights?: Map<unknown, number>, keep?: number[],
 *   render: (index: number, style: object) => object, [attribute: string]: unknown }} props
 *   `rowHeight`: that of most rows; `heights`: those that were measured, for a list that comes back with its place;
 *   `keep`: rows that exist even where nobody sees them, since they have the focus
 */
export function VirtualRows({ keys, rowHeight, heights: given, keep = [], render, ...props }) {
  const box = useRef(null);
  const heights = useRef(given ?? new Map()).current;
  const places = useRef(new RowPlaces([], heights, rowHeight));
  /** From this row on the heights are other ones. */
  const measured = useRef(Infinity);
  const [, draw] = useState(0);
  const { range: [begin, end], look } = useNear(box, places, () => {
    heights.clear(); // Other lines are broken at another width: what was measured counts no more.
    measured.current = 0;
    draw((count) => count + 1);
  });

  const above = () => upperEdge() - (topOf(box.current) ?? 0);
  const was = places.current;
  const isOther = was.keys !== keys || was.estimate !== rowHeight || was.count > keys.length;
  const stays = box.current && (isOther || measured.current < Infinity) ? was.placeAt(above()) : null;
  if (isOther) {
    forgetHeights(heights, keys);
    places.current = new RowPlaces(keys, heights, rowHeight);
  } else {
    if (measured.current < Infinity) was.remeasure(measured.current);
    if (was.count < keys.length) was.extend();
  }
  measured.current = Infinity;
  const { tops, height: total } = places.current;

  const indices = drawnRows(begin, end, keep, keys.length);
  useLayoutEffect(() => {
    const line = stays && places.current.lineOf(stays);
    if (line !== null) follow(line - above());
    indices.forEach((index, at) => {
      const { height } = box.current.children[at].getBoundingClientRect();
      const known = heights.get(keys[index]) ?? rowHeight;
      if (!height || Math.abs(height - known) < 0.5) return;
      heights.set(keys[index], height);
      measured.current = Math.min(measured.current, index);
    });
    if (measured.current < Infinity) draw((count) => count + 1);
    look();
  });
  return html`<div ref=${box} class="virtual" style=${{ height: `${total}px` }} ...${props}>
    ${indices.map((index) => render(index, { top: `${tops[index]}px`, minHeight: `${rowHeight}px` }))}
  </div>`;
}

/**
 * A table of which only the rows near the screen exist. `columns`: of each its head, whether it has numbers, and what
 * is in a cell; `widths`: as a grid has them; `foot`: the cells of a last row that is always there.
 * @template T
 * @typedef {{ head: string, isNumber?: boolean, cell: (row: T) => string | object }} Column
 */

/**
 * @template T
 * @param {{ label: string, rows: T[], keyOf: (row: T) => string, columns: Column<T>[], widths: string,
 *   foot?: Array<string | object> | null }} props
 */
export function VirtualTable({ label, rows, keyOf, columns, widths, foot }) {
  const known = useRef(/** @type {{ rows: T[], keys: string[] }} */ ({ rows: [], keys: [] }));
  if (known.current.rows !== rows) {
    const keys = rows.map(keyOf);
    const isSame = keys.length === known.current.keys.length && keys.every((key, at) => key === known.current.keys[at]);
    known.current = { rows, keys: isSame ? known.current.keys : keys };
  }
  const grid = { gridTemplateColumns: widths };
  const classes = columns.map((one) => `cell${one.isNumber ? ' number' : ''}`);
  const size = rows.length + 1 + (foot ? 1 : 0);
  return html`<div class="table-box"><div class="rows-table" role="table" aria-label=${label} aria-rowcount=${size}>
    <div class="table-row table-head" role="row" aria-rowindex="1" style=${grid}>${columns.map((one, at) => html`<span key=${at} role="columnheader" class=${classes[at]}>${one.head}</span>`)}</div>
    <${VirtualRows} keys=${known.current.keys} rowHeight=${30} role="rowgroup"
      render=${(index, style) => html`<div key=${known.current.keys[index]} class="table-row" role="row" aria-rowindex=${index + 2} style=${{ ...style, ...grid }}>
        ${columns.map((one, at) => html`<span key=${at} role="cell" class=${classes[at]}>${one.cell(rows[index])}</span>`)}</div>`} />
    ${foot && html`<div class="table-row table-foot" role="row" aria-rowindex=${size} style=${grid}>${foot.map((cell, at) => html`<span key=${at} role="cell" class=${classes[at]}>${cell}</span>`)}</div>`}
  </div></div>`;
}

/** The height of a row with one line of each text: two lines on a phone. */
export function useRowHeight(wide = 34, narrow = 60) {
  const query = matchMedia('(max-width: 640px)');
  const [isNarrow, setNarrow] = useState(query.matches);
  useLayoutEffect(() => {
    const tell = () => setNarrow(query.matches);
    query.addEventListener('change', tell);
    return () => query.removeEventListener('change', tell);
  }, []);
  return isNarrow ? narrow : wide;
}
