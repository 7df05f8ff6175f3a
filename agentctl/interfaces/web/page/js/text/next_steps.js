// The next step of what the server refused, in words and links of the page: the server names a step, and not only how a
// program would take it (interfaces/web/next_requests.py).

/** @typedef {{ href: string, text: string }} Link */
/** @typedef {{ step: string, of: string }} Step */

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
  use: (_task, of) => ({ text: 'Choose another id.', link: of ? { href: hrefOf('tasks', of), text: `The task ${of}` } : undefined }),
  trust: (_task, of) => ({ text: `Look at it, then trust it in a terminal: agentctl trust ${of}` }),
  'ask a person': () => ({ link: { href: '/', text: 'What is open' } }),
  deny: () => ({ link: { href: '/', text: 'What is open' } }),
  // What the page itself has asked for in the wrong way is not for a person to mend.
  described: () => ({}),
  paths: () => ({}),
};

/**
 * The next step of a problem: its words, or what the page has for a step that it knows.
 * @param {{ hint?: string | null, next?: Step | null }} problem
 * @param {string} path what was asked for, below /api/v1
 * @returns {{ text: string, link?: Link }}
 */
export function stepInWords(problem, path = '') {
  if (!problem.next) return { text: problem.hint ?? '' };
  const [, task] = path.match(/^\/tasks\/([^/]+)/) ?? [];
  const found = STEPS[problem.next.step]?.(task ? decodeURIComponent(task) : '', problem.next.of ?? '') ?? {};
  return { text: found.text ?? '', link: found.link };
}
