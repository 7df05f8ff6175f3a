// Workers by need: who needs a person is on top, with what it asks. What has the pointer or the focus does not move.
import { html, useEffect, useLayoutEffect, useRef, useState, within } from './dom.js';
import { actionsFor, markSeen, sendToWorker } from './actions.js';
import { filterOf } from './filtering.js';
import { keepHere, keptHere, ofEachRoot } from './kept.js';
import { useKeys } from './keys.js';
import { MarkBox, marks, noSelection, toggleMark, useMarking } from './marking.js';
import { Arrow, Foreign, NotHere, Sign, WorkerTime } from './pieces.js';
import { cardKey, openQuestions, QuestionCard, questionKeys } from './question_card.js';
import { go, route, workerHref } from './router.js';
import { plain } from './safe_text.js';
import { follow, reveal, useLastScroll, useScrolled, useStaying } from './scrolling.js';
import { about, changed, fleet, partsOf, sending, useTopics, whyNobody } from './store.js';
import { costWords, NEEDS, saidOf, shortNumber, signOf, tokensOf } from './words.js';
import { useRowHeight, VirtualRows } from './virtual_rows.js';
import { useWorkerKeys } from './worker_keys.js';

/**
 * @import { Actions } from './keys.js'
 * @import { Rank } from './need_order.js'
 */

/** So many questions are open at once; those behind them are rows until one comes to them. */
const MOST_CARDS = 20;
const STILL_MS = 120;

/** How high rows are, so that the list comes back with its place. */
const heights = new Map();

/** What is over: folded at first, and open while there is a filter. */
/** @type {Sent.Need[]} */
const OVER = ['done', 'earlier'];
/** What a person has chosen to see, kept while the page is. */
export const chosen = { cursor: '' };
/** What is folded, kept by the tab. @type {() => Map<Sent.Need, boolean>} */
const foldedGroups = ofEachRoot(() => new Map(keptHere('folded', OVER.map((need) => [need, true]))));

/**
 * The line under the pointer and the one with the focus stay where they are.
 * @type {{ pointer: Rank | null, focus: Rank | null }}
 */
const held = { pointer: null, focus: null };

