// What a worker printed, as a terminal shows it: follows, goes to any place, searches in all of it, marks a place.
import { get, getBlob, segments, workerPath } from './api.js';
import { html, main, stamped, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useFollowing, usePolling, useScrollKeys } from './following.js';
import { waitedFor } from './outstanding.js';
import { Loading, NotYet, Problem, useFetched } from './pieces.js';
import { lastScroll, noteQuery, placeIn, route } from './router.js';
import { plain } from './safe_text.js';
import { reveal, upperEdge, useLastScroll, useScrolled } from './scrolling.js';
import { ShownRow } from './shown_rows.js';
import { isLive, say, sayRefusal } from './store.js';
import { BothStreams } from './text/both_streams.js';
import { RowWindow } from './text/row_window.js';
import { bytes, clock } from './words.js';

/**
 * @import { Chunk, Mark } from './text/row_window.js'
 * @typedef {{ task: string, instance: string, worker: Sent.Worker, asks: Asks }} Props
 * @typedef {Props & { path: string, tools: object, isRaw: boolean, isWrapped: boolean, toggleWrap: () => void,
 *   tell: (streams: Sent.LogStream[]) => void }} LogProps
 * @typedef {{ hits: Sent.LogHit[], looked: number, size: number, more: boolean }} Found
 */

const STREAMS = ['stdout', 'stderr'];
const PAGE = 1 << 16;
const FIRST = 1 << 16;
/** So much of each stream is here where both are. */
const OF_BOTH = 1 << 15;
const MOST_HITS = 10_000;
const ROW_PX = 19;
const WRAP = 'agentctl.wrap';
const TYPING_MS = 250;
const SCROLLING_MS = 200;

/**
 * Which stream opens: of a failed worker what it wrote to stderr, else the first one that has something.
 * @param {Sent.LogStream[]} streams
 * @param {boolean} isFailed
 */
function firstStream(streams, isFailed) {
  const filled = streams.filter((one) => one.size > 0).map((one) => one.stream);
  return isFailed && filled.includes('stderr') ? 'stderr' : filled[0] ?? 'stdout';
}

/** @param {Props} props */
export function LogsTab({ task, instance, worker, asks }) {
  const path = workerPath(task, instance, 'logs');
  const [chosen, choose] = useState(route.place.query.get('stream') ?? '');
  const [opened, setOpened] = useState('');
  const [streams, setStreams] = useState(/** @type {Sent.LogStream[]} */ ([]));
  const [isRaw, setRaw] = useState(false);
  const [isWrapped, setWrapped] = useState(localStorage.getItem(WRAP) !== 'no');
  const stream = [...STREAMS, 'both'].includes(chosen) ? chosen : opened;
  const isEmpty = !streams.some((one) => one.size > 0);
  const isFailed = worker.status === 'failed';
  // Whoever only follows has not chosen the stream: where the worker fails meanwhile, they see the one that says why.
  useEffect(() => {
    const { query } = route.place;
    if (isFailed && !isEmpty && !query.get('at') && !query.get('find')) setOpened(firstStream(streams, true));
  }, [isFailed, streams]);
  /** @param {Sent.LogStream[]} found */
  const tell = (found) => {
    // Until something is there, and unless somebody has chosen, it opens on whatever comes first.
    if (isEmpty) setOpened(firstStream(found, isFailed));
    if (JSON.stringify(found) !== JSON.stringify(streams)) setStreams(found);
  };
  const { error, isLoading } = useFetched(async () => {
    /** @type {Sent.LogPage} */
    const page = await get(path, { limit: 4 });
    tell(page.streams);
    return page;
  }, [path]);
  /** @param {string} name */
  const show = (name) => {
    noteQuery('stream', name);
    noteQuery('at', '');
    choose(name);
  };
  const toggleWrap = () => {
    localStorage.setItem(WRAP, isWrapped ? 'no' : 'yes');
    setWrapped(!isWrapped);
  };
  if (!stream) return html`<${NotYet} error=${error} isLoading=${isLoading} />${asks}`;
  const sizeOf = (/** @type {string} */ name) => streams.find((one) => one.stream === name)?.size ?? 0;
  const button = (/** @type {string} */ name, /** @type {boolean} */ isNothing, /** @type {string} */ size) => html`<button type="button" key=${name} class=${isNothing ? 'nothing' : ''} aria-pressed=${String(stream === name)} onClick=${() => show(name)}>${name}${size && html` <span class="size">${size}</span>`}</button>`;
  const tools = html`<div class="switch" role="group" aria-label="Stream">
      ${STREAMS.map((name) => button(name, !sizeOf(name), sizeOf(name) ? bytes(sizeOf(name)) : ''))}
      ${button('both', isEmpty, '')}
    </div>
    <button type="button" class="small" aria-pressed=${String(isWrapped)} onClick=${toggleWrap}>Wrap</button>
    <button type="button" class="small" aria-pressed=${String(isRaw)} title="The source, with its control characters spelled out" onClick=${() => setRaw(!isRaw)}>Raw</button>`;
  const View = stream === 'both' ? Both : Log;
  return html`<${View} key=${`${stream} ${isRaw}`} stream=${stream} path=${path} task=${task} instance=${instance} worker=${worker} asks=${asks} tools=${tools} tell=${tell} isRaw=${isRaw} isWrapped=${isWrapped} toggleWrap=${toggleWrap} />`;
}

