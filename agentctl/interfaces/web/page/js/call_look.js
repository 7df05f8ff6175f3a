// A call as what it would do, or has done: a change of files as a diff, a command as a command, a plan as a list.
import { html, useMemo, useState } from './dom.js';
import { distinct } from './safe_text.js';
import { coloured, languageOf } from './text/highlight.js';
import { isOfTabs, linesDiff, tabsSpelled } from './text/words_diff.js';
import { counted } from './words.js';

/** @import { Coloured } from './text/highlight.js' */
/** @import { FileChange, Look, Todo } from './text/known_calls.js' */
/** @import { DiffLine } from './text/words_diff.js' */

/** So many lines of a change are shown at first. */
const MOST_LINES = 60;
const SIGNS = { same: ' ', remove: '-', add: '+' };
const SPOKEN = { same: '', remove: 'removed: ', add: 'added: ' };
const TODO_SIGNS = { open: ['☐', 'to do'], active: ['◐', 'at work'], done: ['☑', 'done'], dropped: ['☒', 'cancelled'] };

/** The name of an argument, also of one that lies deeper: `edits[1].replace_all`. */
const PLAIN_NAME = /^[^\W\d][\w.-]*(?:\[\d+\]\.[^\W\d][\w.-]*)?$/;

/** @param {unknown} value */
export const argumentText = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1) ?? '');
/** @param {string} key */
export const argumentName = (key) => (PLAIN_NAME.test(key) ? key : JSON.stringify(key));

/**
 * A call by its look: what nobody would see is spelled out.
 * @param {{ look: Look, isAsked?: boolean, children?: any }} props `isAsked`: it may be allowed by this look, so all of
 *   it is there, and in one colour: code may look like a comment, and run; and what the agent calls it is told as its
 *   own words; `children`: the arguments that are not in the look
 */
export function CallLook({ look, isAsked = false, children }) {
  const { kind, title, command, changes = [], todos = [] } = look;
  return html`<div class="call-look">
    ${title && html`<p class="call-title foreign">${isAsked && 'In its own words: '}${distinct(title)}</p>`}
    ${command !== undefined && html`<${CommandLine} command=${command} isAsked=${isAsked} />`}
    ${changes.map((change, at) => html`<${Change} key=${at} change=${change} isAsked=${isAsked} />`)}
    ${todos.length > 0 && html`<${Todos} todos=${todos} />`}
    ${(kind === 'search' || kind === 'read') && html`<p class="foreign mono">${distinct(look.subject)}</p>`}
    ${children}
  </div>`;
}

/**
 * Arguments as they are, with each tab spelled out: with spaces they could look the same.
 * @param {{ entries: Array<[string, unknown]> }} props
 */
export function Arguments({ entries }) {
  return entries.length > 0 && html`<div class="raw-arguments">${entries.map(([name, value]) => html`<div key=${name} class="argument"><span class="name foreign">${distinct(argumentName(name))}</span><span class="value foreign">${tabsSpelled(distinct(argumentText(value)))}</span></div>`)}</div>`;
}

/** @param {{ command: string, isAsked: boolean }} props */
function CommandLine({ command, isAsked }) {
  const pieces = useMemo(() => coloured(distinct(command), isAsked ? '' : 'bash'), [command]);
  return html`<div class="command-line foreign"><span class="prompt" aria-hidden="true">$ </span><code>${pieces.map(spanOf)}</code></div>`;
}

/** @param {{ todos: Todo[] }} props */
function Todos({ todos }) {
  return html`<ul class="todos">${todos.map(({ text, state }, at) => html`<li key=${at} class=${state}><span class="task-sign" role="img" aria-label=${TODO_SIGNS[state][1]}>${TODO_SIGNS[state][0]}</span> <span class="foreign">${distinct(text)}</span></li>`)}</ul>`;
}

/**
 * The lines of a patch; a line that is neither added nor removed is what it is.
 * @param {string} patch
 * @returns {DiffLine[]}
 */
const patchLines = (patch) => distinct(patch).replace(/\n$/, '').split('\n').map((line) => {
  const kind = line[0] === '+' ? 'add' : line[0] === '-' ? 'remove' : 'same';
  return { kind, pieces: [{ text: kind === 'same' ? line : line.slice(1), changed: false }] };
});

/** @param {{ change: FileChange, isAsked: boolean }} props */
function Change({ change, isAsked }) {
  const { path, verb, old, now, patch } = change;
  const [isWhole, setWhole] = useState(false);
  const isNew = verb === 'Write' && now !== undefined;
  const lines = useMemo(() => {
    if (patch !== undefined) return patchLines(patch);
    if (now === undefined) return [];
    return linesDiff(distinct(old ?? ''), distinct(isNew ? now.replace(/(.)\n$/s, '$1') : now));
  }, [old, now, patch]);
  const spellsTabs = useMemo(() => isAsked && isOfTabs(lines), [lines, isAsked]);
  const added = lines.filter(({ kind }) => kind === 'add').length;
  const removed = lines.filter(({ kind }) => kind === 'remove').length;
  const shown = isWhole || isAsked ? lines : lines.slice(0, MOST_LINES);
  return html`<section class="change">
    <p class="change-head"><span class="verb">${verb}</span> <span class="path foreign">${distinct(path)}</span>
      ${lines.length > 0 && html`<span class="numbers">${added > 0 && html`<span class="plus">+${added}</span>`} ${removed > 0 && html`<span class="minus">-${removed}</span>`}</span>`}</p>
    ${lines.length > 0 && html`<${Lines} lines=${shown} isPatch=${patch !== undefined} spellsTabs=${spellsTabs} language=${isAsked ? '' : languageOf(path)} />`}
    ${shown.length < lines.length && html`<button type="button" class="small plain" onClick=${() => setWhole(true)}>Show all (${counted(lines.length, 'line')})</button>`}
    ${isNew && !now.endsWith('\n') && html`<p class="quiet">${now ? 'without a line break at its end' : 'with nothing in it'}</p>`}
  </section>`;
}

/** @param {{ lines: DiffLine[], isPatch: boolean, spellsTabs: boolean, language: string }} props */
function Lines({ lines, isPatch, spellsTabs, language }) {
  /** @param {string} text */
  const shown = (text) => (spellsTabs ? tabsSpelled(text) : text);
  return html`<div class="change-lines foreign">${lines.map(({ kind, pieces }, at) => html`<div key=${at} class=${`change-line ${kind}`}><span class="mark-sign" aria-hidden="true">${isPatch && kind === 'same' ? '' : SIGNS[kind]}</span>${SPOKEN[kind] && html`<span class="unseen">${SPOKEN[kind]}</span>`}<code>${pieces.map((piece) => (piece.changed ? html`<mark>${shown(piece.text)}</mark>` : colours(shown(piece.text), pieces.length > 1 ? '' : language)))}</code></div>`)}</div>`;
}

/**
 * @param {string} text
 * @param {string} language
 */
const colours = (text, language) => coloured(text, language).map(spanOf);

/** @param {Coloured} piece */
const spanOf = ({ text, role }) => (role ? html`<span class=${`code-${role}`}>${text}</span>` : text);
