// The next step of what the server refused, in words and links of the page: the server names a step, and not only how a
// program would take it (interfaces/web/next_requests.py).

import { takesOver, trusts, vouchesFor } from './at_terminal.js';

/** @typedef {{ href: string, text: string }} Link */
/** @typedef {{ step: string, of: string, task: string, words: string }} Step */

/** @param {string[]} parts */
const hrefOf = (...parts) => `/${parts.map(encodeURIComponent).join('/')}`;

/** @type {Link} */
const EVERYTHING = { href: '/', text: 'All workers' };
/** @type {Link} */
const TREE = { href: '/tree', text: 'All tasks' };

/**
 * What can be done about a worker is done from its own view.
 * @param {string} tab
 * @param {string} words
 * @returns {(task: string, of: string) => { text?: string, link?: Link }}
 */
const at = (tab, words) => (task, of) => ({
  link: task && of ? { href: hrefOf('tasks', task, 'workers', of, ...(tab ? [tab] : [])), text: `${words} ${of}` } : EVERYTHING,
});

/** @type {Record<string, (task: string, of: string) => { text?: string, link?: Link }>} */
export const STEPS = {
  'another name': () => ({ text: 'Choose another name.' }),
  'another id': () => ({ text: 'Choose another id.' }),
  'another folder': () => ({ text: 'Choose another folder.' }),
  'another key': at('', 'What it did:'),
  'another key for a task': (_task, of) => ({ link: of ? { href: hrefOf('tasks', of), text: `What it made: ${of}` } : TREE }),
  'another driver': (_task, of) => ({ text: `Its definition needs argv; or choose another driver (${of}).` }),
  'look around': (task) => ({ link: task ? { href: hrefOf('tasks', task), text: `The workers of ${task}` } : EVERYTHING }),
  list: (task) => ({ link: task ? { href: hrefOf('tasks', task), text: `The workers of ${task}` } : EVERYTHING }),
  'look at questions': () => ({ link: { href: '/', text: 'What is open' } }),
  'read result': at('result', 'The result of'),
  show: at('details', 'Details of'),
  send: at('', 'Write to'),
  cancel: at('', 'Stop it there:'),
  retry: at('', 'Try it again there:'),
  resume: at('', 'Continue it there:'),
  wait: at('', 'Follow'),
  diff: at('diff', 'The diff of'),
  'remove worktree': at('diff', 'The worktree of'),
  'look at worktree': at('diff', 'The worktree of'),
  'make a worktree': () => ({ text: 'Start it with a worktree of its own.' }),
  'make from template': () => ({ text: 'Make the task from a template.' }),
  spawn: () => ({ text: 'n starts one.' }),
  tasks: () => ({ link: TREE }),
  'in another task': (task, of) => ({
    link: { href: hrefOf('tasks', task, 'workers', of), text: `${of} is in task ${task}` },
  }),
  use: (_task, of) => ({ text: 'Choose another id.', link: of ? { href: hrefOf('tasks', of), text: `The task ${of}` } : undefined }),
  trust: (_task, of) => ({ text: trusts(of) }),
  'take over': (_task, of) => ({ text: takesOver(of) }),
  vouch: (_task, of) => ({ text: vouchesFor(of) }),
  'ask a person': () => ({ link: { href: '/', text: 'What is open' } }),
  deny: () => ({ link: { href: '/', text: 'What is open' } }),
  logs: at('output', 'The output of'),
  events: (task) => ({ link: task ? { href: hrefOf('tasks', task, 'events'), text: `The events of ${task}` } : TREE }),
  usage: (task) => ({ link: task ? { href: hrefOf('tasks', task, 'usage'), text: `What ${task} has used` } : TREE }),
  worktrees: (task) => ({ link: task ? { href: hrefOf('tasks', task), text: `The workers of ${task}` } : EVERYTHING }),
  templates: () => ({ text: 'Choose a template that the list has.' }),
  new: () => ({ text: 'Make a task.' }),
  'own task': () => ({ text: 'Work in a task of your own.' }),
  'name a task': () => ({ link: TREE }),
  'queue every start': (_task, of) => ({ text: `queue: true in the config of ${of} makes every start wait.` }),
  'name a model': (_task, of) => ({ text: `Choose the program llm and a model, for example ${of}.` }),
  'spawn an agent': () => ({ text: 'Say what it is to do.' }),
  'spawn above': (_task, of) => ({ link: { href: hrefOf('tasks', of), text: `Start it in ${of}, the task on top` } }),
  subtask: (_task, of) => ({ text: `Have an agent make a sub-task for ${of}.` }),
  'retry all': (_task, of) => ({ text: `Try these again, in their order: ${of}.` }),
  'a person resumes': at('', 'Continue it there:'),
  'wait for any': () => ({ text: 'Wait until one has ended.' }),
  unpause: at('', 'Let it go on there:'),
  'let the queue go': (task) => ({ link: task ? { href: hrefOf('tasks', task), text: `Let the queue of ${task} go there` } : TREE }),
  // What the page itself has asked for in the wrong way is not for a person to mend.
  described: () => ({}),
  paths: () => ({}),
  help: () => ({}),
};

/**
 * The next steps of a problem: what the page has for those that it knows, and the words of the others.
 * @param {{ hint?: string | null, steps?: Step[] }} problem
 * @param {string} path what was asked for, below /api/v1
 * @returns {{ text: string, links: Link[] }} a link for each place on the page that a step has; where it is that of
 *   several steps, the text has the words of the others
 */
export function stepsInWords({ hint, steps }, path = '') {
  if (!steps) return { text: hint ?? '', links: [] };
  const here = decodeURIComponent(path.match(/^\/tasks\/([^/]+)/)?.[1] ?? '');
  const found = steps.map(({ step, of, task, words }) => (
    step ? STEPS[step]?.(task || here, of) ?? {} : { text: words }
  ));
  /** @type {Set<string>} */
  const texts = new Set();
  /** @type {Map<string, Link>} */
  const links = new Map();
  for (const { text, link } of found) {
    const there = link && links.get(link.href); // Two steps may lead to the same place.
    if (link && !there) links.set(link.href, link);
    if (there && there.text !== link.text) texts.add(link.text);
    if (text) texts.add(text);
  }
  return { text: joined([...texts]), links: [...links.values()] };
}

/**
 * Texts one behind the other: what begins with a capital is a sentence of its own.
 * @param {string[]} texts
 */
function joined([first = '', ...more]) {
  return more.reduce((said, text) => `${said}${said.endsWith('.') ? '' : /^[A-Z]/.test(text) ? '.' : ';'} ${text}`, first);
}
