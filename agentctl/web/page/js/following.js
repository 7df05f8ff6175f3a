// A text that grows below: it follows while one is at its end, and stays where it is while one reads above.
import { main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useKeys } from './keys.js';

const NEAR_PX = 48;
const FAST_MS = 500;
const SLOW_MS = 2000;
const OLDER_PX = 600;

/** @param {Element} element */
const isAtEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;

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
 *   startsAtEnd?: boolean }} options
 * @returns {{ isFollowing: boolean, toEnd: () => void, leave: () => void }}
 */
export function useFollowing({ box, revision, onOlder, hasOlder, startsAtEnd = true }) {
  const follows = useRef(startsAtEnd);
  const [isFollowing, setFollowing] = useState(startsAtEnd);
  const anchor = useRef(null);
  const older = useRef(/** @type {(() => void) | null} */ (onOlder));
  older.current = hasOlder ? onOlder : null;

  // What is at the top of the screen now keeps its place when something is put above it.
  const noteAnchor = () => {
    const top = main().getBoundingClientRect().top;
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
    const scroller = main();
    if (follows.current) scroller.scrollTop = scroller.scrollHeight;
    else if (anchor.current?.element.isConnected) {
      const moved = anchor.current.element.getBoundingClientRect().top - anchor.current.top;
      if (Math.abs(moved) >= 1) scroller.scrollTop += moved;
    }
    noteAnchor();
  }, [revision]);

  useEffect(() => {
    const scroller = main();
    let last = scroller.scrollTop;
    const onScroll = () => {
      const isUp = scroller.scrollTop < last - 2;
      last = scroller.scrollTop;
      if (isAtEnd(scroller)) follows.current = true;
      else if (isUp) follows.current = false;
      setFollowing(follows.current);
      noteAnchor();
      const above = scroller.getBoundingClientRect().top - (box.current?.getBoundingClientRect().top ?? 0);
      if (above < OLDER_PX) older.current?.();
    };
    scroller.addEventListener('scroll', onScroll, { passive: true });
    // The heights of what was never on the screen are estimates: while it follows, it stays at the end.
    const observer = new ResizeObserver(() => {
      if (follows.current) scroller.scrollTop = scroller.scrollHeight;
    });
    if (box.current) observer.observe(box.current);
    return () => {
      scroller.removeEventListener('scroll', onScroll);
      observer.disconnect();
    };
  }, []);

  // A first page that does not fill the screen can never be scrolled: what is older is fetched at once.
  useEffect(() => {
    if (hasOlder && main().scrollHeight <= main().clientHeight + OLDER_PX) older.current?.();
  }, [revision, hasOlder]);

  return {
    isFollowing,
    toEnd: () => {
      follows.current = true;
      setFollowing(true);
      main().scrollTop = main().scrollHeight;
    },
    leave: () => {
      follows.current = false;
      setFollowing(false);
    },
  };
}

/**
 * The keys that scroll a text.
 * @param {() => void} toEnd
 */
export function useScrollKeys(toEnd, more = {}) {
  useKeys({
    down: () => { main().scrollBy(0, 60); },
    up: () => { main().scrollBy(0, -60); },
    first: () => { main().scrollTop = 0; },
    last: toEnd,
    ...more,
  });
}
