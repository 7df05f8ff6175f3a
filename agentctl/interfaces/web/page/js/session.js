// How the page and its server prove to each other that they know the same secret. Neither ever sends one: while the
// server is down, anybody may be at its port. What the browser keeps counts for one run of the server, only with a
// cookie, and for a minute after the last page: with that it enters by its first requests. With what only the memory of
// this page has it comes back after a restart or a sleep (interfaces/web/login.py, interfaces/web/page_sessions.py).
import { hexOf, hmac } from './hmac.js';

const KEPT = 'agentctl.again';
const CODE_NAME = 16;
const SESSION_NAME = 22;
const CODE_LENGTH = 38;
/** So often at most a page that was let out tries to come back. */
const PAUSE_MS = 2000;
/** So long whoever is at its port has to prove to be the server. */
const PROVES_MS = 20_000;

/**
 * @typedef {{ id: string, key: string, count: number, shows?: string }} Session `shows`: by what each of its requests
 *   enters, as long as none is answered
 */

/** The session; and that with which the page comes back: `{name, key}`. */
/** @type {Session | null} */
let current = null;
/** @type {{ name: string, key: string } | null} */
let later = null;
/** Whether the server has proved itself since the page last had reason to doubt. */
let isProven = false;
/** @type {Promise<boolean> | null} */
let returning = null;
let failedAt = 0;
let tellOut = () => {};
let tellIn = () => {};

/**
 * @param {string} secret
 * @param {...string} words
 */
const proof = (secret, ...words) => hmac(secret, ['agentctl', ...words].join('\n'));
const random = () => hexOf(crypto.getRandomValues(new Uint8Array(16)));
/**
 * @param {string} key
 * @param {string} under
 */
const shown = (key, under) => (BigInt(`0x${key}`) ^ BigInt(`0x${under}`)).toString(16).padStart(64, '0');

/** @param {{ onOut: () => void, onIn: () => void }} tell when the page is let out, and in */
export function listen({ onOut, onIn }) {
  tellOut = onOut;
  tellIn = onIn;
}

/**
 * Whether a text has the form of a code, as it is behind the `#` of a link.
 * @param {string} text
 */
export const isCode = (text) => text.length === CODE_LENGTH && /^[\w-]+$/.test(text);

/** @param {object} body */
async function send(body) {
  const response = await fetch('/session', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), cache: 'no-store',
    signal: AbortSignal.timeout(PROVES_MS),
  });
  const found = await response.json().catch(() => ({}));
  return response.ok && found ? found : { refused: found, status: response.status };
}

/**
 * Enter by a secret. Nothing is sent that would help anybody who does not know it.
 * @param {string} name
 * @param {string} secret
 */
async function enterBy(name, secret) {
  const nonce = random();
  const hello = await send({ as: name, nonce });
  if (hello.proof !== proof(secret, 'server', name, location.origin, nonce, hello.nonce)) return hello;
  const ours = proof(secret, 'page', name, location.origin, nonce, hello.nonce);
  const made = await send({ nonce: hello.nonce, proof: ours });
  if (!made.session) return made;
  const key = proof(secret, 'session', nonce, hello.nonce);
  current = { id: made.session, key, count: 0 };
  proven(current, made.page, made.key);
  return null;
}

/**
 * Keep what the page comes back with, once the server has proved itself.
 * @param {Session} session
 * @param {string} page
 * @param {string} hidden
 */
function proven({ id, key }, page, hidden) {
  later = { name: `page.${page}`, key: shown(hidden, proof(key, 'page')) };
  localStorage.setItem(KEPT, JSON.stringify({ name: `session.${id}`, secret: proof(key, 'again') }));
  isProven = true;
  tellIn();
}

/**
 * Enter by what the browser has kept with the first requests themselves, over a nonce that came with the page: without
 * a way to the server and back of its own. Return whether there is something to try; `comeBack` is tried if it fails.
 */
export function enterAtOnce() {
  const offer = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="agentctl-offer"]'))?.content;
  const way = kept();
  const [kind, before] = way?.name.split('.') ?? [];
  if (!offer || !way || kind !== 'session') return false;
  const nonce = random();
  const key = proof(way.key, 'session', nonce, offer);
  const shows = [before, nonce, offer, proof(way.key, 'return', location.origin, nonce, offer)].join('.');
  current = { id: proof(key, 'name').slice(0, SESSION_NAME), key, count: 0, shows };
  return true;
}

