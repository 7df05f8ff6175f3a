// What a worker printed: follows, searches in what is here, marks a place.
import { get, getBlob, segments, workerPath } from './api.js';
import { html, main, useEffect, useRef, useState } from './dom.js';
import { useFollowing, usePolling, useScrollKeys } from './following.js';
import { LogChunks, LONG_LINE } from './log_chunks.js';
import { Loading, Problem } from './pieces.js';
import { plain, plainOutput } from './safe_text.js';
import { follow, reveal } from './scrolling.js';
import { say, sayRefusal } from './store.js';
import { bytes, clock } from './words.js';

/** @import { Chunk, Hit } from './log_chunks.js' */

const PAGE = 1 << 18;
const FIRST = 1 << 16;
/** So many characters are kept; the rest is in the file. */
const MOST = 16e6;
const MORE_OF_LINE = 16_384;
const LINE_PX = 19;
const WRAP = 'agentctl.wrap';

/**
 * The part of an output that is here; `begin` and `end` are bytes of its file.
 * @typedef {{ chunks: LogChunks, begin: number, end: number, size: number, ended: boolean, isLoading: boolean }} Known
 */

/** @param {string} line */
const shownLine = (line) => plainOutput(line.endsWith('\r') ? line.slice(0, -1) : line);

/** @param {{ task: string, instance: string, worker: Sent.Worker, asks: Asks }} props */
export function LogsTab({ task, instance, worker, asks }) {
  const [stream, setStream] = useState('stdout');
  return html`<${Log} key=${stream} stream=${stream} setStream=${setStream} task=${task} instance=${instance} worker=${worker} asks=${asks} />`;
}

/**
 * @param {{ stream: string, setStream: (stream: string) => void, task: string, instance: string,
 *   worker: Sent.Worker, asks: Asks }} props
 */
