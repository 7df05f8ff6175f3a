// Whether a press of the pointer was meant for what it hit: not where that has moved there by itself just before.
import { main, useLayoutEffect, useRef } from './dom.js';
import { say } from './store.js';

const AIMING_MS = 300;
const SAMPLE_MS = 100;
const STILL_PX = 3;

/** What is looked after: {element, top, inside, movedAt}. */
const watched = new Set();
let timer = 0;

/** Note whether something moved, but for what a person's own scrolling moves. */
function look(one) {
  const { top } = one.element.getBoundingClientRect();
  const inside = top + main().scrollTop;
  if (Math.abs(top - one.top) > STILL_PX && Math.abs(inside - one.inside) > STILL_PX) one.movedAt = performance.now();
  Object.assign(one, { top, inside });
}

function watch(element) {
  const one = { element, top: NaN, inside: NaN, movedAt: -AIMING_MS };
  look(one);
  watched.add(one);
  timer ||= setInterval(() => {
    if (!document.hidden) watched.forEach(look);
  }, SAMPLE_MS);
  return one;
}

function leave(one) {
  watched.delete(one);
  if (watched.size) return;
  clearInterval(timer);
  timer = 0;
}

/** Handlers for an element: a click on a button in it counts if that button was at rest below the pointer. */
export function useAim(element) {
  const pressed = useRef({ button: null, isMeant: false });
  const place = useRef(null);
  useLayoutEffect(() => {
    const one = watch(element.current);
    place.current = one;
    return () => leave(one);
  }, []);
  return {
    onPointerDownCapture: (event) => {
      look(place.current);
      pressed.current = { button: event.target.closest('button'), isMeant: performance.now() - place.current.movedAt > AIMING_MS };
    },
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
