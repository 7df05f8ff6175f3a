// A text that somebody has written as Markdown, drawn part by part, or as its source.
import { h, html, useEffect, useMemo, useState } from './dom.js';
import { keep, kept } from './kept.js';
import { plainLines } from './safe_text.js';
import { changedNow, useTopics } from './store.js';
import { partsOf, textIn } from './text/markdown.js';
import { markdown } from './text/markdown_library.js';
import { counted } from './words.js';

/** @import { How, Mark } from './text/markdown.js' */

/** A text of more is folded at first, between two of its blocks. */
const FOLDED_LINES = 40;
const FOLDED_CHARACTERS = 5000;

/**
 * @param {Mark} mark
 * @returns {object | string}
 */
const drawn = (mark) => (typeof mark === 'string' ? mark : h(mark.tag, mark.attributes, mark.children.map(drawn)));

/** @param {Mark} mark */
function heightOf(mark) {
  const text = textIn([mark]);
  return { lines: text.split('\n').length + rowsIn(mark), characters: text.length };
}

/**
 * @param {Mark} mark
 * @returns {number}
 */
const rowsIn = (mark) => (typeof mark === 'string' ? 0
  : mark.children.reduce((sum, one) => sum + rowsIn(one), ['li', 'tr', 'p', 'br', 'pre'].includes(mark.tag) ? 1 : 0));

/**
 * How many of the first blocks are shown of a text that is folded.
 * @param {Mark[]} marks
 */
function unfolded(marks) {
  let [lines, characters] = [0, 0];
  for (const [at, mark] of marks.entries()) {
    const height = heightOf(mark);
    lines += height.lines;
    characters += height.characters;
    if (at > 0 && (lines > FOLDED_LINES || characters > FOLDED_CHARACTERS)) return at;
  }
  return marks.length;
}

/**
 * Whether texts are shown as their source, in one view; that is kept.
 * @param {string} view
 * @returns {[boolean, () => void]}
 */
export function useSource(view) {
  useTopics('source');
  const isSource = kept(`source.${view}`, false);
  return [isSource, () => {
    keep(`source.${view}`, isSource ? null : true);
    changedNow('source');
  }];
}

/** @param {{ isSource: boolean, toggle: () => void }} props */
export function SourceSwitch({ isSource, toggle }) {
  return html`<button type="button" class="small source-switch" aria-pressed=${String(isSource)} onClick=${toggle}>Source</button>`;
}

/**
 * @param {{ text: string, how: How, isFolded?: boolean, onFold?: () => void, isCut?: boolean }} props `onFold`: a long
 *   text may be folded; `isCut`: there is more of it at the server
 */
export function Markdown({ text, how, isFolded = false, onFold, isCut = false }) {
  useTopics('markdown');
  const parts = useMemo(() => partsOf(text), [text]);
  const [count, setCount] = useState(1);
  const isGrowing = !isFolded && count < parts.length;
  // Each part is a frame of its own: however long a text is, the page answers meanwhile.
  useEffect(() => {
    if (!isGrowing) return undefined;
    const timer = setTimeout(() => setCount((now) => now + 1));
    return () => clearTimeout(timer);
  }, [isGrowing, count]);
  const first = useMemo(() => markdown.read?.(parts[0], how) ?? null, [parts[0], markdown.read]);
  if (!first) return html`<span class="long foreign">${(how.safe ?? plainLines)(text)}</span>`;
  const shown = onFold ? unfolded(first) : first.length;
  const isLong = parts.length > 1 || shown < first.length;
  return html`<div class="markdown foreign">${(isFolded ? first.slice(0, shown) : first).map(drawn)}${!isFolded && parts.slice(1, count).map((part, at) => html`<${Part} key=${at} source=${part} how=${how} />`)}</div>
    ${onFold && (isLong || isCut) && html`<button type="button" class="small plain" onClick=${onFold}>${isCut || isFolded ? `Show all${isCut ? '' : ` (${counted(text.split('\n').length, 'line')})`}` : 'Show less'}</button>`}`;
}

/** @param {{ source: string, how: How }} props */
function Part({ source, how }) {
  const marks = useMemo(() => markdown.read?.(source, how) ?? [], [source]);
  return html`<div class="part">${useMemo(() => marks.map(drawn), [marks])}</div>`;
}