export function NeedsView({ scope = null, emptyWords = 'No worker has been started yet.' }) {
  useTopics('fleet', 'chosen', 'route');
  const rowHeight = useRowHeight();
  const box = useRef(null);
  const shows = filterOf(route.filter);
  const isIn = scope ? scopeOf(scope) : null;
  /** @param {string} key */
  const whyHidden = (key) => {
    const worker = fleet.workers.get(key);
    if (!worker) return 'gone';
    if (isIn && !isIn(worker.taskId)) return 'in another task';
    return !shows || shows(worker, fleet.tasks.get(worker.taskId)) ? '' : 'hidden by the filter';
  };
  /** @param {string} key */
  const showsKey = (key) => !whyHidden(key);
  const ranks = [...new Map([held.pointer, held.focus].flatMap((one) => (one ? [[one.key, one]] : []))).values()];
  const groups = fleet.order.shown(showsKey, ranks.filter((rank) => !isIn || isIn(partsOf(rank.key)[0])));
  /** What was folded and unfolded since there is a filter. @type {Ref<Map<Sent.Need, boolean>>} */
  const filtered = useRef(new Map());
  if (!shows) filtered.current.clear();
  /** @param {Sent.Need} need */
  const isFolded = (need) => {
    const isKept = Boolean(foldedGroups().get(need));
    return shows ? filtered.current.get(need) ?? (isKept && !OVER.includes(need)) : isKept;
  };
  /** @param {Sent.Need} need */
  const toggle = (need) => {
    const next = !isFolded(need);
    if (shows) filtered.current.set(need, next);
    else keepHere('folded', [...foldedGroups().set(need, next)]);
    changed('chosen');
  };

  /** @param {string} key */
  const isHeld = (key) => ranks.some((rank) => rank.key === key);
  /** @type {Map<Sent.Need, Rank[]>} */
  const visible = new Map();
  for (const [need] of NEEDS) {
    const all = groups.get(need) ?? [];
    const isAlways = (/** @type {Rank} */ { key }) => isHeld(key) || (need === 'done' && hasFailed(key));
    visible.set(need, isFolded(need) ? all.filter(isAlways) : all);
  }
  const rankOfKey = new Map([...visible.values()].flat().map((rank) => [rank.key, rank]));
  const keys = [...rankOfKey.keys()];
  /** @param {string} key */
  const rankNow = (key) => rankOfKey.get(key) ?? fleet.order.ranks.get(key) ?? null;

  const focusOn = useKeepPlace(box, keys);
  /** @param {string | null} key */
  const pointAt = (key) => {
    if (held.pointer?.key === key) return;
    held.pointer = key ? rankNow(key) : null;
    changed('chosen');
  };
  const pointer = usePointer(box, pointAt);
  /** @param {On<Event, Element>} event */
  const keyAt = (event) => keyOf(event.target);
  /** @param {On<FocusEvent, HTMLElement>} event */
  const onFocus = (event) => {
    const key = keyAt(event);
    if (!key) return;
    if (held.focus?.key !== key) held.focus = rankNow(key);
    if (chosen.cursor !== key) {
      chosen.cursor = key;
      changed('chosen');
    }
  };
  /** @param {On<FocusEvent, HTMLElement>} event */
  const onBlur = (event) => {
    const next = /** @type {Element | null} */ (event.relatedTarget);
    if (event.currentTarget.contains(next) && keyOf(next) === held.focus?.key) return;
    if (document.querySelector('dialog[open]')) return;
    held.focus = null;
    changed('chosen');
  };
  useEffect(() => () => {
    held.focus = null;
    held.pointer = null;
  }, []);

  /** @param {number} to */
  const move = (to) => {
    if (keys.length) focusOn(keys[Math.max(0, Math.min(keys.length - 1, to))]);
  };
  const at = () => keys.indexOf(chosen.cursor);
  const isFocusIn = () => box.current?.contains(document.activeElement);
  const keyNow = () => (keys.includes(chosen.cursor) ? chosen.cursor : null);
  useKeys({
    down: () => move(at() + (isFocusIn() || at() < 0 ? 1 : 0)),
    up: () => move(Math.max(0, at() - (isFocusIn() ? 1 : 0))),
    first: () => move(0),
    last: () => move(keys.length - 1),
    open: () => {
      const key = keyNow();
      if (!key) return whyNobody();
      go(workerHref(...partsOf(key)));
      return true;
    },
    ...withNext(questionKeys(() => {
      const key = keyNow();
      const [first] = asksOf(key);
      return key && first && cardKey(key, first);
    }, () => {
      const key = keyNow();
      return key ? `${partsOf(key)[1]} asks nothing` : whyNobody();
    }), () => {
      const key = keyNow();
      const next = keys.slice(at() + 1).find((one) => asksOf(one).length && rankOfKey.get(one)?.need === 'needs_you');
      return asksOf(key).length > 1 ? key : next;
    }, focusOn),
  });
  useMarking({ order: () => keys, why: whyHidden, filter: route.filter }, keyNow, () => move(at() + 1));
  useWorkerKeys(keyNow);

  useLastScroll(fleet.isKnown, () => {
    if (chosen.cursor) focusOn(chosen.cursor, true);
  });

  if (!fleet.isKnown) return html`<${NotHere} />`;
  /** @param {Sent.Need} need */
  const cursorAt = (need) => {
    /** @type {number[]} */
    const found = [];
    visible.get(need)?.forEach((rank, index) => {
      if (rank.key === chosen.cursor || isHeld(rank.key)) found.push(index);
    });
    return found;
  };
  const firstKey = keys.includes(chosen.cursor) ? chosen.cursor : keys[0];
  const total = fleet.workers.size;
  const isNothing = NEEDS.every(([need]) => !(groups.get(need) ?? []).length);
  const hasTasks = new Set([...fleet.workers.values()].map((worker) => worker.taskId)).size > 1 && !scope;

  return html`<div class="needs" ref=${box} onFocusIn=${onFocus} onFocusOut=${onBlur}
      onPointerMove=${pointer} onPointerOver=${pointer} onPointerLeave=${pointer}
      onPointerDown=${(event) => {
        if (event.pointerType === 'mouse') return;
        pointAt(keyAt(event));
        setTimeout(() => pointAt(null), 1500);
      }}>
    <div class="spacer" aria-hidden="true"></div>
    ${fleet.isPartial && html`<p class="quiet pad">Not all workers are here: some files could not be read.</p>`}
    ${isNothing && html`<div class="empty"><p>${shows && total ? 'No worker fits the filter.' : emptyWords}</p>
      ${!shows && html`<p class="quiet">Press <kbd>n</kbd>, or “New worker”, to start one.</p>`}</div>`}
    ${NEEDS.map(([need, words]) => {
      const all = groups.get(need) ?? [];
      if (!all.length) return null;
      const rows = visible.get(need) ?? [];
      const cards = need === 'needs_you' ? MOST_CARDS : 0;
      const failed = need === 'done' ? all.filter((rank) => hasFailed(rank.key)).length : 0;
      return html`<section key=${need} class=${`group ${need}`} aria-labelledby=${`group-${need}`}>
        <h2 id=${`group-${need}`}><button type="button" class="fold" aria-expanded=${String(!isFolded(need))} onClick=${() => toggle(need)}><${Arrow} isOpen=${!isFolded(need)} />${words} <span class="count">${all.length.toLocaleString('en')}</span></button>
        ${failed > 0 && html`<span class="failed-count">${failed.toLocaleString('en')} failed</span>`}</h2>
        ${need === 'needs_you' && html`<${Asking} ranks=${rows.slice(0, cards)} firstKey=${firstKey} hasTasks=${hasTasks} />`}
        <${VirtualRows} keys=${rows.slice(cards).map((rank) => rank.key)} rowHeight=${rowHeight} heights=${heights} role="list" aria-labelledby=${`group-${need}`}
          keep=${cursorAt(need).map((index) => index - cards)}
          render=${(index, style) => {
            const rank = rows[index + cards];
            return html`<${Row} key=${rank.key} rankKey=${rank.key} style=${style} isFirst=${rank.key === firstKey} isCursor=${rank.key === chosen.cursor} hasTasks=${hasTasks}
              position=${index + 1} size=${rows.length} worker=${fleet.workers.get(rank.key)} />`;
          }} />
      </section>`;
    })}
  </div>`;
}