/**
 * The row at the upper edge of what is seen.
 * @param {HTMLElement | null} box
 */
function topRow(box) {
  const edge = upperEdge();
  const isBelow = (/** @type {Element} */ one) => one.getBoundingClientRect().bottom > edge + 1;
  const chunk = [...(box?.children ?? [])].find(isBelow);
  const row = [...(chunk?.querySelectorAll('.printed') ?? [])].find(isBelow);
  return row instanceof HTMLElement ? Number(row.dataset.at) : null;
}

/** @param {LogProps & { stream: string }} props */
function Log({ stream, path, instance, worker, asks, tools, tell, isRaw, isWrapped, toggleWrap }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const state = useRef(/** @type {RowWindow | null} */ (null));
  const isLoading = useRef(false);
  /** Counts where one wanted to be: what is fetched for a place that nobody wants any more is not shown. */
  const turn = useRef({ number: 0, isOpen: false });
  const [revision, setRevision] = useState(0);
  const [error, setError] = useState(/** @type {Refused | null} */ (null));
  const [wanted] = useState(placeIn);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const draw = () => setRevision((count) => count + 1);
  /** @param {object} query @returns {Promise<Sent.LogPage>} */
  const page = async (query) => {
    const found = await get(path, { stream, rows: isRaw ? 'source' : 'shown', limit: PAGE, ...query });
    tell(found.streams);
    return found;
  };

  const leaveTurn = () => {
    turn.current = { number: turn.current.number + 1, isOpen: false };
  };
  /** @param {number} at */
  const windowAt = async (at) => {
    const found = new RowWindow(await page(at < 0 ? { limit: FIRST } : { from: at }));
    if (at >= 0 && found.begin > 0) found.prepend(await page({ before: found.begin, limit: FIRST }));
    return found;
  };
  /** Show the window with a place in it, or with the end; return whether it is there. @param {number} at */
  const load = async (at = -1) => {
    leaveTurn();
    const mine = turn.current;
    mine.isOpen = true;
    try {
      const found = await (state.current ? waitedFor(() => windowAt(at)) : windowAt(at)); // At first the view says it.
      if (turn.current !== mine) return false;
      state.current = found;
      setError(null);
      if (at >= 0) following.leave(); // However one has scrolled meanwhile: it is this place that one wants.
      draw();
      return true;
    } catch (refusal) {
      if (turn.current === mine && state.current) sayRefusal(refusal, 'Output');
      if (turn.current === mine) setError(refusal);
      return false;
    } finally {
      mine.isOpen = false;
    }
  };
  useEffect(() => {
    load(wanted).then((isThere) => {
      if (isThere && wanted >= 0) showRow(wanted, 'start');
    });
    return leaveTurn;
  }, [path, stream]);

  usePolling(async () => {
    const now = state.current;
    if (!now) {
      if (!turn.current.isOpen) await load(wanted);
      return 'nothing';
    }
    if (now.hasEnded) return 'ended';
    const from = now.end;
    if (now.isAtEnd) {
      const found = await page({ from });
      if (state.current !== now || now.end !== from) return 'nothing';
      const isNew = now.append(found);
      if (following.isFollowing) now.dropAbove();
      if (isNew || now.hasEnded) draw();
      return now.hasEnded ? 'ended' : isNew ? 'more' : 'nothing';
    }
    const { size, ended, streams } = await get(path, { stream, from, limit: 4 });
    tell(streams);
    if (size !== now.size) draw();
    now.size = size;
    return ended ? 'ended' : 'nothing';
  }, [path, stream, worker.attempt]);

  /** @param {boolean} isOlder */
  const loadMore = async (isOlder) => {
    const now = state.current;
    if (!now || isLoading.current) return;
    isLoading.current = true;
    try {
      const [begin, end] = [now.begin, now.end];
      const found = await waitedFor(() => page(isOlder ? { before: begin } : { from: end }));
      if (state.current === now && (isOlder ? now.begin === begin : now.end === end)) {
        if (isOlder) now.prepend(found);
        else now.append(found);
        if (isOlder) now.dropBelow();
        else now.dropAbove();
        draw();
      }
    } catch (refusal) {
      sayRefusal(refusal, isOlder ? 'Older lines' : 'Newer lines');
    }
    isLoading.current = false;
  };

  const now = state.current;
  const following = useFollowing({
    box, revision: `${revision} ${isWrapped}`, onOlder: () => loadMore(true), hasOlder: (now?.begin ?? 0) > 0,
    onNewer: () => loadMore(false), hasNewer: Boolean(now && !now.isAtEnd), startsAtEnd: wanted < 0,
  });
  const toFirst = async () => {
    following.leave();
    if (!state.current || state.current.begin === 0) leaveTurn();
    else if (!await load(0)) return;
    requestAnimationFrame(() => box.current && following.toBegin());
  };
  const toLast = async () => {
    if (!state.current || state.current.isAtEnd) leaveTurn();
    else if (!await load()) return;
    noteQuery('at', '');
    following.toEnd();
  };

  // The place is kept in the address, unless it is the end.
  const timer = useRef(0);
  useScrolled(() => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const at = topRow(box.current);
      if (at !== null) noteQuery('at', following.isFollowing ? '' : `${at}`);
    }, SCROLLING_MS);
  });
  useEffect(() => () => clearTimeout(timer.current), []);

  /**
   * Show the row at a place of the file.
   * @param {number} at
   * @param {'nearest' | 'center' | 'start'} block
   */
  const showRow = async (at, block) => {
    following.leave();
    const here = state.current;
    if (here && (at < here.begin || at >= here.end) && at < here.size && !await load(at)) return;
    const row = state.current?.rowAt(at);
    const go = () => {
      following.leave();
      reveal(box.current?.querySelector(`[data-at="${row?.at}"]`), block);
    };
    // What was never on the screen has an estimated height: by the second frame it has its own.
    requestAnimationFrame(() => {
      go();
      requestAnimationFrame(go);
    });
  };
  const search = useSearch({ path, stream, showRow, here: () => topRow(box.current) ?? 0 });

  const mark = () => {
    state.current?.mark(clock(new Date().toISOString()));
    following.toEnd();
    draw();
  };
  useScrollKeys(toLast, { first: toFirst, wrap: toggleWrap, mark, filter: () => field.current?.select() });
  const download = async () => {
    try {
      const { blob } = await waitedFor((begins) => getBlob(`${path}/${segments(stream)}`, {}, begins));
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = `${instance}.${stream}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      if (now && blob.size < now.size) say(`The first ${bytes(blob.size)} of ${bytes(now.size)} were downloaded: all of it is in the worker's folder.`);
    } catch (refusal) {
      sayRefusal(refusal, 'Download');
    }
  };

  return html`<div class="log-tools">${tools}
      <${SearchField} field=${field} search=${search} />
      <button type="button" class="small" onClick=${mark}>Mark</button>
      <button type="button" class="small" onClick=${download}>Download${now?.size ? ` ${bytes(now.size)}` : ''}</button>
    </div>
    ${error && !now ? html`<${Problem} error=${error} />` : !now ? html`<${Loading} />` : html`
      ${now.begin > 0 && html`<p class="older"><button type="button" class="small" onClick=${toFirst}>↑ To the beginning</button> <button type="button" class="small" onClick=${() => loadMore(true)}>Show older (${bytes(now.begin)} above)</button></p>`}
      <div class=${`log${isWrapped ? ' wrapped' : ''}`} tabindex="0" role="region" aria-label=${`${stream} of ${plain(instance)}`}>
        <div class="log-body foreign" ref=${box} style=${isWrapped ? {} : { minWidth: `${now.widest + 2}ch` }}>
          ${now.chunks.map((chunk, place) => html`<${ChunkRows} key=${chunk.key} chunk=${chunk} words=${search.words} current=${search.current} marks=${marksOf(now, place)}
            stamp=${`${chunk.stamp} ${search.words} ${search.current} ${now.marks.length}`} />`)}
        </div>
      </div>
      ${!now.chunks.length && html`<p class="quiet pad">${now.hasEnded ? 'It has printed nothing here.' : 'It has printed nothing here yet.'}</p>`}
      ${!now.isAtEnd && html`<p class="older"><button type="button" class="small" onClick=${() => loadMore(false)}>Show newer (${bytes(now.size - now.end)} below)</button></p>`}
      ${now.hasEnded && now.chunks.length > 0 && html`<p class="quiet end-line">It has ended.</p>`}`}
    ${asks}
    ${!following.isFollowing && now && html`<button type="button" class="to-end" onClick=${toLast}>↓ To the end</button>`}`;
}

