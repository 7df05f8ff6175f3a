// What every view needs first is asked for as soon as the page is let in, while its other scripts are still being read:
// in a new tab that takes half as long as a slow network.
import { signedFetch } from './session.js';

/** As `main.js` and `stream.js` ask for them. */
const AHEAD = ['/api/v1/events?fleet=true&since=now', '/api/v1/about'];

/** @type {Map<string, { answer: Promise<Response>, abort: AbortController }>} */
const asked = new Map();
let isDone = false;

/** Ask, once. A page that nobody looks at yet may not hear the stream. */
export function askAhead() {
  if (isDone || document.hidden) return;
  isDone = true;
  for (const url of AHEAD) {
    const abort = new AbortController();
    const answer = signedFetch(url, { signal: abort.signal, cache: 'no-store' });
    answer.catch(() => {}); // Whoever takes it is told.
    asked.set(url, { answer, abort });
  }
}

/**
 * Fetch as this page, or take what was asked ahead.
 * @param {string} url
 * @param {RequestInit} options
 */
export function pageFetch(url, options) {
  const ahead = asked.get(url);
  if (!ahead) return signedFetch(url, options);
  asked.delete(url);
  options.signal?.addEventListener('abort', () => ahead.abort.abort(options.signal?.reason));
  return ahead.answer;
}
