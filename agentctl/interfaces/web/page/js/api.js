// Requests to the interface, as this page, and errors as the server words them.
import { pageFetch } from './asked_ahead.js';
import { attempt } from './outstanding.js';
import { leave, LetOut } from './session.js';
import { IS_RUNNING, PRINTS_LINK } from './text/at_terminal.js';
import { stepsInWords } from './text/next_steps.js';

const BASE = '/api/v1';
/** So long a request waits for its answer; the stream alone has none. */
const LIMIT_MS = 60_000;
/** What may be sent twice without being done twice, even without a key. */
const SAME_TWICE = /\/(cancel|pause|unpause|seen|resume-queue|worktree\/remove)$|\/interact\//;

/** What was refused, with what is wrong (`message`) and the next step (`hint`), in words and links of the page. */
class Refusal extends Error {
  /**
   * @param {number} status
   * @param {Sent.Problem} problem
   * @param {string} path what was asked for
   */
  constructor(status, problem, path = '') {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    const { text, links } = stepsInWords(problem, path);
    this.hint = text;
    this.links = links;
    this.reason = problem.name ?? '';
    this.done = problem.done;
  }
}

/** What is told of a request that the server takes too long for: asked again, it would take as long again. */
const LATE = 'LATE';
/** @param {unknown} error */
export const isLate = (error) => error instanceof Refusal && error.reason === LATE;

/** @param {...string} parts */
export const segments = (...parts) => parts.map((part) => encodeURIComponent(part)).join('/');
/**
 * @param {string} task
 * @param {string} instance
 * @param {...string} rest
 */
export const workerPath = (task, instance, ...rest) => `/tasks/${segments(task)}/workers/${segments(instance, ...rest)}`;

/**
 * @typedef {string | number | boolean | null | undefined} Word
 * @typedef {Record<string, Word | Word[]>} Query
 */

/**
 * @param {string} path
 * @param {Query} query
 */
export function urlOf(path, query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one != null && one !== '') words.append(name, String(one));
    }
  }
  const text = words.toString();
  return BASE + path + (text ? `?${text}` : '');
}

/** @type {Set<() => void>} */
const watchers = new Set();
/**
 * Be told of each request that has not reached the server, unless the last one to the same path has not either: then
 * it is that path alone which is lost.
 * @param {() => void} tell
 */
export const onUnreachable = (tell) => watchers.add(tell);

/** The paths of which the last request has not reached the server. @type {Set<string>} */
const unreached = new Set();

/**
 * What became of a request that has had no answer.
 * @param {Error} error
 * @param {string} path
 */
function unanswered(error, path) {
  if (error instanceof LetOut) {
    return new Refusal(0, { detail: 'this page is not let in', hint: PRINTS_LINK, name: 'OUT' });
  }
  if (error.name === 'TimeoutError') {
    const detail = `the server has not answered within ${LIMIT_MS / 1000} s`;
    return new Refusal(0, { detail, hint: IS_RUNNING, name: LATE });
  }
  if (error.name === 'AbortError') return new Refusal(0, { detail: 'nobody waits for it any more', name: 'LEFT' });
  if (!unreached.has(path)) for (const tell of watchers) tell();
  unreached.add(path);
  return new Refusal(0, { detail: 'the server cannot be reached', hint: IS_RUNNING, name: 'OFFLINE' });
}

/**
 * @param {string} path
 * @param {Query} query
 * @param {RequestInit & { limitMs?: number }} options `limitMs`: for all of its answer
 */
async function ask(path, query, { limitMs = LIMIT_MS, ...options }) {
  const signal = Number.isFinite(limitMs) ? AbortSignal.timeout(limitMs) : null;
  let response;
  try {
    response = await pageFetch(urlOf(path, query), { cache: 'no-cache', signal, ...options });
  } catch (error) {
    throw unanswered(error, path);
  }
  if (!response.ok) {
    unreached.delete(path);
    let problem = {};
    try {
      problem = await response.json();
    } catch { /* An error without a body says enough by its number. */ }
    throw new Refusal(response.status, problem, path);
  }
  return response;
}

/** @param {string} path */
export async function get(path, query = {}) {
  const response = await ask(path, query, {});
  return read(path, response.json());
}

/**
 * What an answer has, once all of it is here.
 * @template T
 * @param {string} path
 * @param {Promise<T>} body
 */
async function read(path, body) {
  try {
    const found = await body;
    unreached.delete(path);
    return found;
  } catch (error) {
    throw error instanceof SyntaxError ? error : unanswered(error, path);
  }
}

/**
 * The document, and the exit code that the command had. A person may have it sent again where that does nothing twice.
 * @param {string} path
 * @param {{ key?: string, [name: string]: unknown }} body
 */
export function post(path, body = {}) {
  return attempt(path, Boolean(body.key) || SAME_TWICE.test(path), () => send(path, body));
}

/**
 * @param {string} path
 * @param {object} body
 */
async function send(path, body) {
  const response = await ask(path, {}, {
    method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
  });
  const text = await read(path, response.text());
  return { data: text ? JSON.parse(text) : null, exitCode: Number(response.headers.get('Agentctl-Exit-Code') ?? 0) };
}

/** What the server says has become of a file since the result was given. */
const STATE = 'Agentctl-File-State';

/**
 * A file as a blob: a link is not signed.
 * @param {string} path
 * @param {Query} query
 * @param {() => void} begins called when the server has answered: all of the file may take long to come
 */
export async function getBlob(path, query, begins) {
  const response = await ask(path, query, { limitMs: Infinity });
  begins();
  return { blob: await read(path, response.blob()), state: response.headers.get(STATE) ?? '' };
}

/**
 * The beginning of a file, and how large all of it is.
 * @param {string} path
 * @param {Query} query
 * @param {number} most
 * @param {AbortSignal} signal
 */
export async function getBeginning(path, query, most, signal) {
  const response = await ask(path, query, { signal, headers: { Range: `bytes=0-${most - 1}` } }).catch((error) => {
    if (error.status === 416) return null; // Of an empty file there is no first byte.
    throw error;
  });
  if (!response) return { data: new Uint8Array(), size: 0, state: '' };
  const data = new Uint8Array(await read(path, response.arrayBuffer()));
  const size = Number(response.headers.get('Content-Range')?.split('/')[1] ?? data.length);
  return { data, size, state: response.headers.get(STATE) ?? '' };
}

export async function logout() {
  await attempt('/session', true, leave);
  location.assign('/');
}
