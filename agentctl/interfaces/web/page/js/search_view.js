// Where words occur in all tasks: titles, prompts, questions, what was said and printed.
import { get } from './api.js';
import { html, useLayoutEffect, useRef, useState } from './dom.js';
import { useKeys } from './keys.js';
import { Foreign, Loading, Problem, useFetched } from './pieces.js';
import { go, taskHref, workerHref } from './router.js';
import { plain } from './safe_text.js';
import { wordsOf } from './filtering.js';
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

/** @param {{ place: Place }} props */
export function SearchView({ place }) {
  const query = place.query.get('q') ?? '';
  const logs = place.query.get('logs') === 'true';
  const [text, setText] = useState(query);
  const field = useRef(null);
  const list = useRef(null);
  useLayoutEffect(() => setText(query), [query]);
  useLayoutEffect(() => {
    if (!query) field.current?.focus();
  }, []);
  const words = wordsOf(query).map((word) => (word.isNegated ? `-${word.text}` : word.text));
  const { data, error, isLoading } = useFetched(async () => (query.trim() ? search(words, logs) : null), [query, logs]);
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
  /** @param {number} by */
  const move = (by) => {
    const links = [...(list.current?.querySelectorAll('a') ?? [])];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
    return links.length > 0;
  };
  useKeys({ down: () => move(1), up: () => move(-1) });
  const hits = data ?? [];
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
    ${!query && html`<div class="empty"><p class="quiet">The newest task comes first. Quotes hold several words together.</p></div>`}
    ${hits.length > 0 && html`<p class="quiet" role="status">${counted(hits.filter((hit) => !hit.more).length, 'hit')}</p>
      <ul class="hits" ref=${list}>${hits.map((hit, at) => html`<li key=${at}><${Hit} hit=${hit} /></li>`)}</ul>`}`;
}

/** @param {{ hit: Sent.Hit }} props */
function Hit({ hit }) {
  const tab = TAB_OF[hit.source] ?? '';
  const where = hit.agentInstance ? workerHref(hit.taskId, hit.agentInstance, tab) : taskHref(hit.taskId);
  const name = html`<span class="where"><span class="name foreign">${plain(hit.agentInstance ?? hit.taskId)}</span>${hit.agentInstance && html` <span class="source foreign">${plain(hit.taskId)}</span>`}</span>`;
  if (hit.more) return html`<a href=${where}>${name}<span class="quiet">${counted(hit.more, 'more hit')} of this worker</span></a>`;
  const { excerpt = '', begin = 0, end = 0 } = hit;
  const letters = [...excerpt];
  return html`<a href=${where}>${name}
    <span class="excerpt foreign">${plain(letters.slice(0, begin).join(''))}<mark>${plain(letters.slice(begin, end).join(''))}</mark>${plain(letters.slice(end).join(''))}</span>
    <span class="at">${plain(hit.source)} · ${clock(hit.at, false)}</span></a>`;
}
