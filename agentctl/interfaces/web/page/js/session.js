// How the page and its server prove to each other that they know the same secret. Neither ever sends one: while the
// server is down, anybody may be at its port. What the browser keeps counts for one run of the server, only with a
// cookie, and for a minute after the last page; with what only the memory of this page has it comes back after a
// restart or a sleep (interfaces/web/login.py, interfaces/web/page_sessions.py).
import { hexOf, hmac } from './hmac.js';

const KEPT = 'agentctl.again';
/** The cookie by which the server is asked in the next load of the page; cookies know no ports. */
const ASKS = `agentctl-asks-${location.port}`;
const FOR_ALL = '; path=/; samesite=strict';
const CODE_NAME = 16;
const CODE_LENGTH = 38;
/** So often at most a page that was let out tries to come back. */
const PAUSE_MS = 2000;
/** So long whoever is at its port has to prove to be the server. */
const PROVES_MS = 20_000;

/** The session; `isTold`: how the page comes back from it. And that with which it does so: `{name, key}`. */
/** @typedef {{ id: string, key: string, count: number, isTold: boolean }} Session */
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
  const session = letIn(made.session, proof(secret, 'session', nonce, hello.nonce));
  learn(session, made.page, made.key);
  tellIn();
  return null;
}

/**
 * @param {string} id
 * @param {string} key
 */
function letIn(id, key) {
  current = { id, key, count: 0, isTold: false };
  isProven = true;
  return current;
}

/**
 * Take what the server has told: how the page comes back to a later run, and, now that there is a session, to this one.
 * @param {Session} session
 * @param {string} page
 * @param {string} hidden
 */
function learn(session, page, hidden) {
  later = { name: `page.${page}`, key: shown(hidden, proof(session.key, 'page', page)) };
  session.isTold = true;
  keep(`session.${session.id}`, proof(session.key, 'again'));
}

/**
 * Have the browser keep that with which the page enters again, and what it asks of the server when it is loaded anew.
 * @param {string} name
 * @param {string} secret
 */
function keep(name, secret) {
  const nonce = random();
  localStorage.setItem(KEPT, JSON.stringify({ name, secret, nonce }));
  const isSecure = location.protocol === 'https:' ? '; secure' : '';
  document.cookie = `${ASKS}=${name.replace('session.', '')}.${nonce}${FOR_ALL}${isSecure}`;
}

/** The nonce and the proof of the server that came with index.html, if the browser had asked. */
const greeting = document.querySelector('meta[name=greeting]')?.getAttribute('content')?.split('.') ?? [];

/**
 * Enter by what came with the page, without another word: the server has proved itself in it, and each request of the
 * page proves the page. It counts once, for what this browser has asked since it was let in.
 */
export function enterGreeted() {
  const way = kept();
  const [theirs, shownProof] = greeting.splice(0);
  if (!way || !shownProof) return false;
  keep(way.name, way.key);
  if (shownProof !== proof(way.key, 'server', way.name, location.origin, way.nonce, theirs)) return false;
  letIn(theirs, proof(way.key, 'session', way.nonce, theirs));
  tellIn();
  return true;
}

/**
 * Enter by the code of a link, or by the token; return what was refused, null if nothing was.
 * @param {string} text
 */
export const enter = (text) => (isCode(text) ? enterBy(`code.${text.slice(0, CODE_NAME)}`, text.slice(CODE_NAME)) : enterBy('token', text));

function kept() {
  try {
    const { name, secret, nonce } = JSON.parse(localStorage.getItem(KEPT) ?? 'null');
    return { name: String(name), key: String(secret), nonce: String(nonce) };
  } catch {
    return null;
  }
}

/** Whether there is anything with which the page could come back. */
export const mayComeBack = () => Boolean(current || later || kept());

/** Whether this is the server that knows the session. */
async function isTheSame() {
  if (!current) return false;
  const [name, nonce] = [`session.${current.id}`, random()];
  const hello = await send({ as: name, nonce });
  return hello.proof === proof(proof(current.key, 'again'), 'server', name, location.origin, nonce, hello.nonce);
}

async function tryAll() {
  if (enterGreeted()) return true;
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

export class LetOut extends Error {}

/** Return the session once the server has proved that it knows it. */
async function ready() {
  if (isProven && current) return current;
  if (!mayComeBack() || Date.now() - failedAt < PAUSE_MS) throw new LetOut();
  if (await comeBack() && current) return current;
  failedAt = Date.now();
  tellOut();
  throw new LetOut();
}

/**
 * Fetch as this page. What does not prove to come from its server is not taken for an answer.
 * @param {string} url
 * @param {RequestInit} options
 */
export async function signedFetch(url, options = {}) {
  for (let isAgain = false; ; isAgain = true) {
    const session = await ready();
    const { id, key } = session;
    session.count += 1;
    const number = String(session.count);
    const { pathname, search } = new URL(url, location.origin);
    const signed = `${id}.${number}.${proof(key, 'ask', options.method ?? 'GET', pathname + search, number)}`;
    const headers = new Headers(options.headers);
    headers.set('Agentctl-Signed', signed);
    if (!session.isTold) headers.set('Agentctl-Wants', 'way-back');
    let response;
    try {
      response = await fetch(url, { ...options, headers });
    } catch (error) {
      if (error.name !== 'AbortError') doubt();
      throw error;
    }
    if (response.headers.get('Agentctl-Proof') === proof(key, 'answer', number)) {
      const [page, hidden] = response.headers.get('Agentctl-Way-Back')?.split(' ') ?? [];
      if (hidden && session === current && !session.isTold) learn(session, page, hidden);
      return response;
    }
    response.body?.cancel().catch(() => {});
    doubt();
    if (isAgain) throw new TypeError('this does not come from the server');
  }
}

/** Forget everything, here and at the server. */
export async function leave() {
  await signedFetch('/session', { method: 'DELETE' }).catch(() => {});
  localStorage.removeItem(KEPT);
  document.cookie = `${ASKS}=; max-age=0${FOR_ALL}`;
  current = null;
  later = null;
  isProven = false;
}
