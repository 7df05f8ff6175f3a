// How the page and its server prove to each other that they know the same secret. Neither ever sends one: while the server
// is down, anybody may be at its port. What the browser keeps counts for one run of the server, only with a cookie, and for
// a minute after the last page; with what only the memory of this page has it comes back after a restart or a sleep
// (web/login.py, web/sessions.py).
import { hmac } from './hmac.js';

const KEPT = 'agentctl.again';
const CODE_NAME = 16;
const CODE_LENGTH = 38;
/** So often at most a page that was let out tries to come back. */
const PAUSE_MS = 2000;

/** The session: `{id, key, count}`; and that with which the page comes back: `{name, key}`. */
let current = null;
let later = null;
/** Whether the server has proved itself since the page last had reason to doubt. */
let isProven = false;
let returning = null;
let failedAt = 0;
let tellOut = () => {};
let tellIn = () => {};

const proof = (secret, ...words) => hmac(secret, ['agentctl', ...words].join('\n'));
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
const shown = (key, under) => (BigInt(`0x${key}`) ^ BigInt(`0x${under}`)).toString(16).padStart(64, '0');

/** @param {{onOut: Function, onIn: Function}} tell when the page is let out, and in */
export function listen({ onOut, onIn }) {
  tellOut = onOut;
  tellIn = onIn;
}

/** Whether a text has the form of a code, as it is behind the `#` of a link. */
export const isCode = (text) => text.length === CODE_LENGTH && /^[\w-]+$/.test(text);

async function send(body) {
  const response = await fetch('/session', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), cache: 'no-store',
  });
  const found = await response.json().catch(() => ({}));
  return response.ok && found ? found : { refused: found, status: response.status };
}

/** Enter by a secret. Nothing is sent that would help anybody who does not know it. */
async function enterBy(name, secret) {
  const nonce = random();
  const hello = await send({ as: name, nonce });
  if (hello.proof !== proof(secret, 'server', name, location.origin, nonce, hello.nonce)) return hello;
  const made = await send({ nonce: hello.nonce, proof: proof(secret, 'page', name, location.origin, nonce, hello.nonce) });
  if (!made.session) return made;
  const key = proof(secret, 'session', nonce, hello.nonce);
  current = { id: made.session, key, count: 0 };
  later = { name: `page.${made.page}`, key: shown(made.key, proof(key, 'page')) };
  localStorage.setItem(KEPT, JSON.stringify({ name: `session.${current.id}`, secret: proof(key, 'again') }));
  isProven = true;
  tellIn();
  return null;
}

/** Enter by the code of a link, or by the token; return what was refused, null if nothing was. */
export const enter = (text) => (isCode(text) ? enterBy(`code.${text.slice(0, CODE_NAME)}`, text.slice(CODE_NAME)) : enterBy('token', text));

function kept() {
  try {
    const { name, secret } = JSON.parse(localStorage.getItem(KEPT));
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

async function ready() {
  if (isProven) return;
  if (!mayComeBack() || Date.now() - failedAt < PAUSE_MS) throw new LetOut();
  if (await comeBack()) return;
  failedAt = Date.now();
  tellOut();
  throw new LetOut();
}

/** Fetch as this page. What does not prove to come from its server is not taken for an answer. */
export async function signedFetch(url, options = {}) {
  for (let isAgain = false; ; isAgain = true) {
    await ready();
    const { id, key } = current;
    current.count += 1;
    const number = String(current.count);
    const { pathname, search } = new URL(url, location.origin);
    const signed = `${id}.${number}.${proof(key, 'ask', options.method ?? 'GET', pathname + search, number)}`;
    let response;
    try {
      response = await fetch(url, { ...options, headers: { ...options.headers, 'Agentctl-Signed': signed } });
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
