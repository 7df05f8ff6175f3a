// The keys: one table, by which they work and from which the help is made.
import { useLayoutEffect, useRef } from './dom.js';
import { said, say, unsay } from './store.js';

/**
 * Each key: [group, keys, action, what it does].
 * @type {Array<[string, string[], string, string]>}
 */
export const KEYS = [
  ['Everywhere', ['n'], 'dispatch', 'Start a worker'],
  ['Everywhere', ['/'], 'filter', 'Filter the list or the tree; elsewhere search all tasks'],
  ['Everywhere', ['t'], 'tree', 'By need, or the tree'],
  ['Everywhere', ['Escape'], 'back', 'Back; takes marks away first, then a filter'],
  ['Everywhere', ['?'], 'help', 'All keys'],
  ['Lists', ['j', 'ArrowDown'], 'down', 'Next line'],
  ['Lists', ['k', 'ArrowUp'], 'up', 'Line before'],
  ['Lists', ['g', 'Home'], 'first', 'First line'],
  ['Lists', ['G', 'End'], 'last', 'Last line'],
  ['Lists', ['Enter', 'o'], 'open', 'Open the worker, or what is below the line'],
  ['Lists', ['m'], 'markLine', 'Mark the worker and go on: x p s r v C act on all that are marked'],
  ['Lists', ['M'], 'markAll', 'Mark all that the filter shows, or take the marks away'],
  ['Lists', ['Tab'], '', 'To the box and the buttons of a line, and on'],
  ['Questions', [...'123456789'], 'digit', 'Give this answer, or choose it where several may be chosen'],
  ['Questions', ['i'], 'write', 'Write an answer'],
  ['Questions', ['D'], 'deny', 'Deny, with a reason'],
  ['Questions', ['a'], 'showRaw', 'A call as its arguments, or as what it would do'],
  ['A worker', ['x'], 'cancel', 'Cancel it (asks first)'],
  ['A worker', ['p'], 'pause', 'Pause it, or let it continue'],
  ['A worker', ['s'], 'send', 'Send a message; an ended agent is continued with it'],
  ['A worker', ['r'], 'retry', 'Start the work of an ended worker once more'],
  ['A worker', ['v'], 'seen', 'Its end counts as looked at'],
  ['A worker', ['y'], 'why', 'Why it is in its state'],
  ['A worker', ['d'], 'diff', 'What it has changed'],
  ['A worker', ['C'], 'copy', 'Copy its name and task as commands take them'],
  ['A worker', ['[', ']'], 'tab', 'Tab before, next tab; digits too where nothing is asked'],
  ['Tree', ['l', 'ArrowRight'], 'unfold', 'Open the line, or go into it'],
  ['Tree', ['h', 'ArrowLeft'], 'fold', 'Fold the line, or go to the one above'],
  ['Tree', ['*'], 'siblings', 'Open all lines beside this one'],
  ['Tree', ['f'], 'find', 'Type the beginning of a name (letters that are not keys do so at once)'],
  ['Texts', ['m'], 'mark', 'Draw a line below what is there now'],
  ['Texts', ['w'], 'wrap', 'Wrap long lines, or not'],
  ['Diff', ['J', 'K'], 'file', 'Next file, file before'],
  ['Diff', ['V'], 'viewed', 'The file counts as viewed, or not'],
  ['Diff', ['c'], 'comment', 'Write a comment on the line'],
  ['Diff', ['b'], 'since', 'Since the base, or since the last turn'],
];

/** @type {Map<string, string[]>} */
const byKey = new Map();
for (const [, keys, action] of KEYS) {
  for (const key of keys) if (action) byKey.set(key, [...(byKey.get(key) ?? []), action]);
}
/** @param {string} key */
export const isBound = (key) => byKey.has(key);

