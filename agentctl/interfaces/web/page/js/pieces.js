// Small parts that many views show: a state's sign, a text of somebody else, a time that grows, an error.
import { get, isLate } from './api.js';
import { html, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { waitedFor } from './outstanding.js';
import { go } from './router.js';
import { plain } from './safe_text.js';
import { useConnection, useTopics } from './store.js';
import { duration, secondsSince, timeOf } from './words.js';

/**
 * The sign of a state, with words for those who do not see it.
 * @param {{ sign: StateSign }} props
 */
export function Sign({ sign }) {
  return html`<span class=${`sign ${sign.role}`}><span aria-hidden="true">${sign.glyph}</span><span class="unseen">${sign.words}</span></span>`;
}

/** @param {{ isOpen: boolean }} props */
export const Arrow = ({ isOpen }) => html`<span class="arrow" aria-hidden="true">${isOpen ? '▾' : '▸'}</span>`;

/**
 * A text that somebody else wrote: its direction stays its own.
 * @param {{ text: unknown, class?: string }} props
 */
export const Foreign = ({ text, class: name = '' }) => html`<span class=${`foreign ${name}`}>${plain(text)}</span>`;

/**
 * How long ago a time is, as it grows.
 * @param {{ at?: string | null }} props
 */
export function Since({ at }) {
  useTopics('now');
  return html`<span class="time">${duration(secondsSince(at), true)}</span>`;
}

/** @param {{ worker: Sent.Worker }} props */
export function WorkerTime({ worker }) {
  const [seconds, isGrowing] = timeOf(worker, Date.now());
  return isGrowing ? html`<${Growing} worker=${worker} />` : html`<span class="time">${duration(seconds)}</span>`;
}

/** @param {{ worker: Sent.Worker }} props */
function Growing({ worker }) {
  useTopics('now');
  return html`<span class="time">${duration(timeOf(worker, Date.now())[0], true)}</span>`;
}

/**
 * Where the next steps are taken.
 * @param {{ links: { href: string, text: string }[] }} props
 */
export const Links = ({ links }) => links.map(({ href, text }, at) => html`${at ? ', ' : ''}<a key=${href} href=${href}><${Foreign} text=${text} /></a>`);

/**
 * What was refused, where it was asked for.
 * @param {{ error: Refused | null, id?: string }} props
 */
export function Problem({ error, id = undefined }) {
  if (!error) return null;
  return html`<div class="problem" role="alert" id=${id}>
    <p><span aria-hidden="true">✗ </span><${Foreign} text=${error.message} /></p>
    ${error.hint && html`<p class="hint"><${Foreign} text=${error.hint} /></p>`}
    ${error.links?.length ? html`<p class="hint"><${Links} links=${error.links} /></p>` : ''}
  </div>`;
}

/** What stands in a list of workers before any are known. */
export function NotHere() {
  const { state } = useConnection();
  return html`<p class="quiet pad">${state === 'heard' ? 'Loading…' : 'Connecting…'}</p>`;
}

/** So long behind each try without an answer, while the server is heard, comes the next one; then there is none. */
const UNHEARD_PAUSES_MS = [0, 4000, 16_000, 64_000];

/**
 * Fetch what had no answer once more when the server is heard again. If it is heard all the time, that request alone is
 * lost: then there are a few more tries, ever later, and none of one that took too long.
 * @param {Refused | null} error that of the last try; of each another one
 * @param {() => void} load
 */
export function useHeardAgain(error, load) {
  const connection = useConnection();
  const wasOpen = useRef(false);
  const tries = useRef(0);
  const isOpen = connection.state === 'open';
  useEffect(() => {
    const isBack = isOpen && !wasOpen.current;
    wasOpen.current = isOpen;
    if (isBack || !error) tries.current = 0;
    const isOver = tries.current >= UNHEARD_PAUSES_MS.length || (isLate(error) && !isBack);
    if (!isOpen || error?.status !== 0 || isOver) return undefined;
    const timer = setTimeout(load, UNHEARD_PAUSES_MS[tries.current]);
    tries.current += 1;
    return () => clearTimeout(timer);
  }, [error, isOpen]);
}

/**
 * Fetch something now, and again whenever `again` is called.
 * @template T
 * @returns {{ data: T | null, error: Refused | null, isLoading: boolean, again: () => Promise<void> }}
 * @param {() => Promise<T>} load
 * @param {readonly unknown[]} deps where they change it is something else: what was there is gone
 * @param {number} [everyMs]
 * @param {readonly unknown[]} [news] where they change it may be other: what was there stays until that is known
 */
export function useFetched(load, deps, everyMs = 0, news = []) {
  const [state, setState] = useState(/** @type {Fetched<T>} */ ({ data: null, error: null, isLoading: true }));
  const current = useRef(null);
  const latest = useRef(load);
  latest.current = load;
  // Asking again and again would not make what is not there, nor a slow server faster.
  const isInVain = state.error?.status === 404 || isLate(state.error);
  const run = async () => {
    const token = {};
    current.current = token;
    try {
      const data = await latest.current();
      if (current.current === token) setState({ data, error: null, isLoading: false });
    } catch (error) {
      if (current.current === token) setState((was) => ({ data: was.data, error, isLoading: false }));
    }
    if (current.current === token) current.current = null;
  };
  useHeardAgain(state.error, run);
  useEffect(() => setState({ data: null, error: null, isLoading: true }), deps);
  useEffect(() => {
    run();
    return () => {
      current.current = null;
    };
  }, [...deps, ...news]);
  useEffect(() => {
    if (!everyMs || isInVain) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden && !current.current) run(); // A slow answer is waited for.
    }, everyMs);
    return () => clearInterval(timer);
  }, [...deps, ...news, everyMs, isInVain]);
  return { ...state, again: () => waitedFor(run) };
}

