// The events of a task, or of one worker of it: the last ones, those that come, and earlier ones on demand; each once.
import { get, segments } from './api.js';
import { html, stamped, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useScrollKeys } from './following.js';
import { waitedFor } from './outstanding.js';
import { Loading, Problem, useHeardAgain } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { isAtEnd, toEnd, topOf, upperEdge, useEnd, useScrolled } from './scrolling.js';
import { events, eventsSince, sayRefusal, useTopics } from './store.js';
import { inWords } from './text/fact_words.js';
import { useRowHeight, VirtualRows } from './virtual_rows.js';
import { clock, table } from './words.js';

const PAGE = 500;
/** More are dropped above while one follows; while one reads above, no more come then. */
const MOST = 6000;
const LAST = Number.MAX_SAFE_INTEGER;
const EARLIER_PX = 600;

/** More events that were missed than this are left out: one who follows is at the end, and finds them above. */
const MOST_MISSED = 4 * PAGE;

/**
 * The events that are here; `rows` grows at its end, and is another array where it does anything else.
 * `isBehind`: some may be missing at the end; `taken`: of those that came, so many are here.
 * @typedef {{ rows: Sent.Event[], hasPage: boolean, hasEarlier: boolean, error: Refused | null, isBehind: boolean,
 *   loads: number, epoch: number, taken: number, isBusy: boolean }} Known
 */

/**
 * What is known of the events: `rows` by seq without a gap, as far as `isBehind` does not say otherwise.
 * @param {string} task
 * @param {string | null} instance
 * @param {Ref<boolean>} follows
 */
function useEvents(task, instance, follows) {
  useTopics('events');
  const [, draw] = useState(0);
  const [now] = useState(/** @returns {Known} */ () => ({
    rows: [], hasPage: false, hasEarlier: false, error: null, isBehind: true, loads: 0, epoch: events.epoch,
    taken: events.count, isBusy: false,
  }));
  /**
   * @param {object} query
   * @returns {Promise<Sent.EventsPage>}
   */
  const load = (query) => get(`/tasks/${segments(task)}/events`, { ...query, instance, limit: PAGE });
  const mustLoad = () => {
    now.isBehind = true;
    now.loads += 1;
  };

  if (now.epoch !== events.epoch) {
    now.epoch = events.epoch;
    mustLoad();
  }
  // What comes while a page is fetched waits for it: it belongs behind that.
  if (!now.isBehind && (follows.current || now.rows.length < MOST)) {
    const came = eventsSince(now.taken);
    now.taken = events.count;
    if (came === null) mustLoad();
    else put(now, came.filter((one) => one.taskId === task && (!instance || one.agentInstance === instance)));
  }
  if (follows.current && now.rows.length > MOST) {
    now.rows = now.rows.slice(-MOST / 2);
    now.hasEarlier = true;
  }

  useEffect(() => {
    if (!now.isBehind) return undefined;
    let isOver = false;
    const catchUp = async () => {
      now.taken = events.count;
      try {
        for (let isMore = true, missed = 0; isMore && now.rows.length <= MOST; missed += PAGE) {
          if (missed >= MOST_MISSED && follows.current) {
            now.rows = [];
            now.hasPage = false;
          }
          const page = await load(now.hasPage ? { from: (now.rows.at(-1)?.seq ?? 0) + 1 } : { before: LAST });
          if (isOver) return;
          if (!now.hasPage) now.hasEarlier = page.earlier;
          now.hasPage = true;
          isMore = put(now, page.events) && page.more;
        }
        now.isBehind = false;
        now.error = null;
      } catch (error) {
        if (isOver) return;
        now.error = error;
      }
      draw((count) => count + 1);
    };
    catchUp();
    return () => {
      isOver = true;
    };
  }, [now.loads]);
  useHeardAgain(now.error, () => {
    mustLoad();
    draw((count) => count + 1);
  });

  const loadEarlier = async () => {
    if (now.isBusy || !now.hasEarlier || !now.rows.length) return;
    now.isBusy = true;
    try {
      const [first] = now.rows;
      const page = await waitedFor(() => load({ before: first.seq }));
      if (now.rows[0] === first) {
        now.rows = [...page.events, ...now.rows];
        now.hasEarlier = page.earlier && page.events.length > 0;
      }
      draw((count) => count + 1);
    } catch (refusal) {
      sayRefusal(refusal, 'Earlier events');
    }
    now.isBusy = false;
  };
  return { now, loadEarlier };
}

