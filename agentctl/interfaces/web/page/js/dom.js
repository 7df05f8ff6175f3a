// What the page is drawn with: one place that names the vendored libraries.
import { Component, h, render } from '../vendor/preact.js';
import { useEffect as useLateEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact-hooks.js';
import htm from '../vendor/htm.js';

export const html = htm.bind(h);
export { h, render, useLayoutEffect, useMemo, useRef, useState };

const nothing = () => {};

/**
 * As the library has it, but over before the next thing is shown, whether that is another component or the same one
 * with other `deps`: the library ends it behind the next frame, when what scrolls, the window, and what modules hold
 * belong to the next view. No other module has the library's own (tests/page/eslint.config.mjs).
 * @param {() => void | (() => void)} begin
 * @param {readonly unknown[]} [deps]
 */
export function useEffect(begin, deps) {
  const end = useRef(nothing);
  useLateEffect(() => {
    end.current = begin() ?? nothing;
  }, deps);
  useLayoutEffect(() => () => {
    const ended = end.current;
    end.current = nothing;
    ended();
  }, deps);
}

/** What has the focus. */
export const focused = () => /** @type {HTMLElement | null} */ (document.activeElement);

/**
 * The first element of a part that fits.
 * @param {Element | null | undefined} part
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export const within = (part, selector) => part?.querySelector(selector) ?? null;

/** What scrolls. */
export const main = () => /** @type {HTMLElement} */ (document.getElementById('main'));

const MOVES = ['wheel', 'touchstart', 'pointerdown', 'keydown', 'popstate'];

/**
 * Tell whenever the reader goes on: nothing that comes later may take them back.
 * @param {() => void} tell
 * @param {AbortSignal} [over]
 */
export function onMove(tell, over) {
  for (const name of MOVES) addEventListener(name, tell, { capture: true, passive: true, signal: over });
}

/**
 * A component that is drawn again only if its `stamp` is another one.
 * @template {{ stamp: unknown }} Props
 * @param {(props: Props) => unknown} draw
 */
export function stamped(draw) {
  /** @extends {Component<Props>} */
  class Stamped extends Component {
    /** @param {Props} next */
    shouldComponentUpdate(next) {
      return next.stamp !== this.props.stamp;
    }

    /** @param {Props} props */
    render(props) {
      return draw(props);
    }
  }
  return Stamped;
}