const AGAIN_MS = 3000;
/**
 * Ask the server for what the stream does not tell of, again and again: it may be there yet while it is removed.
 * @param {string} path
 * @param {boolean} isMissing whether the stream does not tell of it
 */
export function useMissing(path, isMissing) {
  const load = async () => (isMissing ? get(path) : null);
  const { data, error } = useFetched(load, [path, isMissing], isMissing ? AGAIN_MS : 0);
  return { data: error?.status === 404 ? null : data, error };
}

/** Says that something is fetched, but only where that takes a moment. */
export function Loading({ what = 'Loading' }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return isSlow ? html`<p class="quiet">${what}…</p>` : null;
}

/**
 * In the place of what is fetched, while it is not there.
 * @param {{ error: Refused | null, isLoading: boolean, what?: string }} props
 */
export function NotYet({ error, isLoading, what }) {
  return error ? html`<${Problem} error=${error} />` : isLoading ? html`<${Loading} what=${what} />` : null;
}

/**
 * The tabs of a view, each with an address of its own; changing the tab is not a step that leads back.
 * @param {{ label: string, names: string[], current: string, hrefOf: (name: string) => string,
 *   wordsOf: (name: string) => string | object, isEmpty?: (name: string) => boolean }} props `isEmpty`: there is
 *   nothing in a tab; it can be opened all the same
 */
export function Tabs({ label, names, current, hrefOf, wordsOf, isEmpty = () => false }) {
  const box = useRef(null);
  const [isMore, setMore] = useState('');
  /** To which sides there are more of them than there is room for. */
  const look = () => {
    if (!box.current) return; // It was told of behind the last frame.
    const { scrollLeft, scrollWidth, clientWidth } = box.current;
    setMore(`${scrollLeft > 4 ? 'more-before' : ''} ${scrollLeft < scrollWidth - clientWidth - 4 ? 'more-behind' : ''}`);
  };
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const here = box.current.querySelector('[aria-current]');
    if (here) box.current.scrollLeft = here.offsetLeft - (box.current.clientWidth - here.clientWidth) / 2;
  }, [current]);
  /** @param {On<MouseEvent, HTMLElement>} event */
  const click = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(event.currentTarget.getAttribute('href') ?? '', { isReplacing: true });
  };
  return html`<nav class=${`tabs ${isMore}`} aria-label=${label} ref=${box} onScroll=${look}>${names.map((name) => html`<a key=${name} class=${isEmpty(name) ? 'empty-tab' : ''} title=${isEmpty(name) ? 'There is nothing in it' : undefined} href=${hrefOf(name)} aria-current=${current === name ? 'page' : undefined} onClick=${click}>${wordsOf(name)}</a>`)}</nav>`;
}

/**
 * A command to be copied.
 * @param {{ text: string }} props
 */
export function Command({ text }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<span class="command"><code class="foreign">${plain(text)}</code>
    <button type="button" class="small" onClick=${copy} aria-label=${`Copy the command ${plain(text)}`}>${isCopied ? 'Copied' : 'Copy'}</button></span>`;
}

/**
 * Copy a text, also where the page may not use the clipboard (http from another machine).
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'unseen';
    (document.querySelector('dialog[open]') ?? document.body).append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
}