/**
 * Put events behind those that are known; return whether any of them is new.
 * @param {Known} now
 * @param {Sent.Event[]} came
 */
function put(now, came) {
  const last = now.rows.at(-1)?.seq ?? 0;
  const more = came.filter((one) => one.seq > last);
  for (const one of more) now.rows.push(one);
  return more.length > 0;
}

/** @param {{ task: string, instance?: string | null }} props */
export function EventsTab({ task, instance = null }) {
  const follows = useRef(true);
  const { now, loadEarlier } = useEvents(task, instance, follows);
  const rowHeight = useRowHeight(28, 64);
  const { rows } = now;
  const box = useRef(null);
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  }, [rows, rows.length]);
  useEnd(box, follows);
  useScrolled((isUp) => {
    follows.current = isAtEnd();
    if (isUp && upperEdge() - (topOf(box.current) ?? 0) < EARLIER_PX) loadEarlier();
  });
  useScrollKeys();
  if (now.error && !rows.length) return html`<${Problem} error=${now.error} />`;
  if (!rows.length) return now.isBehind ? html`<${Loading} />` : html`<div class="empty"><p>There are no events yet.</p></div>`;
  const total = now.hasEarlier ? -1 : rows.length;
  return html`<div class="events" ref=${box}>
    ${now.error && html`<${Problem} error=${now.error} />`}
    ${now.hasEarlier && html`<p class="older"><button type="button" class="small" onClick=${loadEarlier}>Earlier events</button></p>`}
    <${VirtualRows} keys=${rows} rowHeight=${rowHeight} role="list" aria-label="Events"
      render=${(index, style) => html`<${EventRow} key=${rows[index].seq} stamp=${`${style.top} ${total} ${rowHeight}`} event=${rows[index]} task=${task} style=${style} isNamed=${!instance} size=${total} position=${now.hasEarlier ? undefined : index + 1} />`} />
  </div>`;
}

const ROLES = table({ failed: 'failed', completed: 'completed', blocked: 'blocked', requested: 'blocked' });

/**
 * An event, which is never another one.
 * @typedef {{ event: Sent.Event, task: string, style: object, isNamed: boolean, size: number, position?: number,
 *   stamp: string }} EventProps
 */
const EventRow = stamped(/** @param {EventProps} props */ ({ event, task, style, isNamed, size, position }) => {
  const { agentInstance: _, ...payload } = event.payload ?? {};
  const text = inWords(payload);
  return html`<div class="event" role="listitem" style=${style} aria-setsize=${size} aria-posinset=${position}>
    <span class="seq">${event.seq}</span><time class="at" datetime=${event.ts}>${clock(event.ts)}</time>
    <span class=${`type foreign ${ROLES[String(event.type).split('.')[1]] ?? ''}`}>${plain(event.type ?? event.problem ?? '')}</span>
    ${isNamed && html`<span class="who">${event.agentInstance ? html`<a class="foreign" href=${workerHref(task, event.agentInstance)}>${plain(event.agentInstance)}</a>` : ''}</span>`}
    <span class="by foreign">${event.by && event.by !== 'agentctl' ? `by ${plain(event.by)}` : ''}</span>
    <span class="payload foreign" title=${plain(text.slice(0, 2000))}>${plain(text.slice(0, 1000))}</span></div>`;
});
