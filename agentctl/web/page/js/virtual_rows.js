// A list of which only the visible rows exist. All rows are equally high.
import { html, main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';

const BEYOND = 10;
const FIRST = 40;

/**
 * @param {{count: number, rowHeight: number, keep?: number[], keyAt: (index: number) => string,
 *   render: (index: number, style: object) => any, role?: string, label?: string}} props
 *   `keep`: rows that exist even where nobody sees them, since they have the focus.
 */
export function VirtualRows({ count, rowHeight, keep = [], render, ...props }) {
  const box = useRef(null);
  const [range, setRange] = useState([0, FIRST]);
  const measure = () => {
    const scroller = main();
    if (!box.current || !scroller) return;
    const above = scroller.getBoundingClientRect().top - box.current.getBoundingClientRect().top;
    const begin = Math.max(0, Math.floor(above / rowHeight) - BEYOND);
    const end = Math.max(0, Math.ceil((above + scroller.clientHeight) / rowHeight) + BEYOND);
    setRange((was) => (was[0] === begin && was[1] === end ? was : [begin, end]));
  };
  useLayoutEffect(measure);
  useEffect(() => {
    const scroller = main();
    let frame = 0;
    const later = () => {
      if (!frame) {
        frame = requestAnimationFrame(() => {
          frame = 0;
          measure();
        });
      }
    };
    scroller.addEventListener('scroll', later, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(scroller);
    return () => {
      scroller.removeEventListener('scroll', later);
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [rowHeight]);
  const indices = [];
  const begin = Math.min(range[0], Math.max(0, count - 1));
  const end = Math.min(count, range[1]);
  for (const index of keep) if (index >= 0 && index < begin) indices.push(index);
  for (let index = begin; index < end; index += 1) indices.push(index);
  for (const index of keep) if (index >= end && index < count) indices.push(index);
  return html`<div ref=${box} class="virtual" style=${{ height: `${count * rowHeight}px` }} ...${props}>
    ${[...new Set(indices)].map((index) => render(index, { top: `${index * rowHeight}px`, height: `${rowHeight}px` }))}
  </div>`;
}

/** The height of a row: two lines on a phone. */
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