/**
 * The marks that are drawn in a chunk: those below its first row, and above that of the next one.
 * @param {RowWindow} now
 * @param {number} place
 * @returns {Mark[]}
 */
function marksOf(now, place) {
  if (!now.marks.length) return [];
  const first = place ? now.chunks[place].rows[0].at : 0;
  const next = now.chunks[place + 1]?.rows[0].at ?? Infinity;
  return now.marks.filter(({ at }) => at > first && at <= next);
}

/** @typedef {{ chunk: Chunk, words: string, current: number, marks: Mark[], stamp: unknown }} ChunkProps */

const ChunkRows = stamped((/** @type {ChunkProps} */ { chunk, words, current, marks }) => {
  const left = [...marks];
  const drawn = [];
  const take = (/** @type {number} */ until) => {
    while (left.length && left[0].at <= until) drawn.push(html`<div class="mark" key=${`mark ${left[0].at} ${left.length}`}><span>marked at ${left.shift()?.words}</span></div>`);
  };
  for (const row of chunk.rows) {
    take(row.at);
    drawn.push(html`<${ShownRow} key=${row.at} row=${row} words=${words} isCurrent=${row.at === current} />`);
  }
  take(Infinity);
  return html`<div class="chunk" style=${{ containIntrinsicHeight: `auto ${chunk.rows.length * ROW_PX}px` }}>${drawn}</div>`;
});

