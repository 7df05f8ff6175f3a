// What the form for a new worker orders. Pure.
import { argvOf } from './commands_line.js';

export const EMPTY = {
  what: '', task: '', title: '', prompt: '', command: '', folder: '', name: '', model: '', effort: '', permissions: '',
  driver: '', keep: false, worktree: false, after: '', priority: '', retries: '', timeout: '', budget: '', turns: '',
};

/** @typedef {typeof EMPTY} Form `what` is an agent, or `!` for a command */

/**
 * The title of a task that is made for the order.
 * @param {Form} form
 */
export function titleFor(form) {
  const text = form.what === '!' ? form.command : form.prompt;
  return text.trim().split('\n')[0].slice(0, 60) || 'Task';
}

/**
 * The task that a new worker is for, unless one is chosen: the one that is looked at, the one chosen last here, the
 * only one. There is no other guess: the newest task may be anybody's.
 * @param {string | undefined} inView
 * @param {string} last
 * @param {string[]} own
 * @returns {string} empty for none
 */
export function taskFor(inView, last, own) {
  const known = [inView, last].find((task) => task && own.includes(task));
  return known ?? (own.length === 1 ? own[0] : '');
}

const PARTS = /[\s,]+/;

/**
 * What a field of several names may become by one more name.
 * @param {string} text
 * @param {string[]} names
 */
export function namesCompleted(text, names) {
  const typed = text.split(PARTS);
  const before = text.slice(0, text.length - (typed.at(-1) ?? '').length);
  const given = new Set(before.split(PARTS));
  return names.filter((name) => !given.has(name)).map((name) => before + name);
}

/** @type {Array<['priority' | 'retries' | 'timeout' | 'budget' | 'turns', option: string]>} */
const NUMBERS = [
  ['priority', 'priority'], ['retries', 'retries'], ['timeout', 'timeout_seconds'], ['budget', 'max_budget_usd'],
  ['turns', 'max_turns'],
];

/**
 * An error with the field that is to be mended.
 * @param {string} message
 * @param {keyof Form} field
 */
const wrong = (message, field, hint = '') => Object.assign(new Error(message), { field, hint });

/**
 * What is sent for a form; throws what is wrong with it, with the field.
 * @param {Form} form
 */
export function orderOf(form) {
  /** @type {Record<string, unknown>} */
  const order = { queue: true, ...(form.what === '!' ? commandOf(form) : workOf(form)) };
  if (form.folder.trim()) order.cwd = form.folder.trim();
  if (form.name.trim()) order.name = form.name.trim();
  if (form.worktree) order.worktree = true;
  if (form.after.trim()) order.after = form.after.trim().split(PARTS);
  for (const [field, option] of NUMBERS) {
    const text = String(form[field]).trim();
    if (!text || (form.what === '!' && (field === 'budget' || field === 'turns'))) continue;
    if (!Number.isFinite(Number(text))) throw wrong(`${text} is not a number`, field);
    order[option] = Number(text);
  }
  return order;
}

/** @param {Form} form */
function commandOf(form) {
  if (!form.command.trim()) throw wrong('there is no command yet', 'command', 'for example: make test');
  try {
    return { argv: argvOf(form.command) };
  } catch (error) {
    throw wrong(error.message, 'command');
  }
}

/** @param {Form} form */
function workOf(form) {
  if (!form.prompt.trim()) throw wrong('there is no work for the agent yet', 'prompt');
  /** @type {Record<string, unknown>} */
  const work = { prompt: form.prompt };
  if (form.what) work.agent = form.what;
  for (const name of /** @type {const} */ (['model', 'effort', 'permissions', 'driver'])) {
    if (form[name].trim()) work[name] = form[name].trim();
  }
  if (form.keep) work.keep = true;
  return work;
}