/**
 * The worker in whose line something is.
 * @param {Element | null} element
 */
function keyOf(element) {
  /** @type {HTMLElement | null | undefined} */
  const line = element?.closest('[data-key]');
  return line?.dataset.key ?? null;
}

/** @param {string} key */
const hasFailed = (key) => fleet.workers.get(key)?.status === 'failed';

/** @param {string | null} key */
const asksOf = (key) => (key ? openQuestions(key, fleet.workers.get(key)) : []);

/**
 * Tells which line the mouse is over; not while the list is scrolled below it, which would be a line per frame.
 * @param {Ref<HTMLElement>} box
 * @param {(key: string | null) => void} pointAt
 */
function usePointer(box, pointAt) {
  const state = useRef({ x: -1, y: -1, scrolledAt: 0, timer: 0 });
  const tell = useRef(pointAt);
  tell.current = pointAt;
  const look = () => {
    const { x, y } = state.current;
    const element = x < 0 ? null : document.elementFromPoint(x, y);
    tell.current(box.current?.contains(element) ? keyOf(element) : null);
  };
  useScrolled(() => {
    state.current.scrolledAt = performance.now();
    clearTimeout(state.current.timer);
    state.current.timer = setTimeout(look, STILL_MS);
  });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  /** @param {On<PointerEvent, Element>} event */
  return (event) => {
    if (event.pointerType !== 'mouse') return;
    const isGone = event.type === 'pointerleave';
    Object.assign(state.current, isGone ? { x: -1, y: -1 } : { x: event.clientX, y: event.clientY });
    if (performance.now() - state.current.scrolledAt < STILL_MS) return;
    tell.current(isGone ? null : keyOf(event.target));
  };
}