/**
 * The search in all of a stream, in the server.
 * @param {{ path: string, stream: string, here: () => number,
 *   showRow: (at: number, block: 'nearest' | 'center' | 'start') => void }} options
 */
function useSearch({ path, stream, here, showRow }) {
  const [words, setWords] = useState(route.place.query.get('find') ?? '');
  const [found, setFound] = useState(/** @type {Found | null} */ (null));
  const [isRefused, setRefused] = useState(false);
  const [current, setCurrent] = useState(-1);
  const turn = useRef(0);
  const timer = useRef(0);
  /** @param {Sent.LogHit | undefined} hit */
  const show = (hit) => {
    if (!hit) return;
    setCurrent(hit.at);
    noteQuery('at', `${hit.at}`);
    showRow(hit.at, 'center');
  };
  /**
   * Find all, and go to the first one from a place on; of whoever comes back to one, only note which it is.
   * @param {string} text
   * @param {number} place
   */
  const look = async (text, place, isBack = false) => {
    turn.current += 1;
    const mine = turn.current;
    /** @type {Found} */
    let all = { hits: [], looked: 0, size: 0, more: true };
    let line = 1;
    let isThere = false;
    try {
      while (text && all.more && all.hits.length < MOST_HITS) {
        /** @type {Sent.LogHits} */
        const next = await get(`${path}/search`, { stream, words: text, from: all.looked, line });
        if (turn.current !== mine) return;
        all = { ...next, hits: [...all.hits, ...next.hits] };
        line = next.line;
        const first = all.hits.find((hit) => hit.at >= place) ?? (all.more ? undefined : all.hits[0]);
        if (!isThere && first && isBack) setCurrent(first.at);
        else if (!isThere) show(first);
        isThere ||= Boolean(first);
        setFound(all);
      }
    } catch (refusal) {
      if (turn.current !== mine) return;
      setRefused(true);
      sayRefusal(refusal, 'Search');
    }
  };
  /** @param {string} text */
  const type = (text) => {
    setWords(text);
    setFound(null);
    setRefused(false);
    setCurrent(-1);
    turn.current += 1;
    noteQuery('find', text);
    clearTimeout(timer.current);
    if (text) timer.current = window.setTimeout(() => look(text, here()), TYPING_MS);
  };
  useEffect(() => {
    const at = placeIn();
    if (words) look(words, Math.max(0, at), at >= 0);
    return () => {
      clearTimeout(timer.current);
      turn.current += 1;
    };
  }, []);
  /** @param {number} by */
  const step = (by) => {
    const hits = found?.hits ?? [];
    const place = hits.findIndex((hit) => hit.at === current);
    if (hits.length) show(hits[((place < 0 && by < 0 ? 0 : place) + by + hits.length) % hits.length]);
  };
  return { words, found, isRefused, current, type, step };
}

