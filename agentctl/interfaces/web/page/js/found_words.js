// Marks what a search has found in the view that it leads to. The browser marks it (`CSS.highlights`): what strangers
// have written is drawn as ever, and nothing of it is taken apart. A browser that cannot has the row that is meant.
import { onMove, useLayoutEffect } from './dom.js';
import { reveal, revealText } from './scrolling.js';
import { placesIn } from './text/found_places.js';

const NAME = 'found';
/** More text than this is not looked through. */
const MOST_CHARACTERS = 1_000_000;
/** Words that are found do not go on from one of these to the next. */
const BLOCKS = 'p, li, td, th, dd, dt, pre, div, section, h2, h3, h4, h5, h6, button';

/**
 * Where any of several texts stands in an element, and of these places the first one of the first text: it is told even
 * below more places of the others than are marked.
 * @param {Element} element
 * @param {string[]} wanted
 * @returns {{ ranges: Range[], meant: Range | undefined }}
 */
function rangesIn(element, wanted) {
  /** @type {Array<{ node: Text, begin: number }>} */
  const nodes = [];
  let text = '';
  let block = null;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (text.length < MOST_CHARACTERS && walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    const around = node.parentElement?.closest(BLOCKS) ?? null;
    if (around !== block) text += '\0';
    block = around;
    nodes.push({ node, begin: text.length });
    text += node.data;
  }
  let at = 0;
  const nodeAt = (/** @type {number} */ place) => {
    while (at + 1 < nodes.length && nodes[at + 1].begin <= place) at += 1;
    return nodes[at];
  };
  const places = placesIn(text, wanted);
  const [place] = placesIn(text, wanted.slice(0, 1));
  const isMeant = (/** @type {[number, number]} */ [begin]) => begin === place?.[0];
  if (place && !places.some(isMeant)) places.push(place);
  places.sort(([one], [other]) => one - other);
  const ranges = places.map(([begin, end]) => {
    const [first, last] = [nodeAt(begin), nodeAt(end - 1)];
    const range = new Range();
    range.setStart(first.node, begin - first.begin);
    range.setEnd(last.node, end - last.begin);
    return range;
  });
  return { ranges, meant: ranges[places.findIndex(isMeant)] };
}

/**
 * Mark texts wherever they stand in a part of the page; where one row of it is meant, in that one. The first text is
 * what was found: it stays in sight, however the part grows, until the reader goes on.
 * @param {Ref<Element | null>} box
 * @param {string[]} wanted none if nothing was searched for
 * @param {string} key another view
 */
export function useFoundWords(box, wanted, key) {
  // Over with the view, not a frame later: by then what the next view draws would be marked and brought into sight.
  useLayoutEffect(() => {
    const part = box.current;
    if (!part || !wanted.length) return undefined;
    let frame = 0;
    let isRead = false;
    const mark = () => {
      frame = 0;
      const row = part.querySelector('.block[aria-current]');
      const { ranges, meant } = rangesIn(row ?? part, wanted);
      if ('highlights' in CSS) CSS.highlights.set(NAME, new Highlight(...ranges));
      if (isRead) return;
      const first = meant ?? ranges[0];
      if (!first?.getBoundingClientRect().height) reveal(first?.startContainer.parentElement ?? row, 'center');
      // What was never on the screen has an estimated height: by the next frame it has its own.
      if (first) frame = requestAnimationFrame(() => {
        frame = 0;
        revealText(first);
      });
    };
    const look = () => {
      frame ||= requestAnimationFrame(mark);
    };
    const observer = new MutationObserver(look);
    observer.observe(part, { childList: true, subtree: true, characterData: true });
    const heights = new ResizeObserver(look);
    heights.observe(part);
    const over = new AbortController();
    onMove(() => {
      isRead = true;
    }, over.signal);
    return () => {
      over.abort();
      observer.disconnect();
      heights.disconnect();
      cancelAnimationFrame(frame);
      if ('highlights' in CSS) CSS.highlights.delete(NAME);
    };
  }, [wanted.join('\n'), key]);
}
