// A list of which only the rows near the screen exist. Each has the height that it needs; until it was drawn once, that
// is an estimate. The row at the top of the screen stays there, whatever is put above it or turns out to be higher.
import { html, main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { drawnRows, RowPlaces } from './row_heights.js';
import { follow, topOf, upperEdge, useScrolled } from './scrolling.js';

const BEYOND = 10;
const FIRST = 40;

/**
 * @param {{ keys: readonly unknown[], rowHeight: number, heights?: Map<unknown, number>, keep?: number[],
 *   render: (index: number, style: object) => object, [attribute: string]: unknown }} props
 *   `rowHeight`: that of most rows; `heights`: those that were measured, for a list that comes back with its place;
 *   `keep`: rows that exist even where nobody sees them, since they have the focus
 */
export function VirtualRows({ keys, rowHeight, heights: given, keep = [], render, ...props }) {
  const box = useRef(null);
  const heights = useRef(given ?? new Map()).current;
  const drawn = useRef({ places: new RowPlaces([], heights, rowHeight), rowHeight, measured: 0 });
  const measured = useRef(0);
  const [[begin, end], setRange] = useState([0, FIRST]);
  const [, draw] = useState(0);

  const above = () => upperEdge() - (topOf(box.current) ?? 0);
  const was = drawn.current;
  const isSame = was.places.keys === keys && was.rowHeight === rowHeight && was.measured === measured.current;
  const places = isSame ? was.places : new RowPlaces(keys, heights, rowHeight);
  const stays = isSame || !box.current ? null : was.places.placeAt(above());
  drawn.current = { places, rowHeight, measured: measured.current };

  const indices = drawnRows(begin, end, keep, keys.length);
  const look = () => {
    if (!box.current) return;
    const first = drawn.current.places.indexAt(above()) - BEYOND;
    const last = drawn.current.places.indexAt(above() + main().clientHeight) + BEYOND;
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
  };
  useLayoutEffect(() => {
    const line = stays && places.lineOf(stays);
    if (line !== null) follow(line - above());
    let isNews = false;
    indices.forEach((index, at) => {
      const { height } = box.current.children[at].getBoundingClientRect();
      const known = heights.get(keys[index]) ?? rowHeight;
      if (!height || Math.abs(height - known) < 0.5) return;
      heights.set(keys[index], height);
      isNews = true;
    });
    if (isNews) {
      measured.current += 1;
      draw((count) => count + 1);
    }
    look();
  });
  const frame = useRef(0);
  const later = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      look();
    });
  };
  useScrolled(later);
  useEffect(() => {
    let width = 0;
    const observer = new ResizeObserver(([entry]) => {
      // Other lines are broken at another width: what was measured counts no more.
      if (width && width !== entry.contentRect.width) {
        heights.clear();
        measured.current += 1;
        draw((count) => count + 1);
      }
      width = entry.contentRect.width;
      later();
    });
    observer.observe(main());
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  return html`<div ref=${box} class="virtual" style=${{ height: `${places.height}px` }} ...${props}>
    ${indices.map((index) => render(index, { top: `${places.tops[index]}px`, minHeight: `${rowHeight}px` }))}
  </div>`;
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
