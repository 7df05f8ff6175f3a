// Where words occur in all tasks: titles, prompts, questions, what was said and printed.
import { get } from './api.js';
import { html, main, useEffect, useLayoutEffect, useMemo, useRef, useState, within } from './dom.js';
import { useKeys } from './keys.js';
import { Foreign, Loading, Problem, useFetched } from './pieces.js';
import { excerptFor } from './excerpts.js';
import { termsOf } from './filtering.js';
import { go, taskHref, workerHref } from './router.js';
import { plain } from './safe_text.js';
import { reveal, useLastScroll } from './scrolling.js';
import { foundWords } from './text/found_places.js';
import { useRowHeight, VirtualRows } from './virtual_rows.js';
import { clock, counted, table } from './words.js';

/** @import { Place } from './places.js' */

const TAB_OF = table({
  question: 'questions', answer: 'questions', said: 'transcript', thought: 'transcript', received: 'transcript',
  called: 'transcript', note: 'transcript', reported: 'transcript', result: 'result', failure: 'why', stdout: 'output',
  stderr: 'output', prompt: 'details', command: 'details',
});

/**
 * The hits; where there are none, the server says so as of anything that is not there.
 * @param {string[]} terms
 * @param {boolean} logs
 * @returns {Promise<Sent.Hit[]>}
 */
async function search(terms, logs) {
  try {
    return await get('/search', { terms, logs: logs || null });
  } catch (refusal) {
    if (refusal.status === 404) return [];
    throw refusal;
  }
}

/** How wide a letter of an excerpt is, and what of a line it does not have: see fleet.css. */
const LETTER_PX = 7.9;
const BESIDE_PX = 250 + 170 + 40;
const NARROW_PX = 640;

/** How many letters of an excerpt there is room for: in one line, or in two of a narrow page. */
function useLetters() {
  const [width, setWidth] = useState(() => main()?.clientWidth ?? innerWidth);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    observer.observe(main());
    return () => observer.disconnect();
  }, []);
  const room = width > NARROW_PX ? Math.min(width, 1240) - BESIDE_PX : 2 * (width - 24);
  return Math.max(40, Math.floor(room / LETTER_PX));
}

/** @param {{ place: Place }} props */
export function SearchView({ place }) {
  const query = place.query.get('q') ?? '';
  const logs = place.query.get('logs') === 'true';
  const [text, setText] = useState(query);
  const field = useRef(null);
  const list = useRef(null);
  const cursor = useRef({ at: -1, isWanted: false });
  const [, draw] = useState(0);
  const rowHeight = useRowHeight(37, 76);
  const letters = useLetters();
  useLayoutEffect(() => setText(query), [query]);
  useLayoutEffect(() => {
    if (!query) field.current?.focus();
  }, []);
  const words = useMemo(() => termsOf(query), [query]);
  const { data, error, isLoading } = useFetched(async () => (words.length ? search(words, logs) : null), [query, logs]);
  /**
   * @param {string} value
   * @param {boolean} withLogs
   */
  const goTo = (value, withLogs) => {
    const found = new URLSearchParams();
    if (value) found.set('q', value);
    if (withLogs) found.set('logs', 'true');
    go(`/search?${found}`, { isReplacing: !query });
  };
  const hits = data ?? NONE;
  const keys = useMemo(() => hits.map((_, at) => at), [hits]);
  useLayoutEffect(() => {
    cursor.current.at = -1;
  }, [hits]);
  useLastScroll(hits.length > 0, () => {
    const at = left.query === place.query.toString() ? hits.findIndex((hit) => keyOf(hit) === left.hit) : -1;
    if (at >= 0) moveTo(at);
  });
  // A row that nobody sees is drawn first, and then gets the focus.
  useLayoutEffect(() => {
    const link = cursor.current.isWanted ? within(list.current, `[data-hit="${cursor.current.at}"]`) : null;
    if (!link) return;
    cursor.current.isWanted = false;
    link.focus({ preventScroll: true });
    reveal(link);
  });
  /** @param {number} to */
  const moveTo = (to) => {
    if (!hits.length) return false;
    cursor.current = { at: Math.max(0, Math.min(hits.length - 1, to)), isWanted: true };
    draw((count) => count + 1);
    return true;
  };
  useKeys({
    down: () => moveTo(cursor.current.at + 1),
    up: () => moveTo(cursor.current.at - 1),
    first: () => moveTo(0),
    last: () => moveTo(hits.length - 1),
  });
  return html`<h1 class="unseen">Search</h1>
    <form class="search-form" role="search" onSubmit=${(event) => {
      event.preventDefault();
      goTo(text.trim(), logs);
    }}>
      <input id="search-text" ref=${field} type="search" value=${text} placeholder="Words in titles, prompts, questions, transcripts and results" aria-label="Search all tasks" onInput=${(event) => setText(event.target.value)} autocomplete="off" autocapitalize="none"
        onKeyDown=${(event) => {
          if (event.key === 'Escape') field.current.blur();
        }} />
      <label class="check"><input type="checkbox" checked=${logs} onChange=${(event) => goTo(text.trim(), event.target.checked)} /><span>Raw output too</span></label>
      <button class="primary">Search</button>
    </form>
    <${Problem} error=${error} />
    ${query && isLoading && html`<${Loading} what="Searching" />`}
    ${query && data && !hits.length && html`<div class="empty"><p>Nothing has <strong><${Foreign} text=${query} /></strong>.</p>${!logs && html`<p class="quiet">What commands printed is searched with “Raw output too”.</p>`}</div>`}
    ${!words.length && html`<div class="empty"><p class="quiet">The newest task comes first. Quotes hold several words together.</p></div>`}
    ${hits.length > 0 && html`<p class="quiet" role="status">${foundWords(hits)}</p>
      <div class="hits" ref=${list} onFocusIn=${(event) => {
        const at = Number(event.target.closest('[data-hit]')?.dataset.hit ?? -1);
        cursor.current.at = at;
        Object.assign(left, { query: place.query.toString(), hit: at < 0 ? '' : keyOf(hits[at]) });
      }}><${VirtualRows} keys=${keys} rowHeight=${rowHeight} role="list" aria-label="Hits" keep=${[cursor.current.at]}
        render=${(index, style) => html`<div key=${index} class="hit" role="listitem" style=${style} aria-posinset=${index + 1} aria-setsize=${hits.length}>
          <${Hit} hit=${hits[index]} at=${index} letters=${letters} words=${words} /></div>`} /></div>`}`;
}

