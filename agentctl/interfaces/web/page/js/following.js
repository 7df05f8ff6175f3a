// A text that grows below: it follows while one is at its end, and stays where it is while one reads above.
import { main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useKeys } from './keys.js';
import { follow, isAtEnd, scrollDown, toBegin, toEnd, topOf, upperEdge, useEnd, useScrolled } from './scrolling.js';

const FAST_MS = 500;
const SLOW_MS = 2000;
const OLDER_PX = 600;

/**
 * Fetch what comes later, every 500 ms while something comes, every 2 s while nothing does, and no more at the end.
 * @param {() => Promise<'more'|'nothing'|'ended'>} load
 * @param {readonly unknown[]} deps
 */
export function usePolling(load, deps) {
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    let timer = 0;
    let pause = FAST_MS;
    let isOver = false;
    const next = async () => {
      if (isOver) return;
      if (document.hidden) {
        timer = setTimeout(next, FAST_MS);
        return;
      }
      let came = 'nothing';
      try {
        came = await current.current();
      } catch { /* The next one may come through; the head of the page says that the server is away. */ }
      if (isOver || came === 'ended') return;
      pause = came === 'more' ? FAST_MS : Math.min(SLOW_MS, pause * 1.4);
      timer = setTimeout(next, pause);
    };
    timer = setTimeout(next, FAST_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, deps);
}

/**
 * Keep the place of the reader while a text grows at both ends.
 * @param {{ box: Ref<HTMLElement | null>, revision: unknown, onOlder: () => void, hasOlder: boolean,
 *   onNewer?: () => void, hasNewer?: boolean, startsAtEnd?: boolean }} options `hasNewer`: there is more below what is
 *   here, so its end is not the end of the text
 * @returns {{ isFollowing: boolean, toEnd: () => void, toBegin: () => void, leave: () => void }}
 */
export function useFollowing({
  box, revision, onOlder, hasOlder, onNewer = () => {}, hasNewer = false, startsAtEnd = true,
}) {
  const follows = useRef(startsAtEnd);
  /** Where the page was scrolled to when one left the end. */
  const left = useRef(-1);
  const [isFollowing, setFollowing] = useState(startsAtEnd);
  const anchor = useRef(/** @type {{ element: Element, top: number } | null} */ (null));
  const older = useRef(/** @type {(() => void) | null} */ (onOlder));
  older.current = hasOlder ? onOlder : null;
  const newer = useRef(/** @type {(() => void) | null} */ (null));
  newer.current = hasNewer ? onNewer : null;

  // What is at the top of the screen now keeps its place when something is put above it.
  const noteAnchor = () => {
    const top = upperEdge();
    const children = box.current?.children ?? [];
    let low = 0;
    let high = children.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (children[middle].getBoundingClientRect().bottom <= top) low = middle + 1;
      else high = middle;
    }
    const element = children[low];
    anchor.current = element ? { element, top: element.getBoundingClientRect().top } : null;
  };

  useLayoutEffect(() => {
    if (follows.current) toEnd();
    else if (anchor.current?.element.isConnected) {
      follow(anchor.current.element.getBoundingClientRect().top - anchor.current.top);
    }
    noteAnchor();
  }, [revision]);

  useScrolled((isUp) => {
    // Of a scroll to the end that was before one left it is told only in the next frame.
    const hasMoved = main().scrollTop !== left.current;
    if (isAtEnd() && !newer.current && hasMoved) follows.current = true;
    else if (isUp) follows.current = false;
    setFollowing(follows.current);
    noteAnchor();
    if (upperEdge() - (topOf(box.current) ?? 0) < OLDER_PX) older.current?.();
    if (main().scrollHeight - main().scrollTop - main().clientHeight < OLDER_PX) newer.current?.();
  });
  useEnd(box, follows);

  // A first page that does not fill the screen can never be scrolled: what is older is fetched at once.
  useEffect(() => {
    if (hasOlder && main().scrollHeight <= main().clientHeight + OLDER_PX) older.current?.();
  }, [revision, hasOlder]);

  const leave = () => {
    left.current = main().scrollTop;
    follows.current = false;
    setFollowing(false);
  };
  return {
    isFollowing,
    toEnd: () => {
      left.current = -1;
      follows.current = true;
      setFollowing(true);
      toEnd();
    },
    toBegin: () => {
      leave();
      toBegin();
    },
    leave,
  };
}

/**
 * The keys that scroll a text.
 * @param {() => void} last
 */
export function useScrollKeys(last = toEnd, more = {}) {
  useKeys({
    down: () => scrollDown(60),
    up: () => scrollDown(-60),
    first: toBegin,
    last,
    ...more,
  });
}
