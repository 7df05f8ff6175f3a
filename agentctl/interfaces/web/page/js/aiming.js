// Whether a press of the pointer was meant for what it hit: not where that has moved there by itself just before.
import { main, useLayoutEffect, useRef } from './dom.js';
import { say } from './store.js';

const AIMING_MS = 300;
const SAMPLE_MS = 100;
const STILL_PX = 3;

/**
 * What is looked after: where it was, on the screen and in what scrolls, and when it last moved.
 * @typedef {{ element: Element, top: number, inside: number, movedAt: number }} Watched
 */

/** @type {Set<Watched>} */
const watched = new Set();
let timer = 0;

/**
 * Note whether something moved, but for what a person's own scrolling moves.
 * @param {Watched} one
 */
function look(one) {
  const { top } = one.element.getBoundingClientRect();
  const inside = top + main().scrollTop;
  if (Math.abs(top - one.top) > STILL_PX && Math.abs(inside - one.inside) > STILL_PX) one.movedAt = performance.now();
  Object.assign(one, { top, inside });
}

/** @param {Element} element */
function watch(element) {
  const one = { element, top: NaN, inside: NaN, movedAt: -AIMING_MS };
  look(one);
  watched.add(one);
  timer ||= setInterval(() => {
    if (!document.hidden) watched.forEach(look);
  }, SAMPLE_MS);
  return one;
}

/** @param {Watched} one */
function leave(one) {
  watched.delete(one);
  if (watched.size) return;
  clearInterval(timer);
  timer = 0;
}

/**
 * Handlers for an element: a click on a button in it counts if that button was at rest below the pointer.
 * @param {Ref<HTMLElement>} element
 */
export function useAim(element) {
  const pressed = useRef({ button: /** @type {HTMLButtonElement | null} */ (null), isMeant: false });
  const place = useRef(null);
  useLayoutEffect(() => {
    const one = watch(element.current);
    place.current = one;
    return () => leave(one);
  }, []);
  return {
    /** @param {On<PointerEvent>} event */
    onPointerDownCapture: (event) => {
      look(place.current);
      const isMeant = performance.now() - place.current.movedAt > AIMING_MS;
      pressed.current = { button: event.target.closest('button'), isMeant };
    },
    /** @param {On<MouseEvent>} event */
    onClickCapture: (event) => {
      const button = event.target.closest('button');
      if (!button || event.detail === 0) return; // By a key.
      if (pressed.current.isMeant && pressed.current.button === button) return;
      event.stopPropagation();
      event.preventDefault();
      say('That has just moved: press again.');
    },
  };
}