/**
 * After an answer by a key the next question has the focus.
 * @param {Actions} actions
 * @param {() => string | null | undefined} nextKey
 * @param {(key: string) => unknown} focusOn
 */
function withNext(actions, nextKey, focusOn) {
  return {
    ...actions,
    /** @param {KeyboardEvent} event */
    digit: (event) => {
      const before = sending.size;
      const next = nextKey();
      const came = actions.digit(event);
      if (came !== true) return came;
      if (sending.size > before && next) focusOn(next);
      return true;
    },
  };
}

/**
 * Whether a task is this one or below it.
 * @param {string} task
 */
function scopeOf(task) {
  /** @type {Map<string, boolean>} */
  const known = new Map();
  /** @param {string} id */
  return (id) => {
    const found = known.get(id);
    if (found !== undefined) return found;
    /** @type {string | null | undefined} */
    let name = id;
    const seen = new Set();
    while (name && name !== task && !seen.has(name)) {
      seen.add(name);
      name = fleet.tasks.get(name)?.parent;
    }
    known.set(id, name === task);
    return name === task;
  };
}

/**
 * Keep on its place what has the pointer or the focus, however the list above it changes: the scroll position makes up
 * for it, and where that cannot, some room on top does until it is left.
 * @param {Ref<HTMLElement>} box
 * @param {string[]} keys
 * @returns {(key: string, isQuiet?: boolean) => boolean} puts the focus on a line; `isQuiet`: nothing is scrolled
 */
function useKeepPlace(box, keys) {
  const wanted = useRef(/** @type {{ key: string, isQuiet: boolean } | null} */ (null));
  const [, draw] = useState(0);
  const anchor = held.pointer?.key ?? held.focus?.key ?? null;
  /** @param {string | null} key */
  const elementOf = (key) => within(box.current, `[data-key="${CSS.escape(key ?? '')}"]`);
  const spacer = () => within(box.current, '.spacer');
  /** @param {number} px */
  const setRoom = (px) => {
    const element = spacer();
    if (element) element.style.height = px ? `${px}px` : '';
  };
  useStaying(() => (wanted.current ? null : elementOf(anchor)), (moved) => {
    const room = spacer()?.offsetHeight ?? 0;
    const less = Math.min(room, Math.max(0, moved));
    if (less) setRoom(room - less);
    const missing = follow(moved - less);
    if (missing < -0.5) setRoom(room - less - missing);
  });
  useLayoutEffect(() => {
    if (!anchor || wanted.current) setRoom(0);
    if (!wanted.current) return;
    const { key, isQuiet } = wanted.current;
    wanted.current = null;
    const element = elementOf(key);
    (element?.hasAttribute('tabindex') ? element : within(element, 'a.main'))?.focus({ preventScroll: true });
    if (!isQuiet) reveal(element);
  });
  return (key, isQuiet = false) => {
    wanted.current = { key, isQuiet };
    chosen.cursor = key;
    if (!isQuiet) held.pointer = null;
    draw((count) => count + 1);
    return keys.includes(key);
  };
}

/** @param {{ ranks: Rank[], firstKey: string, hasTasks: boolean }} props */
function Asking({ ranks, firstKey, hasTasks }) {
  return html`<ol class="asking">${ranks.map(({ key }) => html`<${Asker} key=${key} workerKey=${key} worker=${fleet.workers.get(key)} isFirst=${key === firstKey} isCursor=${key === chosen.cursor} hasTasks=${hasTasks} />`)}</ol>`;
}

