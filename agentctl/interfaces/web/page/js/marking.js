// Marking workers, in the list and in the tree: by a key, by the box before a name, a range by Shift and a click.
import { html, useLayoutEffect, useRef } from './dom.js';
import { useKeys } from './keys.js';
import { Marks } from './marks.js';
import { plain } from './safe_text.js';
import { about, changed, fleet, listen, partsOf, useTopics, whyNobody } from './store.js';

/**
 * Where workers can be marked: `order` has those that have a line, as they stand; `why` says why one is not shown by
 * the filter, and is empty of one that is, be it in a part that is folded.
 * @typedef {{ order: () => string[], why: (key: string) => string, filter: string }} MarkingView
 */

export const marks = new Marks();
const shown = { view: /** @type {MarkingView | null} */ (null) };
const NOT_HERE = 'not shown here';

listen('fleet', () => {
  if (marks.dropGone(fleet.workers)) changed('marks');
});

/** Whether what is done now is done to the marked ones: those are seen, and not one worker alone. */
export const areMarked = () => shown.view !== null && marks.size > 0;

/**
 * Why a worker is not among those that one sees; empty if it is.
 * @param {string} key
 */
export const whyHidden = (key) => (shown.view ? shown.view.why(key) : NOT_HERE);

export function unmarkAll() {
  marks.clear();
  changed('marks');
}

/**
 * @param {string} key
 * @param {boolean} isRange
 */
export function toggleMark(key, isRange = false) {
  marks.toggle(key, fleet.workers, isRange ? shown.view?.order() : []);
  changed('marks');
}

/**
 * Let workers be marked here, and by keys.
 * @param {MarkingView} view
 * @param {() => string | null} keyNow the worker under the cursor
 * @param {() => void} goOn
 */
export function useMarking(view, keyNow, goOn) {
  useTopics('marks');
  const own = useRef(view);
  Object.assign(own.current, view);
  useLayoutEffect(() => {
    shown.view = own.current;
    changed('marks');
    return () => {
      if (shown.view !== own.current) return;
      shown.view = null;
      changed('marks');
    };
  }, []);
  // What counts the hidden ones has asked the filter before.
  useLayoutEffect(() => changed('marks'), [view.filter]);
  useKeys({
    markLine: () => {
      const key = keyNow();
      if (about.readOnly) return 'this page may only look';
      if (!key || !fleet.workers.has(key)) return whyNobody();
      toggleMark(key);
      goOn();
      return true;
    },
    markAll: () => {
      if (about.readOnly) return 'this page may only look';
      const isMeant = (/** @type {string} */ key) => fleet.workers.get(key)?.need !== 'earlier' && !view.why(key);
      const keys = [...fleet.workers.keys()].filter(isMeant);
      if (!keys.length) return whyNobody('there is no worker to mark');
      marks.toggleAll(keys, fleet.workers);
      changed('marks');
      return true;
    },
  });
}

/** A click with Shift marks, and selects no text. */
export const noSelection = (/** @type {MouseEvent} */ event) => {
  if (event.shiftKey && !about.readOnly) event.preventDefault();
};

/**
 * The box before the name of a worker.
 * @param {{ workerKey: string, tab: number }} props
 */
export function MarkBox({ workerKey, tab }) {
  if (about.readOnly) return null;
  return html`<button type="button" class="mark-box" role="checkbox" aria-checked=${String(marks.has(workerKey))} aria-label=${`Mark ${plain(partsOf(workerKey)[1])}`} tabindex=${tab}
    onMouseDown=${noSelection} onClick=${(event) => toggleMark(workerKey, event.shiftKey)}></button>`;
}

/** How many are marked: read out by screen readers as it changes. */
export function MarkedCount() {
  useTopics('marks', 'fleet', 'chosen', 'route');
  const hidden = areMarked() ? marks.keys().filter(whyHidden).length : 0;
  return html`<span class="marked-count" role="status">${areMarked() && html`${marks.size.toLocaleString('en')} marked${hidden > 0 && `, ${hidden.toLocaleString('en')} hidden`}`}</span>`;
}