function Log({ stream, setStream, task, instance, worker, asks }) {
  const box = useRef(null);
  const state = useRef(/** @type {Known | null} */ (null));
  const [revision, setRevision] = useState(0);
  const [error, setError] = useState(null);
  const [isWrapped, setWrapped] = useState(localStorage.getItem(WRAP) !== 'no');
  const [needle, setNeedle] = useState('');
  const [found, setFound] = useState({ hits: /** @type {Hit[]} */ ([]), at: -1 });
  const field = useRef(null);
  const path = workerPath(task, instance, 'logs');
  const draw = () => setRevision((count) => count + 1);

  const begin = async () => {
    try {
      const page = await get(path, { stream, limit: FIRST });
      const chunks = new LogChunks();
      chunks.append(page.text);
      const { begin: from, end, size } = page;
      state.current = { chunks, begin: from, end, size, ended: page.ended && end >= size, isLoading: false };
      setError(null);
      draw();
    } catch (refusal) {
      setError(refusal);
    }
  };
  useEffect(() => {
    begin();
  }, [path, stream]);
  usePolling(async () => {
    const now = state.current;
    if (!now) {
      await begin();
      return 'nothing';
    }
    if (now.ended) return 'ended';
    if (!following.isFollowing && now.chunks.characters > 2 * MOST) return 'nothing'; // Until one follows again.
    const page = await get(path, { stream, from: now.end, limit: PAGE });
    now.end = page.end;
    now.size = page.size;
    now.ended = page.ended && page.end >= page.size;
    now.chunks.append(page.text);
    if (following.isFollowing && now.chunks.characters > MOST) await begin();
    else if (page.text || now.ended) draw();
    return page.text ? 'more' : now.ended ? 'ended' : 'nothing';
  }, [path, stream, worker.attempt]);
  const loadOlder = async () => {
    const now = state.current;
    if (!now || now.isLoading || now.begin <= 0 || now.chunks.characters > MOST) return;
    now.isLoading = true;
    try {
      const page = await get(path, { stream, before: now.begin, limit: PAGE });
      now.chunks.prepend(page.text);
      now.begin = page.begin;
      draw();
    } catch (refusal) {
      sayRefusal(refusal, 'Older lines');
    }
    now.isLoading = false;
  };
  const isFull = (state.current?.chunks.characters ?? 0) > MOST;
  const following = useFollowing({ box, revision: `${revision} ${isWrapped}`, onOlder: loadOlder, hasOlder: (state.current?.begin ?? 0) > 0 && !isFull });
  const toggleWrap = () => {
    localStorage.setItem(WRAP, isWrapped ? 'no' : 'yes');
    setWrapped(!isWrapped);
  };
  const mark = () => {
    state.current?.chunks.mark(clock(new Date().toISOString()));
    following.toEnd();
    draw();
  };
  useScrollKeys(following.toEnd, { wrap: toggleWrap, mark, filter: () => field.current?.select() });
  const download = async () => {
    try {
      const blob = await getBlob(`${path}/${segments(stream)}`);
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = `${instance}.${stream}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      if (state.current && blob.size < state.current.size) say(`The first ${bytes(blob.size)} of ${bytes(state.current.size)} were downloaded: all of it is in the worker's folder.`);
    } catch (refusal) {
      sayRefusal(refusal, 'Download');
    }
  };

  // Searching: in what is here; the hit is coloured without a change of the text.
  /** @param {string} text */
  const search = (text) => {
    setNeedle(text);
    const hits = state.current?.chunks.find(text, shownLine) ?? [];
    setFound({ hits, at: hits.length ? hits.length - 1 : -1 });
    if (hits.length) revealHit(hits[hits.length - 1], text);
    else CSS.highlights?.delete('found');
  };
  /** @param {number} by */
  const step = (by) => {
    if (!found.hits.length) return;
    const at = (found.at + by + found.hits.length) % found.hits.length;
    setFound({ ...found, at });
    revealHit(found.hits[at], needle);
  };
  /**
   * @param {Hit} hit
   * @param {string} text
   */
  const revealHit = (hit, text) => {
    following.leave();
    const element = box.current?.querySelector(`[data-chunk="${hit.chunk.id}"]`);
    const node = element?.querySelector('.text')?.firstChild;
    if (!node) return;
    reveal(element);
    requestAnimationFrame(() => {
      const before = hit.chunk.lines.slice(0, hit.line).reduce((sum, line) => sum + shownLine(line).length + 1, 0);
      const range = document.createRange();
      range.setStart(node, Math.min(node.length, before + hit.begin));
      range.setEnd(node, Math.min(node.length, before + hit.begin + text.length));
      if (CSS.highlights) CSS.highlights.set('found', new Highlight(range));
      const there = range.getBoundingClientRect();
      const seen = main().getBoundingClientRect();
      follow(there.top - seen.top - seen.height / 2);
      const log = box.current.parentElement;
      const isAside = there.left < seen.left + 20 || there.right > seen.right - 20;
      if (isAside) log.scrollLeft += there.left - seen.left - seen.width / 3;
    });
  };
  useEffect(() => () => CSS.highlights?.delete('found'), []);

  const now = state.current;
  return html`<div class="log-tools">
      <div class="switch" role="group" aria-label="Stream">${['stdout', 'stderr'].map((name) => html`<button type="button" key=${name} aria-pressed=${String(stream === name)} onClick=${() => setStream(name)}>${name}</button>`)}</div>
      <form class="find" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input ref=${field} type="search" placeholder="Search in what is loaded" aria-label="Search in what is loaded" value=${needle} autocomplete="off" spellcheck="false" onInput=${(event) => search(event.target.value)}
          onKeyDown=${(event) => {
            if (event.key === 'Enter') {
              event.preventDefault();
              step(event.shiftKey ? 1 : -1);
            } else if (event.key === 'Escape') {
              event.preventDefault();
              search('');
              field.current.blur();
            }
          }} />
        ${needle && html`<span class="quiet" role="status">${found.hits.length ? `${found.at + 1} of ${found.hits.length}` : 'not found'}</span>
          <button type="button" class="small" onClick=${() => step(-1)} aria-label="Hit above">↑</button><button type="button" class="small" onClick=${() => step(1)} aria-label="Hit below">↓</button>`}
      </form>
      <button type="button" class="small" aria-pressed=${String(isWrapped)} onClick=${toggleWrap}>Wrap</button>
      <button type="button" class="small" onClick=${mark}>Mark</button>
      <button type="button" class="small" onClick=${download}>Download${now?.size ? ` ${bytes(now.size)}` : ''}</button>
    </div>
    ${error && !now ? html`<${Problem} error=${error} />` : !now ? html`<${Loading} />` : html`
      ${now.begin > 0 && html`<p class="older"><button type="button" class="small" onClick=${loadOlder} disabled=${isFull}>${isFull ? 'That is as much as a page can hold: download the rest' : `Show older (${bytes(now.begin)} above)`}</button></p>`}
      <div class=${`log${isWrapped ? ' wrapped' : ''}`} tabindex="0" role="region" aria-label=${`${stream} of ${plain(instance)}`}>
        <div class="log-body foreign" ref=${box} style=${isWrapped ? {} : { minWidth: `${now.chunks.widest + 2}ch` }}>
          ${now.chunks.chunks.map((chunk) => html`<${ChunkRow} key=${chunk.id} chunk=${chunk} revision=${chunk.revision} />`)}
        </div>
      </div>
      ${!now.chunks.lines && html`<p class="quiet pad">${now.ended ? 'It has printed nothing here.' : 'It has printed nothing here yet.'}</p>`}
      ${now.ended && now.chunks.lines > 0 && html`<p class="quiet end-line">It has ended.</p>`}`}
    ${asks}
    ${!following.isFollowing && now && html`<button type="button" class="to-end" onClick=${following.toEnd}>↓ To the end</button>`}`;
}

/** @param {{ chunk: Chunk }} props */
function ChunkRow({ chunk }) {
  const [shown, setShown] = useState(LONG_LINE);
  const text = useRef({ revision: -1, value: '' });
  if (chunk.kind === 'mark') return html`<div class="mark" data-chunk=${chunk.id}><span>marked at ${chunk.at}</span></div>`;
  if (chunk.kind === 'long') {
    const [line] = chunk.lines;
    return html`<div class="chunk long-line" data-chunk=${chunk.id}><span class="text">${shownLine(line.slice(0, shown))}</span>${shown < line.length && html` <button type="button" class="small" onClick=${() => setShown(shown + MORE_OF_LINE)}>Show more of this line (${bytes(line.length - shown)})</button>`}</div>`;
  }
  if (text.current.revision !== chunk.revision) {
    text.current = { revision: chunk.revision, value: chunk.lines.map(shownLine).join('\n') };
  }
  return html`<div class="chunk" data-chunk=${chunk.id} style=${{ containIntrinsicHeight: `auto ${chunk.lines.length * LINE_PX}px` }}><span class="text">${text.current.value}</span></div>`;
}