/** @type {Sent.Hit[]} */
const NONE = [];
/** The hit that one was at last, and in which search: whoever comes back to that is there again. */
const left = { query: '', hit: '' };

/**
 * Which hit it is, wherever it stands in a list: a text without a place in a file is told by what it says.
 * @param {Sent.Hit} hit
 */
const keyOf = (hit) => JSON.stringify(
  [hit.taskId, hit.agentInstance, hit.source, hit.at, hit.offset ?? hit.excerpt],
);

/**
 * Where a hit is: in a text of which the server says the place, at that place, and what is to be marked there: what
 * was found, and the other words of the search. An output has its own search, for one text.
 * @param {Sent.Hit} hit
 * @param {string[]} words
 */
function hrefOf({ taskId, agentInstance, source, offset, excerpt, begin, end }, words) {
  if (!agentInstance) return taskHref(taskId);
  const place = new URLSearchParams();
  if (offset != null) place.set('at', String(offset));
  const tab = TAB_OF[source] ?? '';
  if (tab === 'output') place.set('stream', source);
  const found = [...(excerpt ?? '')].slice(begin ?? 0, end ?? 0).join('');
  if (tab && found) place.append('find', found);
  const isOther = (/** @type {string} */ word) => !found.toLowerCase().includes(word.toLowerCase());
  if (found && tab !== 'output') words.filter(isOther).forEach((word) => place.append('find', word));
  const query = String(place);
  return workerHref(taskId, agentInstance, tab) + (query ? `?${query}` : '');
}

/** @param {{ hit: Sent.Hit, at: number, letters: number, words: string[] }} props */
function Hit({ hit, at, letters, words }) {
  const where = hrefOf(hit, words);
  const name = html`<span class="where"><span class="name foreign">${plain(hit.agentInstance ?? hit.taskId)}</span>${hit.agentInstance && html` <span class="source foreign">${plain(hit.taskId)}</span>`}</span>`;
  if (hit.more) return html`<a href=${where} data-hit=${at}>${name}<span class="quiet">${counted(hit.more, 'more line')} of this worker</span></a>`;
  const [before, found, after] = excerptFor(hit, letters);
  return html`<a href=${where} data-hit=${at}>${name}
    <span class="excerpt foreign">${plain(before)}<mark>${plain(found)}</mark>${plain(after)}</span>
    <span class="at">${plain(hit.source)} · ${clock(hit.at, false)}</span></a>`;
}
