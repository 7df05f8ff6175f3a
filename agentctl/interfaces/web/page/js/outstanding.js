// What was sent or asked for and has no answer yet: within a second the page says so, and later that it may be sent
// again.
import { html, useLayoutEffect } from './dom.js';
import { changed, useTopics } from './store.js';

const SHOWN_MS = 700;
const LONG_MS = 10_000;

/**
 * `again`: where that does nothing twice. `isSent`: it changes something; else it is only looked for. `isInDialog`: it
 * was begun in a dialog, and not below it. `isComing`: its answer has begun.
 * @typedef {{ path: string, sentAt: number, again: (() => void) | null, isSent: boolean, isInDialog: boolean,
 *   isComing: boolean }} Attempt
 */

/** @type {Set<Attempt>} */
const all = new Set();
/** Where attempts are shown beside their controls: by path, those of a dialog by ''. @type {Map<string, number>} */
const claims = new Map();

/**
 * Send something, once or, if a person wants that, several times: the first answer counts.
 * @template T
 * @param {string} path
 * @param {boolean} isRepeatable
 * @param {(begins: () => void) => Promise<T>} send tells when an answer begins that may take a while to come
 * @param {boolean} isSent whether it changes something
 * @returns {Promise<T>}
 */
export function attempt(path, isRepeatable, send, isSent = true) {
  return new Promise((resolve, reject) => {
    let open = 0;
    const tell = () => changed('outstanding');
    const begins = () => {
      one.isComing = true;
      tell();
    };
    const go = () => {
      open += 1;
      one.sentAt = Date.now();
      const timers = [setTimeout(tell, SHOWN_MS), setTimeout(tell, LONG_MS)];
      const end = () => {
        open -= 1;
        timers.forEach(clearTimeout);
      };
      const over = () => {
        all.delete(one);
        tell();
      };
      send(begins).then((found) => {
        end();
        over();
        resolve(found);
      }, (refusal) => {
        end();
        // Nothing was heard of this one: another may still come through.
        if (open && !refusal.status) return;
        over();
        reject(refusal);
      });
      tell();
    };
    /** @type {Attempt} */
    const one = {
      path, sentAt: 0, again: isRepeatable ? go : null, isSent, isInDialog: claims.has(''), isComing: false,
    };
    all.add(one);
    go();
  });
}

/**
 * Fetch what a person has asked for by a click or a key; nothing is lost if no answer comes.
 * @template T
 * @param {(begins: () => void) => Promise<T>} load see `attempt`
 * @returns {Promise<T>}
 */
export const waitedFor = (load) => attempt('looked for', false, load, false);

/** @param {Attempt} one */
const ageOf = (one) => Date.now() - one.sentAt;

/**
 * What has no answer yet, beside its control: that of a path; in a dialog (`of` is ''), what was begun there; and
 * without `of` all that nothing else shows.
 * @param {{ of?: string }} props
 */
export function Outstanding({ of }) {
  useTopics('outstanding');
  useLayoutEffect(() => {
    if (of === undefined) return undefined;
    claims.set(of, (claims.get(of) ?? 0) + 1);
    changed('outstanding');
    return () => {
      const left = (claims.get(of) ?? 1) - 1;
      if (left) claims.set(of, left);
      else claims.delete(of);
      changed('outstanding');
    };
  }, [of]);
  /** @param {Attempt} one */
  const isHere = (one) => {
    if (of || claims.has(one.path)) return one.path === of;
    return (one.isInDialog && claims.has('')) === (of === '');
  };
  const late = [...all].filter((one) => isHere(one) && ageOf(one) >= SHOWN_MS);
  if (!late.length) return null;
  const unheard = late.filter((one) => !one.isComing && ageOf(one) >= LONG_MS);
  const again = unheard.filter((one) => one.again);
  return html`<div class="outstanding" role="status">
    ${unheard.length ? html`<span>No answer yet.</span>` : html`<span class="quiet">${late.some((one) => one.isSent) ? 'Sending…' : 'Loading…'}</span>`}
    ${again.length > 0 && html`<button type="button" class="small" onClick=${() => again.forEach((one) => one.again?.())}>Try again</button>`}
    ${unheard.some((one) => one.isSent && !one.again) && html`<span class="quiet">It may have been done: look before you do it again.</span>`}
  </div>`;
}