/** @param {{ field: Ref<HTMLInputElement | null>, search: ReturnType<typeof useSearch> }} props */
function SearchField({ field, search }) {
  const { words, found, isRefused, current, type, step } = search;
  return html`<form class="find" role="search" onSubmit=${(event) => event.preventDefault()}>
    <input ref=${field} type="search" placeholder="Search in all of it" aria-label="Search in all of it" value=${words} autocomplete="off" spellcheck="false" onInput=${(event) => type(event.target.value)}
      onKeyDown=${(event) => {
        if (event.key === 'Enter') {
          event.preventDefault();
          step(event.shiftKey ? -1 : 1);
        } else if (event.key === 'Escape') {
          event.preventDefault();
          type('');
          field.current?.blur();
        }
      }} />
    ${words && html`<span class="quiet" role="status">${found ? countWords(found, current) : isRefused ? 'not searched' : 'searching…'}</span>
      <button type="button" class="small" onClick=${() => step(-1)} aria-label="Hit above">↑</button><button type="button" class="small" onClick=${() => step(1)} aria-label="Hit below">↓</button>`}
  </form>`;
}

/**
 * @param {Found} found
 * @param {number} current
 */
function countWords(found, current) {
  const count = found.hits.length;
  const where = found.more ? `${bytes(found.looked)} of ${bytes(found.size)}` : bytes(found.size);
  if (!count) return found.more ? `nothing in ${where}…` : `not found in ${where}`;
  const place = found.hits.findIndex((hit) => hit.at === current);
  const hits = `${count.toLocaleString('en')}${found.more && count >= MOST_HITS ? '+' : ''} ${count === 1 ? 'line' : 'lines'}`;
  return `${place < 0 ? '' : `${place + 1} of `}${hits} in ${where}`;
}