/**
 * A worker that asks, with its first question; one that was just answered keeps its room while it is held.
 * @param {{ workerKey: string, worker?: Sent.Worker, isFirst: boolean, isCursor: boolean, hasTasks: boolean }} props
 */
function Asker({ workerKey, worker, isFirst, isCursor, hasTasks }) {
  const box = useRef(null);
  const height = useRef(0);
  const [task, instance] = partsOf(workerKey);
  const [question, ...more] = openQuestions(workerKey, worker);
  useLayoutEffect(() => {
    if (question) {
      height.current = box.current.offsetHeight;
      box.current.style.minHeight = '';
    } else box.current.style.minHeight = `${height.current}px`;
  });
  return html`<li ref=${box} class=${`asker${isCursor ? ' cursor' : ''}${marks.has(workerKey) ? ' marked' : ''}`} data-key=${workerKey} tabindex=${isFirst ? 0 : -1} aria-label=${`${plain(instance)}${question ? ' asks' : ''}`}>
    ${question
      ? html`<${QuestionCard} workerKey=${workerKey} task=${task} instance=${instance} question=${question} more=${more.length} isTaskNamed=${hasTasks} box=${html`<${MarkBox} workerKey=${workerKey} tab=${isFirst ? 0 : -1} />`} />`
      : html`<div class="question quiet">${worker ? html`<${Sign} sign=${signOf(worker)} />` : ''} <${Foreign} text=${instance} /> asks nothing any more.</div>`}
  </li>`;
}

/**
 * @param {{ rankKey: string, worker?: Sent.Worker, style: object, isFirst: boolean, isCursor: boolean,
 *   hasTasks: boolean, position: number, size: number }} props
 */
function Row({ rankKey, worker, style, isFirst, isCursor, hasTasks, position, size }) {
  const [task, instance] = partsOf(rankKey);
  if (!worker) return html`<div class="row gone" role="listitem" style=${style} data-key=${rankKey}><${Foreign} text=${instance} /> is gone</div>`;
  const can = actionsFor(worker);
  const tokens = tokensOf(worker);
  const tab = isFirst ? 0 : -1;
  /** @param {MouseEvent} event */
  const click = (event) => {
    if (!event.shiftKey || about.readOnly) return;
    event.preventDefault(); // The browser would open another window.
    toggleMark(rankKey, true);
  };
  return html`<div class=${`row${isCursor ? ' cursor' : ''}${marks.has(rankKey) ? ' marked' : ''} ${worker.need ?? ''}`} role="listitem" style=${style} data-key=${rankKey} aria-posinset=${position} aria-setsize=${size}>
    <${MarkBox} workerKey=${rankKey} tab=${tab} />
    <a class="main" href=${workerHref(task, instance)} tabindex=${tab} onMouseDown=${noSelection} onClick=${click}>
      <${Sign} sign=${signOf(worker)} />
      <span class="name foreign">${plain(instance)}</span>
      <span class="task foreign">${hasTasks ? plain(task) : ''}</span>
      <span class="says">${saidOf(worker, fleet.tasks.get(task)).map(([text, role], at) => html`<span key=${at} class=${`foreign ${role}`}>${text} </span>`)}</span>
      <span class="tokens">${tokens ? `${shortNumber(tokens)} tok` : ''}</span>
      <span class="cost">${costWords(worker.usage?.costUsd)}</span>
      <${WorkerTime} worker=${worker} />
    </a>
    <span class="row-buttons">
      ${worker.idle && can.send && html`<button type="button" class="small" tabindex=${tab} onClick=${() => sendToWorker(task, instance)}>Send<span class="unseen"> to ${plain(instance)}</span></button>`}
      ${can.seen && html`<button type="button" class="small" tabindex=${tab} onClick=${() => markSeen(task, instance)}>Seen<span class="unseen">: ${plain(instance)}</span></button>`}
    </span>
  </div>`;
}
