// Requests to the interface, as this page, and errors as the server words them.
import { leave, LetOut, signedFetch } from './session.js';

const BASE = '/api/v1';

/** What was refused, with what is wrong (`message`) and the next step (`hint`). */
class Refusal extends Error {
  /**
   * @param {number} status
   * @param {Sent.Problem} problem
   */
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.hint = problem.hint ?? '';
    this.reason = problem.name ?? '';
    this.done = problem.done;
  }
}

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

/**
 * @param {string} path
 * @param {Query} query
 * @param {RequestInit} options
 */
async function ask(path, query, options) {
  let response;
  try {
    response = await signedFetch(urlOf(path, query), { cache: 'no-cache', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, error instanceof LetOut
      ? { detail: 'this page is not let in', hint: 'agentctl serve --link prints a link', name: 'OUT' }
      : { detail: 'the server cannot be reached', hint: 'is `agentctl serve` still running?', name: 'OFFLINE' });
  }
  if (!response.ok) {
    let problem = {};
    try {
      problem = await response.json();
    } catch { /* An error without a body says enough by its number. */ }
    throw new Refusal(response.status, problem);
  }
  return response;
}

/** @param {string} path */
export async function get(path, query = {}, signal = undefined) {
  const response = await ask(path, query, { signal });
  return response.json();
}

/**
 * The document, and the exit code that the command had.
 * @param {string} path
 */
export async function post(path, body = {}) {
  const response = await ask(path, {}, {
    method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
  });
  const text = await response.text();
  return { data: text ? JSON.parse(text) : null, exitCode: Number(response.headers.get('Agentctl-Exit-Code') ?? 0) };
}

/**
 * A file as a blob: a link is not signed.
 * @param {string} path
 */
export async function getBlob(path, query = {}) {
  return (await ask(path, query, {})).blob();
}

export async function logout() {
  await leave();
  location.assign('/');
}