/** @param {LogProps} props */
function Both({ path, instance, worker, asks, tools, tell, isRaw, isWrapped, toggleWrap }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const state = useRef(/** @type {BothStreams | null} */ (null));
  const [revision, setRevision] = useState(0);
  const [error, setError] = useState(/** @type {Refused | null} */ (null));
  const [ended, setEnded] = useState(false);
  const written = useRef(/** @type {Sent.LogStream[]} */ ([]));
  const draw = () => setRevision((count) => count + 1);
  /** @param {string} stream @param {object} query @returns {Promise<Sent.LogPage>} */
  const page = (stream, query) => get(path, { stream, rows: isRaw ? 'source' : 'shown', limit: OF_BOTH, ...query });
  const isBeginning = useRef(false);
  const begin = async () => {
    if (isBeginning.current) return;
    isBeginning.current = true;
    try {
      const pages = await Promise.all(STREAMS.map((stream) => page(stream, {})));
      const when = (/** @type {Sent.LogStream} */ one) => Date.parse(one.writtenAt ?? '1970-01-01');
      written.current = [...pages[0].streams].sort((one, other) => when(one) - when(other));
      const found = new BothStreams();
      const order = written.current.map((one) => one.stream);
      found.start(pages.sort((one, other) => order.indexOf(one.stream) - order.indexOf(other.stream)));
      state.current = found;
      setEnded(pages.every((one) => one.ended && one.end >= one.size));
      setError(null);
      draw();
    } catch (refusal) {
      setError(refusal);
    }
    isBeginning.current = false;
  };
  useEffect(() => {
    begin();
  }, [path]);
  usePolling(async () => {
    const now = state.current;
    if (ended) return 'ended';
    if (!now) {
      await begin();
      return 'nothing';
    }
    const pages = await Promise.all(STREAMS.map((stream) => page(stream, { from: now.ends[stream] ?? 0 })));
    tell(pages[0].streams);
    const isNew = pages.map((one) => now.take(one)).includes(true);
    const isOver = pages.every((one) => one.ended && one.end >= one.size);
    setEnded(isOver);
    if (isNew) draw();
    return isOver ? 'ended' : isNew ? 'more' : 'nothing';
  }, [path, worker.attempt, ended]);
  // Of what still grows no place is known that is left by then but its end.
  const [startsAtEnd] = useState(isLive(worker) || lastScroll() === undefined);
  const following = useFollowing({
    box, revision: `${revision} ${isWrapped}`, onOlder: () => {}, hasOlder: false, startsAtEnd,
  });
  useLastScroll(!startsAtEnd && state.current !== null);
  useScrollKeys(following.toEnd, { first: following.toBegin, wrap: toggleWrap });
  const now = state.current;
  useLayoutEffect(() => {
    if (following.isFollowing) main().scrollTop = main().scrollHeight;
  }, [revision]);
  const last = written.current.findLast((one) => one.size > 0)?.stream;
  const isKnown = written.current.filter((one) => one.size > 0).length < 2;
  return html`<div class="log-tools">${tools}</div>
    ${error && !now ? html`<${Problem} error=${error} />` : !now ? html`<${Loading} />` : html`
      <div class=${`log${isWrapped ? ' wrapped' : ''}`} tabindex="0" role="region" aria-label=${`both streams of ${plain(instance)}`}>
        <div class="log-body foreign" ref=${box}>
          ${now.past > 0 && !isKnown && html`<p class="quiet order" key="order">Nothing tells in which order these two came: they are shown one below the other. ${last} was written to last.</p>`}
          ${now.items.flatMap(({ stream, row, key }, place) => [
            (place === 0 || now.items[place - 1].stream !== stream) && html`<p class="quiet stream-name" key=${`${key} name`}>${stream}${place < now.past && now.isCut[stream] ? ', its end' : ''}</p>`,
            html`<${ShownRow} key=${key} row=${row} kind=${`from-${stream}`} />`,
          ])}
        </div>
      </div>
      ${!now.items.length && html`<p class="quiet pad">${ended ? 'It has printed nothing.' : 'It has printed nothing yet.'}</p>`}
      ${ended && now.items.length > 0 && html`<p class="quiet end-line">It has ended.</p>`}`}
    ${asks}
    ${!following.isFollowing && now && html`<button type="button" class="to-end" onClick=${following.toEnd}>↓ To the end</button>`}`;
}
