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
  if (form.after.trim()) order.after = form.after.trim().split(/[\s,]+/);
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
