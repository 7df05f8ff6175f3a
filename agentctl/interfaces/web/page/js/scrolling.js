// Where the page is scrolled to. Nothing else scrolls it: what changes above the reader's place does not move it.
import { focused, main, onMove, useEffect, useLayoutEffect, useRef } from './dom.js';
import { isField } from './keys.js';
import { lastScroll } from './router.js';

const NEAR_PX = 48;

export const toBegin = () => { main().scrollTop = 0; };
export const toEnd = () => { main().scrollTop = main().scrollHeight; };
/** @param {number} px */
export const scrollDown = (px) => main().scrollBy(0, px);

export const isAtEnd = () => main().scrollHeight - main().scrollTop - main().clientHeight < NEAR_PX;

/** The upper edge of what is seen of the page, in the window. */
export const upperEdge = () => main().getBoundingClientRect().top;

/**
 * Scroll until an element is seen: no further than it takes, or until it is in the middle or at the top.
 * @param {Element | null | undefined} element
 * @param {'nearest' | 'center' | 'start'} block
 */
export const reveal = (element, block = 'nearest') => element?.scrollIntoView({ block });

/**
 * Scroll until a piece of text is seen, if it is not: one element may be higher than the screen.
 * @param {Range} range
 */
export function revealText(range) {
  const seen = main().getBoundingClientRect();
  const { top, bottom, height } = range.getBoundingClientRect();
  const isSeen = height > 0 && top >= seen.top + seen.height / 4 && bottom <= seen.bottom - seen.height / 4;
  if (height && !isSeen) main().scrollTop += (top + bottom - seen.top - seen.bottom) / 2;
}

/** @param {Element | null | undefined} element */
export const topOf = (element) => element?.getBoundingClientRect().top;

/**
 * Scroll after something that has moved by so many pixels, so that it stays where it was in the window.
 * @param {number} moved
 * @returns {number} how many of them are missing, where the page ends before that
 */
export function follow(moved) {
  if (Math.abs(moved) < 1) return 0;
  const scroller = main();
  const wanted = scroller.scrollTop + moved;
  scroller.scrollTop = wanted;
  return wanted - scroller.scrollTop;
}

/**
 * Let an element stay where it is in the window, whatever the drawing of this part changes.
 * @param {() => Element | null | undefined} find the element; nothing if none is to stay
 * @param {(moved: number) => void} makeUp
 */
export function useStaying(find, makeUp = follow) {
  const before = topOf(find());
  useLayoutEffect(() => {
    const after = topOf(find());
    if (before === undefined || after === undefined || Math.abs(after - before) < 1) return;
    makeUp(after - before);
  });
}

/**
 * Keep the page at its end, while that is wanted: what was never on the screen has an estimated height, and a question
 * may come below a text.
 * @param {Ref<Element | null>} box what grows; what is around it may, too
 * @param {Ref<boolean>} isWanted
 */
export function useEnd(box, isWanted) {
  const observed = useRef(/** @type {{ element: Element | null, stop: () => void }} */ ({ element: null, stop() {} }));
  // The element comes with what was fetched, and may be another one later.
  useEffect(() => {
    const element = box.current?.closest('.worker-body') ?? null;
    if (element === observed.current.element) return;
    observed.current.stop();
    const observer = new ResizeObserver(() => {
      if (isWanted.current) toEnd();
    });
    if (element) observer.observe(element);
    observed.current = { element, stop: () => observer.disconnect() };
  });
  useEffect(() => () => observed.current.stop(), []);
}

/**
 * Tell of each scroll of the page, and whether it went up.
 * @param {(isUp: boolean) => void} tell
 */
export function useScrolled(tell) {
  const latest = useRef(tell);
  latest.current = tell;
  useEffect(() => {
    const scroller = main();
    let last = scroller.scrollTop;
    const onScroll = () => {
      const isUp = scroller.scrollTop < last - 2;
      last = scroller.scrollTop;
      latest.current(isUp);
    };
    scroller.addEventListener('scroll', onScroll, { passive: true });
    return () => scroller.removeEventListener('scroll', onScroll);
  }, []);
}

/**
 * Scroll to where it was. A part that is drawn in pieces, or fetches some, may be as high as it was only later: so long
 * it is tried again. Once it was there, rows that get their heights keep the place by themselves.
 * @param {number} scroll
 * @returns {() => void} leaves it
 */
function scrollBackTo(scroll) {
  const over = new AbortController();
  const goBack = () => {
    main().scrollTop = scroll;
    if (main().scrollTop >= Math.floor(scroll)) over.abort();
  };
  const observer = new ResizeObserver(goBack);
  over.signal.addEventListener('abort', () => observer.disconnect());
  onMove(() => over.abort(), over.signal);
  goBack();
  if (!over.signal.aborted) for (const part of main().children) observer.observe(part);
  return () => over.abort();
}

/**
 * Once a part is there, scroll it back to where it was when one left it, and put the focus there, unless that has gone
 * somewhere since, or one types.
 * @param {boolean} isThere
 * @param {() => void} putFocus
 */
export function useLastScroll(isThere, putFocus = () => {}) {
  const before = useRef(focused());
  useLayoutEffect(() => {
    const scroll = lastScroll();
    if (scroll === undefined || !isThere) return undefined;
    requestAnimationFrame(() => {
      const now = focused();
      if ([before.current, document.body, main()].includes(now) && !isField(now)) putFocus();
    });
    return scrollBackTo(scroll);
  }, [isThere]);
}
