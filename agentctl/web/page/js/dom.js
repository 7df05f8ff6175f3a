// What the page is drawn with: one place that names the vendored libraries.
import { Component, h, render } from '../vendor/preact.js';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact-hooks.js';
import htm from '../vendor/htm.js';

export const html = htm.bind(h);
export { render, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** What scrolls. */
export const main = () => document.getElementById('main');

/** A component that is drawn again only if its `stamp` is another one. */
export function stamped(draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return next.stamp !== this.props.stamp;
    }

    render(props) {
      return draw(props);
    }
  };
}
