// How the page and its server prove to each other that they know the same secret. Neither ever sends one: while the
// server is down, anybody may be at its port. What the browser keeps counts for one run of the server, only with a
// cookie, and for a minute after the last page; with what only the memory of this page has it comes back after a
// restart or a sleep (interfaces/web/login.py, interfaces/web/page_sessions.py).
import { hexOf, hmac } from './hmac.js';

const KEPT = 'agentctl.again';
const CODE_NAME = 16;
const CODE_LENGTH = 38;
/** So often at most a page that was let out tries to come back. */
const PAUSE_MS = 2000;
/** So long whoever is at its port has to prove to be the server. */
const PROVES_MS = 20_000;

/** The session: `{id, key, count}`; and that with which the page comes back: `{name, key}`. */
/** @type {{ id: string, key: string, count: number } | null} */
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
  later = { name: `page.${made.page}`, key: shown(made.key, proof(key, 'page')) };
  localStorage.setItem(KEPT, JSON.stringify({ name: `session.${current.id}`, secret: proof(key, 'again') }));
  isProven = true;
  tellIn();
  return null;
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
  if (!current) return false;
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
    let response;
    try {
      response = await fetch(url, { ...options, headers });
    } catch (error) {
      if (error.name !== 'AbortError') doubt();
      throw error;
    }
    if (response.headers.get('Agentctl-Proof') === proof(key, 'answer', number)) return response;
    response.body?.cancel().catch(() => {});
    doubt();
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