/** @type {Record<string, string>} */
const NAMES = { ArrowDown: '↓', ArrowUp: '↑', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' };
/** @param {string} key */
export const keyName = (key) => NAMES[key] ?? key;

/** @typedef {Record<string, (event: KeyboardEvent) => unknown>} Actions see `useKeys` */

/** @type {Array<{ number: number, actions: Actions }>} */
const layers = [];
let made = 0;

/**
 * Let a part of the page carry out actions while it is there; the newest part is asked first, and each of them before
 * what it is a part of. A handler that returns false, or why (a text), has done nothing, and the next one is asked.
 * @param {Actions} actions
 */
export function useKeys(actions) {
  const layer = useRef({ number: 0, actions });
  if (!layer.current.number) {
    made += 1; // A part is drawn after what it is a part of, but mounted before it.
    layer.current.number = made;
  }
  layer.current.actions = actions;
  // From the first frame on: what is seen takes keys.
  useLayoutEffect(() => {
    layers.push(layer.current);
    layers.sort((one, other) => one.number - other.number);
    return () => layers.splice(layers.indexOf(layer.current), 1);
  }, []);
}

/**
 * Whether somebody would carry out an action now.
 * @param {string} action
 */
export const isActive = (action) => layers.some((layer) => layer.actions[action]);

/**
 * The nearest element that fits; the target of an event may be none.
 * @param {EventTarget | null} target
 * @param {string} selector
 */
const closest = (target, selector) => (target instanceof Element ? target.closest(selector) : null);

const FIELDS = 'input:not([type=checkbox]):not([type=radio]):not([type=button]), textarea, select, [contenteditable]';

/**
 * Whether one types into an element. One in a dialog that is closed has the focus until the browser tells of the close.
 * @param {EventTarget | null} element
 */
export function isField(element) {
  const field = closest(element, FIELDS);
  return Boolean(field) && !field?.closest('dialog:not([open])');
}

/**
 * Have an action carried out; return why nobody has done anything, and null where somebody has.
 * @param {string} action
 * @param {KeyboardEvent} event
 */
function perform(action, event) {
  let why = '';
  for (let at = layers.length - 1; at >= 0; at -= 1) {
    const handler = layers[at].actions[action];
    const came = handler ? handler(event) : false;
    if (typeof came === 'string') why ||= came;
    else if (came !== false) return null;
  }
  return why;
}

/** These may go on while their key is held down; whatever else a key does, it does once. */
const GOING_ON = new Set(['down', 'up', 'fold', 'unfold']);
/** So long behind a key that did nothing, what is typed acts on nothing: it was meant as a text. */
const DEAF_MS = 1000;
/** These are pressed within a text. */
const WITHIN = new Set(['Shift', 'Control', 'Alt', 'AltGraph', 'Meta', 'CapsLock', 'Dead', 'Process', 'Unidentified']);
/** Until when, by the time of events, keys act on nothing; why; and the line that says so. */
const deaf = { until: 0, why: '', line: 0, hasSpace: false };

/**
 * Say why a key did nothing, in the place of what was said of one before it.
 * @param {string} why
 */
export function sayWhy(why) {
  if (deaf.why === why && said.lines.some((line) => line.id === deaf.line)) return;
  unsay(deaf.line);
  deaf.why = why;
  deaf.line = say(why);
}

/**
 * Say why a key did nothing, and act on nothing that is typed at once behind it.
 * @param {string} why
 * @param {KeyboardEvent} event
 */
function didNothing(why, event) {
  deaf.until = event.timeStamp + DEAF_MS;
  sayWhy(why);
}

/** @param {KeyboardEvent} event */
const isText = (event) => [...event.key].length === 1;
/** @param {KeyboardEvent} event */
const isForOthers = (event) => event.ctrlKey || event.metaKey || event.altKey || event.isComposing
  || isField(event.target) || document.querySelector('dialog[open]') !== null;

// Before anything on the page gets it: a blank and Enter press a button that has the focus.
document.addEventListener('keydown', (event) => {
  if (event.repeat && event.key === 'Enter' && !closest(event.target, 'textarea')) event.preventDefault();
  if (isForOthers(event) || WITHIN.has(event.key)) return;
  if (event.timeStamp < deaf.until && (isText(event) || event.key === 'Enter')) {
    event.preventDefault();
    event.stopImmediatePropagation();
    deaf.hasSpace ||= event.key === ' ';
    didNothing(deaf.why, event);
  } else deaf.until = isText(event) ? deaf.until : 0;
}, true);

document.addEventListener('keyup', (event) => {
  if (event.key !== ' ' || !deaf.hasSpace) return;
  deaf.hasSpace = false;
  event.preventDefault();
}, true);

// Whoever takes the pointer does not type on.
document.addEventListener('pointerdown', () => {
  deaf.until = 0;
}, true);

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || isForOthers(event)) return;
  if (event.key === 'Enter' && closest(event.target, 'a, button, summary, input, label')) return;
  let why = '';
  for (const action of byKey.get(event.key) ?? []) {
    if (event.repeat && !GOING_ON.has(action)) return;
    const nothing = perform(action, event);
    if (nothing === null) {
      event.preventDefault();
      return;
    }
    why ||= nothing;
  }
  // A blank scrolls, and presses what has the focus.
  if (isText(event) && event.key !== ' ') didNothing(why || `${event.key} does nothing here: ? shows the keys`, event);
});
