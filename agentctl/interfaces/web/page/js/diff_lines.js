// The lines of one changed file: what is new, what is gone, the words that differ, and comments below a line.
import { CommentBox, CommentForm } from './comment_boxes.js';
import { commentsAt, lineNumber } from './comments.js';
import { Numbers } from './diff_files.js';
import { html, useMemo, useState } from './dom.js';
import { pairsOf } from './line_pairs.js';
import { Arrow } from './pieces.js';
import { plain, plainLines } from './safe_text.js';
import { wordsDiff } from './text/words_diff.js';
import { counted } from './words.js';

/**
 * @import { Placed } from './comments.js'
 * @import { DiffFile, Line } from './diff_parse.js'
 */

/** Of a file so many lines are shown at first; more on demand. */
const FIRST_LINES = 600;
const MORE_LINES = 2000;
const LONGEST_LINE = 2000;
/** Larger files are folded at first. */
const FOLDED_LINES = 1500;

/** What the list and the name of a file say already. */
const SAID = /^(similarity|rename |(new|deleted) file mode 100644)/;

/**
 * Where comments are, and what is done about them.
 * @typedef {{ placed: Placed, writing: string | null, setWriting: (place: string | null) => void,
 *   write: (path: string, line: Line) => void, add: (path: string, line: Line, text: string) => void,
 *   edit: (id: string, text: string) => void, remove: (id: string) => void, canComment: boolean }} Context
 */

/**
 * @param {{ file: DiffFile, stat?: Sent.ChangedFile, context: Context, fold?: boolean, view: string,
 *   setOpen: (isOpen: boolean) => void, setViewed?: (isViewed: boolean) => void }} props `view`: as `viewOf` has it
 */
export function FileDiff({ file, stat, context, fold, view, setOpen, setViewed }) {
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const isOpen = fold ?? (total <= FOLDED_LINES && view !== 'viewed');
  const [most, setMost] = useState(FIRST_LINES);
  let left = most;
  const shown = [];
  for (const hunk of file.hunks) {
    if (left <= 0) break;
    shown.push({ hunk, lines: hunk.lines.slice(0, left) });
    left -= hunk.lines.length;
  }
  return html`<section class="file" data-file=${file.path} aria-label=${plain(file.path)}>
    <h2><button type="button" class="fold" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}><${Arrow} isOpen=${isOpen} />
      <span class="path foreign">${file.oldPath && file.oldPath !== file.path ? `${plain(file.oldPath)} → ` : ''}${plain(file.path)}</span></button>
      <${Numbers} added=${stat ? stat.added : file.added} removed=${stat ? stat.removed : file.removed} />
      ${view === 'changed' && html`<span class="tag blocked">changed since</span>`}
      ${setViewed && html`<label class="check viewed"><input type="checkbox" checked=${view === 'viewed'} aria-label=${`${plain(file.path)} is viewed`} onChange=${(event) => setViewed(event.target.checked)} /><span>Viewed</span></label>`}</h2>
    ${isOpen && html`<div class="code" onScroll=${noteAside}>
      ${file.notes.filter((note) => !SAID.test(note)).map((note) => html`<p class="quiet note foreign" key=${note}>${plain(note)}</p>`)}
      ${shown.map(({ hunk, lines }, at) => html`<${HunkLines} key=${at} heading=${hunk.heading} lines=${lines} path=${file.path} context=${context} />`)}
      ${total > most && html`<p class="more"><button type="button" onClick=${() => setMost(most + MORE_LINES)}>Show more of this file (${counted(total - most, 'line')})</button></p>`}
      ${!file.hunks.length && !file.notes.length && html`<p class="quiet note">No lines.</p>`}
    </div>`}
  </section>`;
}

/**
 * Lines that do not begin at their beginning are marked: what is left of them is not all of them.
 * @param {On<Event, HTMLElement>} event
 */
const noteAside = ({ currentTarget: code }) => code.classList.toggle('aside', code.scrollLeft > 0);

/** @param {{ heading: string, lines: Line[], path: string, context: Context }} props */
function HunkLines({ heading, lines, path, context }) {
  const pairs = useMemo(() => pairsOf(lines), [lines.length, lines[0], lines[lines.length - 1]]);
  return html`<div class="hunk" style=${{ containIntrinsicHeight: `auto ${(lines.length + 1) * 20}px` }}>
    <div class="hunk-head foreign">@@ ${lines[0] ? lineNumber(lines[0]) : ''} ${plain(heading)}</div>
    ${lines.map((line, index) => html`<${LineRow} key=${index} line=${line} other=${pairs.get(line)} path=${path} context=${context} />`)}
  </div>`;
}

/** @param {string} text */
const beginningOf = (text) => (text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}… (${counted(text.length - LONGEST_LINE, 'more character')})` : text);

/**
 * The text of a line; the words that its other half does not have stand out.
 * @param {{ line: Line, other?: Line }} props
 */
function LineText({ line, other }) {
  const pieces = useMemo(() => {
    if (!other || line.text.length > LONGEST_LINE || other.text.length > LONGEST_LINE) return null;
    const [before, after] = line.kind === 'remove' ? [line, other] : [other, line];
    return wordsDiff(before.text, after.text)[line.kind === 'remove' ? 0 : 1];
  }, [line.text, other?.text]);
  if (!pieces) return html`<code class="foreign">${plainLines(beginningOf(line.text)) || ' '}</code>`;
  return html`<code class="foreign">${pieces.map((one, at) => (one.changed ? html`<mark key=${at}>${plainLines(one.text)}</mark>` : plainLines(one.text)))}</code>`;
}

/** @param {{ line: Line, other?: Line, path: string, context: Context }} props */
function LineRow({ line, other, path, context }) {
  const number = lineNumber(line);
  const place = `${line.side} ${number} ${path}`;
  const here = commentsAt(context.placed.byPlace, path, line);
  const isWriting = context.writing === place;
  const sign = { add: '+', remove: '−', context: ' ' }[line.kind];
  // A finger may tap anywhere on the line, which stays as low as code is; a mouse selects text there.
  const touch = (/** @type {PointerEvent} */ event) => {
    if (event.pointerType === 'touch' && getSelection()?.isCollapsed !== false) context.write(path, line);
  };
  return html`<div class=${`code-line ${line.kind}`} onClick=${context.canComment ? touch : undefined}>
      ${context.canComment
        ? html`<button type="button" class="line-button" data-place=${place} tabindex="-1" onClick=${() => context.write(path, line)}
            aria-label=${`Comment on ${line.kind === 'remove' ? 'removed ' : ''}line ${number} of ${plain(path)}`}><span class="old">${line.old ?? ''}</span><span class="new">${line.new ?? ''}</span><span class="plus-mark" aria-hidden="true">+</span></button>`
        : html`<span class="line-button"><span class="old">${line.old ?? ''}</span><span class="new">${line.new ?? ''}</span></span>`}
      <span class="mark-sign"><span aria-hidden="true">${sign}</span>${line.kind !== 'context' && html`<span class="unseen">${line.kind === 'add' ? 'added' : 'removed'}: </span>`}</span><${LineText} line=${line} other=${other} />
    </div>
    ${here.map((comment) => html`<${CommentBox} key=${comment.id} comment=${comment} edit=${context.edit} remove=${context.remove} class="comment" />`)}
    ${isWriting && html`<${CommentForm} label=${`Comment on line ${number} of ${plain(path)}`} draft=${`comment.${place}`} onDone=${(words) => context.add(path, line, words)} onLeave=${() => context.setWriting(null)} />`}`;
}