/**
 * Enter by the code of a link, or by the token; return what was refused, null if nothing was.
 * @param {string} text
 */
export const enter = (text) => (isCode(text) ? enterBy(`code.${text.slice(0, CODE_NAME)}`, text.slice(CODE_NAME)) : enterBy('token', text));

function kept() {
  try {
    const { name, secret } = JSON.parse(localStorage.getItem(KEPT) ?? 'null');
    return { name: String(name), key: String(secret) };
  } catch {
    return null;
  }
}

/** Whether there is anything with which the page could come back. */
export const mayComeBack = () => Boolean(current || later || kept());

/** Whether this is the server that knows the session. */
async function isTheSame() {
  if (!current || current.shows) return false;
  const [name, nonce] = [`session.${current.id}`, random()];
  const hello = await send({ as: name, nonce });
  return hello.proof === proof(proof(current.key, 'again'), 'server', name, location.origin, nonce, hello.nonce);
}

async function tryAll() {
  if (await isTheSame()) {
    isProven = true;
    tellIn();
    return true;
  }
  for (const way of [kept(), later]) if (way && (await enterBy(way.name, way.key)) === null) return true;
  return false;
}

/** Come back by what the page or the browser knows; false if the server knows none of it, or is another one. */
export function comeBack() {
  returning ??= tryAll().finally(() => {
    returning = null;
  });
  return returning;
}

/** Have the server prove itself again before it gets anything else. */
export function doubt() {
  isProven = false;
}

/**
 * Whoever answers is not the server that the page has entered at once, or has forgotten it.
 * @param {Session} session
 */
function doubtOf(session) {
  doubt();
  if (session.shows && current === session) current = null;
}

export class LetOut extends Error {}

/** Return the session once the server has proved that it knows it. */
async function ready() {
  if (current && (isProven || current.shows)) return current;
  if (!mayComeBack() || Date.now() - failedAt < PAUSE_MS) throw new LetOut();
  if (await comeBack() && current) return current;
  failedAt = Date.now();
  tellOut();
  throw new LetOut();
}

/** What was asked for before the scripts were there that need it. */
/** @type {Map<string, { answer: Promise<Response>, asking: AbortController }>} */
const ahead = new Map();

/**
 * Fetch what a script that is still being loaded is going to fetch: that one gets this answer.
 * @param {string} url
 * @param {RequestInit} options
 */
export function fetchAhead(url, options = {}) {
  const asking = new AbortController();
  const answer = signedFetch(url, { ...options, signal: asking.signal });
  answer.catch(() => {}); // Who gets it deals with that.
  ahead.set(url, { answer, asking });
}

/**
 * Fetch as this page. What does not prove to come from its server is not taken for an answer.
 * @param {string} url
 * @param {RequestInit} options
 */
export async function signedFetch(url, options = {}) {
  const early = ahead.get(url);
  if (early) {
    ahead.delete(url);
    options.signal?.addEventListener('abort', () => early.asking.abort());
    return early.answer;
  }
  for (let isAgain = false; ; isAgain = true) {
    const session = await ready();
    const { id, key } = session;
    session.count += 1;
    const number = String(session.count);
    const { pathname, search } = new URL(url, location.origin);
    const signed = `${id}.${number}.${proof(key, 'ask', options.method ?? 'GET', pathname + search, number)}`;
    const headers = new Headers(options.headers);
    headers.set('Agentctl-Signed', signed);
    if (session.shows) headers.set('Agentctl-Return', session.shows);
    let response;
    try {
      response = await fetch(url, { ...options, headers });
    } catch (error) {
      if (error.name !== 'AbortError') doubtOf(session);
      throw error;
    }
    if (response.headers.get('Agentctl-Proof') === proof(key, 'answer', number)) {
      const page = response.headers.get('Agentctl-Page')?.split('.') ?? [];
      if (session.shows && page.length === 3) {
        delete session.shows;
        current = session;
        proven(session, page.slice(0, 2).join('.'), page[2]);
      }
      return response;
    }
    response.body?.cancel().catch(() => {});
    doubtOf(session);
    if (isAgain) throw new TypeError('this does not come from the server');
  }
}

/** Forget everything, here and at the server. */
export async function leave() {
  await signedFetch('/session', { method: 'DELETE' }).catch(() => {});
  localStorage.removeItem(KEPT);
  current = null;
  later = null;
  isProven = false;
}
