// The one connection of the page: read by fetch, since it is signed and sends its cursor. It comes back by itself, and
// is then sent what has changed. A browser opens few connections to one server, so of the pages that nobody looks at
// one alone keeps it (`turns.js`); the others ask now and then what they count.
import { get, onUnreachable, urlOf } from './api.js';
import { pageFetch } from './asked_ahead.js';
import { doubt } from './session.js';
import { eventStreamParser } from './sse_parse.js';
import { leaveTurn, takeTurn, turn } from './turns.js';

/** @import { Message } from './sse_parse.js' */

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
const HIDDEN_MS = 2000;
const HIDDEN_POLL_MS = 15_000;
/** The server sends a comment every 2 s (streams.py): who is silent for longer hangs, and for much longer is dead. */
const SILENT_MS = 4000;
const DEAD_MS = 20_000;
const HIDDEN_DEAD_MS = 90_000;
const LOOK_MS = 500;
/** After a longer absence the events in between are fetched by those who show them, and no others. */
const RESUMED_MS = 60_000;

/** Nothing is heard yet; it is heard, and what there is has not come yet; all of it has. */
/** @typedef {'opening' | 'heard' | 'open' | 'silent' | 'lost'} LinkState */

/**
 * @param {{ onFleet: (message: Sent.FleetMessage) => void, onEvent: (event: Sent.Event) => void,
 *   onReset: (isLost: boolean) => void, onState: (state: LinkState, heardAt: number) => void,
 *   onCount: (count: number) => void }} tell
 *   `onReset(isLost)`: what came before may have been missed; `isLost`: so may be what has been told
 */
export function openStream(tell) {
  /** @type {string | null} */
  let cursor = null;
  /** The fleet that this page knows. @type {string | null} */
  let version = null;
  let pause = FIRST_PAUSE_MS;
  /** @type {AbortController | null} */
  let current = null;
  let timer = 0;
  let hiddenTimer = 0;
  let isWanted = false;
  let wasAway = false;
  let heardAt = 0;
  let aliveAt = 0;

  /** @param {Message} message */
  const take = ({ event, id, data }) => {
    if (event === 'reset') {
      cursor = null;
      tell.onReset(true);
      return;
    }
    if (!cursor && id) tell.onReset(false);
    const value = data ? JSON.parse(data) : {};
    if (event === 'fleet') {
      version = value.version ?? null;
      tell.onFleet(value);
    } else if (event === 'event') tell.onEvent(value);
    if (id) cursor = id;
  };

  const read = async () => {
    const abort = new AbortController();
    current = abort;
    aliveAt = Date.now();
    if (aliveAt - heardAt > RESUMED_MS) cursor = null;
    try {
      /** @type {Record<string, string>} */
      const more = cursor ? { 'Last-Event-ID': cursor } : {};
      const response = await pageFetch(urlOf('/events', { fleet: true, version, since: cursor ? null : 'now' }), {
        headers: { Accept: 'text/event-stream', ...more }, signal: abort.signal, cache: 'no-store',
      });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      let isCaughtUp = false;
      const parse = eventStreamParser((message) => {
        take(message);
        isCaughtUp ||= message.event === 'cursor';
      });
      for (;;) {
        const { done, value } = await reader.read();
        if (done || current !== abort) break;
        heardAt = Date.now();
        aliveAt = heardAt;
        pause = FIRST_PAUSE_MS;
        parse(value);
        // A server that is still looking sends signs of life, and a large fleet comes in many parts.
        tell.onState(isCaughtUp ? 'open' : 'heard', heardAt);
      }
    } catch { /* It is opened again below. */ }
    if (current === abort) lose();
  };

  const lose = () => {
    const was = current;
    current = null;
    was?.abort();
    doubt(); // Whoever is at its port from now on may be another one.
    tell.onState('lost', heardAt);
    clearTimeout(timer);
    timer = setTimeout(read, pause * (0.8 + Math.random() * 0.4));
    pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
  };

  const close = () => {
    if (turn.isMine) return;
    isWanted = false;
    wasAway = true;
    clearTimeout(timer);
    const was = current;
    current = null;
    was?.abort();
    poll();
  };

  const open = () => {
    if (!isWanted) tell.onState('opening', heardAt);
    isWanted = true;
    pause = FIRST_PAUSE_MS;
    clearTimeout(timer);
    if (current) return;
    if (wasAway) doubt(); // Nothing has told meanwhile whether the server still lives.
    wasAway = false;
    read();
  };

  const poll = async () => {
    if (isWanted) return;
    try {
      /** @type {Array<{ taskId: string, agentInstance: string, idle?: boolean }>} */
      const asked = await get('/interact');
      if (!isWanted) tell.onCount(new Set(asked.filter((one) => !one.idle).map((one) => `${one.taskId}/${one.agentInstance}`)).size);
    } catch { /* The next one may come through. */ }
    clearTimeout(hiddenTimer);
    if (!isWanted) hiddenTimer = setTimeout(poll, HIDDEN_POLL_MS);
  };

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiddenTimer);
    if (!document.hidden) {
      leaveTurn();
      open();
      return;
    }
    takeTurn(open);
    hiddenTimer = setTimeout(close, HIDDEN_MS);
  });
  addEventListener('online', () => {
    if (!document.hidden || turn.isMine) open();
  });
  // What another request could not reach, this connection cannot either, though it may not have noticed yet.
  onUnreachable(() => {
    if (isWanted && current) lose();
  });
  setInterval(() => {
    if (!current) return;
    const silentMs = Date.now() - aliveAt;
    // Of a page that nobody looks at, the browser runs this but once a minute.
    if (silentMs > (document.hidden ? HIDDEN_DEAD_MS : DEAD_MS)) lose();
    else if (!document.hidden && silentMs > SILENT_MS && heardAt === aliveAt) tell.onState('silent', heardAt);
  }, LOOK_MS);
  if (document.hidden) {
    takeTurn(open);
    close();
  } else open();
}
