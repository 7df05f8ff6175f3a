// What a worker has changed: files, lines, and the comments of a person that go back to it as one message.
import { removeWorktree, resumeWith, sendText } from './actions.js';
import { get, workerPath } from './api.js';
import { commentsAt, lineNumber, messageOf, placeComments } from './comments.js';
import { parseDiff } from './diff_parse.js';
import { useDraft } from './dialogs.js';
import { focused, html, useEffect, useLayoutEffect, useMemo, useRef, useState, within } from './dom.js';
import { keep, kept } from './kept.js';
import { useKeys } from './keys.js';
import { useOnce } from './once.js';
import { Arrow, copyText, Loading, Problem, useFetched } from './pieces.js';
import { plain, plainLines } from './safe_text.js';
import { go, workerHref } from './router.js';
import { reveal, toBegin, upperEdge } from './scrolling.js';
import { about, isLive, say } from './store.js';
import { counted, table } from './words.js';

/**
 * @import { Comment } from './comments.js'
 * @import { DiffFile, Line } from './diff_parse.js'
 */

const AGAIN_MS = 3000;
/** What became of a file. */
const SIGNS = table({ added: '+', deleted: '−', modified: '±', touched: '·' });
/** Of a file so many lines are shown at first; more on demand. */
const FIRST_LINES = 600;
const MORE_LINES = 2000;
const LONGEST_LINE = 2000;
/** Larger files are folded at first. */
const FOLDED_LINES = 1500;

/**
 * Where comments are, and what is done about them.
 * @typedef {ReturnType<typeof placeComments>} Placed
 * @typedef {{ placed: Placed, writing: string | null, setWriting: (place: string | null) => void,
 *   write: (path: string, line: Line) => void, add: (path: string, line: Line, text: string) => void,
 *   edit: (id: string, text: string) => void, remove: (id: string) => void, canComment: boolean }} Context
 */

/** What is shown of a worker without a worktree that changed nothing that anybody knows of. */
/** @type {Sent.Diff} */
const NOTHING = { since: null, files: [], diff: '' };

/** @param {{ task: string, instance: string, worker: Sent.Worker, workerKey: string }} props */
export function DiffTab({ task, instance, worker, workerKey }) {
  const [since, setSince] = useState('base');
  const live = isLive(worker);
  const path = workerPath(task, instance, 'diff');
  const [hasTree, setTree] = useState(/** @type {boolean | null} */ (null));
  /** @returns {Promise<Sent.Diff>} */
  const load = async () => {
    if (!hasTree && !worker.changedFiles) {
      if (hasTree === false && live) return NOTHING;
      const known = await get(workerPath(task, instance));
      setTree(Boolean(known.worktree));
      if (!known.worktree && !known.result?.touchedFiles?.length) return NOTHING;
    }
    return get(path, { since });
  };
  const everyMs = live && hasTree !== false ? AGAIN_MS : 0;
  const { data, error, isLoading, again } = useFetched(load, [path, since, live], everyMs);
  const [comments, setComments] = useState(() => kept(`comments ${workerKey}`, /** @type {Comment[]} */ ([])));
  const [writing, setWriting] = useState(/** @type {string | null} */ (null));
  const [folds, setFolds] = useState(() => /** @type {Map<string, boolean>} */ (new Map()));
  const box = useRef(null);
  /** @param {Comment[]} next */
  const put = (next) => {
    setComments(next);
    keep(`comments ${workerKey}`, next);
  };
  // A diff that is fetched again is drawn again only if it is another one.
  const files = useMemo(() => parseDiff(data?.diff ?? ''), [data?.diff]);
  const placed = useMemo(() => placeComments(comments, files), [comments, files]);

  const toggleSince = () => setSince(since === 'base' ? 'turn' : 'base');
  const rows = () => [...(box.current?.querySelectorAll('.line-button') ?? [])];
  /** @param {number} by */
  const move = (by) => {
    const all = rows();
    if (!all.length) return false;
    const at = all.findIndex((one) => one === document.activeElement);
    const next = at >= 0 ? at + by : all.findIndex((one) => one.getBoundingClientRect().top >= upperEdge() + 60);
    const element = all[Math.max(0, Math.min(all.length - 1, next))];
    element?.focus({ preventScroll: true });
    reveal(element);
    return true;
  };
  useKeys({
    since: toggleSince,
    down: () => move(1),
    up: () => move(-1),
    first: toBegin,
    comment: () => {
      const place = focused()?.dataset.place;
      if (about.readOnly) return 'this page may only look';
      if (!place) return 'no line is under the cursor: j goes to one';
      setWriting(place);
      return true;
    },
  });
  /**
   * @param {string} path_
   * @param {Line} line
   */
  const write = (path_, line) => setWriting(`${line.side} ${lineNumber(line)} ${path_}`);
  /**
   * @param {string} path_
   * @param {Line} line
   * @param {string} text
   */
  const add = (path_, line, text) => {
    put([...comments, { id: `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`, path: path_, side: line.side, line: lineNumber(line), code: line.text, text }]);
    setWriting(null);
  };
  /**
   * @param {string} id
   * @param {string} text
   */
  const edit = (id, text) => put(comments.map((one) => (one.id === id ? { ...one, text } : one)));
  /** @param {string} id */
  const remove = (id) => put(comments.filter((one) => one.id !== id));

  if (!data && error) {
    return html`<${Problem} error=${error} /><${Tray} task=${task} instance=${instance} worker=${worker} comments=${comments} placed=${placed} edit=${edit} remove=${remove} clear=${() => put([])} />`;
  }
  if (!data && isLoading) return html`<${Loading} what="Comparing" />`;
  if (!data || data === NOTHING) return html`<div class="empty"><p>It has no worktree of its own, and touched no files that its program told of.</p></div>`;
  const { leftOut = [] } = data;
  const stats = new Map((data.files ?? []).map((one) => [one.path, one]));
  const context = { placed, writing, setWriting, write, add, edit, remove, canComment: !about.readOnly };
  /** @param {string} name */
  const scrollTo = (name) => reveal(within(box.current, `[data-file="${CSS.escape(name)}"]`), 'start');
  /**
   * @param {string} name
   * @param {boolean} isOpen
   */
  const open = (name, isOpen) => setFolds((was) => new Map(was).set(name, isOpen));
  return html`<div class="diff-tools">
      <div class="switch" role="group" aria-label="Compared with">
        <button type="button" aria-pressed=${String(since === 'base')} onClick=${() => setSince('base')}>Since the base</button>
        <button type="button" aria-pressed=${String(since === 'turn')} onClick=${() => setSince('turn')}>Since the last turn</button>
      </div>
      <span class="quiet">${counted(data.fileCount ?? data.files?.length ?? 0, 'file')}
        ${data.until === 'end' ? ', as it was at its end' : ''}${data.origin ? html`, from <code class="foreign">${plain(data.origin).slice(0, 12)}</code>` : ''}</span>
      <span class="grow"></span>
      <button type="button" class="small" onClick=${again}>Compare again</button>
      ${worker.status && !live && data.since !== null && !about.readOnly && html`<button type="button" class="small danger" onClick=${() => removeWorktree(task, instance, again)}>Remove worktree…</button>`}
    </div>
    ${error && html`<${Problem} error=${error} />`}
    ${data.cut && html`<p class="quiet">The diff is too large to be shown whole: its beginning is below.</p>`}
    ${leftOut.length > 0 && html`<p class="quiet">Left out: ${leftOut.map((one) => `${plain(one.path)} (${plain(one.why)})`).join(', ')}</p>`}
    ${!(data.files ?? []).length && !files.length ? html`<div class="empty"><p>${since === 'turn' ? 'Nothing has changed since its last turn.' : 'It has changed nothing.'}</p></div>` : html`
      <nav class="file-list" aria-label="Changed files"><ul>${(data.files ?? []).slice(0, 1000).map((one) => html`<li key=${one.path}><button type="button" class="plain" onClick=${() => {
        open(one.path, true);
        requestAnimationFrame(() => scrollTo(one.path));
      }}>
        <span class=${`status ${one.status}`} title=${plain(one.status)}><span aria-hidden="true">${SIGNS[one.status] ?? '±'}</span><span class="unseen">${plain(one.status)}</span></span><span class="path foreign">${plain(one.path)}</span>
        <${Numbers} added=${one.added} removed=${one.removed} /></button></li>`)}</ul></nav>
      <div class="files" ref=${box}>${files.map((file) => html`<${FileDiff} key=${file.path} file=${file} stat=${stats.get(file.path)} context=${context} fold=${folds.get(file.path)} setOpen=${(isOpen) => open(file.path, isOpen)} />`)}</div>`}
    <${Tray} task=${task} instance=${instance} worker=${worker} comments=${comments} placed=${placed} edit=${edit} remove=${remove} clear=${() => put([])} />`;
}

/** @param {{ added?: number | null, removed?: number | null }} props */
function Numbers({ added, removed }) {
  if (added == null && removed == null) return html`<span class="quiet">not text</span>`;
  return html`<span class="numbers"><span class="plus">+${added ?? 0}</span> <span class="minus">−${removed ?? 0}</span><span class="unseen"> lines</span></span>`;
}

/**
 * @param {{ file: DiffFile, stat?: Sent.ChangedFile, context: Context, fold?: boolean,
 *   setOpen: (isOpen: boolean) => void }} props
 */
function FileDiff({ file, stat, context, fold, setOpen }) {
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const isOpen = fold ?? total <= FOLDED_LINES;
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
      <${Numbers} added=${stat ? stat.added : file.added} removed=${stat ? stat.removed : file.removed} /></h2>
    ${isOpen && html`<div class="code">
      ${file.notes.filter((note) => !/^(similarity|rename )/.test(note)).map((note) => html`<p class="quiet note foreign" key=${note}>${plain(note)}</p>`)}
      ${shown.map(({ hunk, lines }, at) => html`<div class="hunk" key=${at} style=${{ containIntrinsicHeight: `auto ${(lines.length + 1) * 20}px` }}>
        <div class="hunk-head foreign">@@ ${lines[0] ? lineNumber(lines[0]) : ''} ${plain(hunk.heading)}</div>
        ${lines.map((line, index) => html`<${LineRow} key=${index} line=${line} path=${file.path} context=${context} />`)}
      </div>`)}
      ${total > most && html`<p class="more"><button type="button" onClick=${() => setMost(most + MORE_LINES)}>Show more of this file (${counted(total - most, 'line')})</button></p>`}
      ${!file.hunks.length && !file.notes.length && html`<p class="quiet note">No lines.</p>`}
    </div>`}
  </section>`;
}

/** @param {{ line: Line, path: string, context: Context }} props */
function LineRow({ line, path, context }) {
  const number = lineNumber(line);
  const place = `${line.side} ${number} ${path}`;
  const here = commentsAt(context.placed.byPlace, path, line);
  const isWriting = context.writing === place;
  const text = line.text.length > LONGEST_LINE ? `${line.text.slice(0, LONGEST_LINE)}… (${counted(line.text.length - LONGEST_LINE, 'more character')})` : line.text;
  const sign = { add: '+', remove: '−', context: ' ' }[line.kind];
  return html`<div class=${`code-line ${line.kind}`}>
      ${context.canComment
        ? html`<button type="button" class="line-button" data-place=${place} tabindex="-1" onClick=${() => context.write(path, line)}
            aria-label=${`Comment on ${line.kind === 'remove' ? 'removed ' : ''}line ${number} of ${plain(path)}`}><span class="old">${line.old ?? ''}</span><span class="new">${line.new ?? ''}</span><span class="plus-mark" aria-hidden="true">+</span></button>`
        : html`<span class="line-button"><span class="old">${line.old ?? ''}</span><span class="new">${line.new ?? ''}</span></span>`}
      <span class="mark-sign"><span aria-hidden="true">${sign}</span>${line.kind !== 'context' && html`<span class="unseen">${line.kind === 'add' ? 'added' : 'removed'}: </span>`}</span><code class="foreign">${plainLines(text) || ' '}</code>
    </div>
    ${here.map((comment) => html`<${CommentBox} key=${comment.id} comment=${comment} edit=${context.edit} remove=${context.remove} class="comment" />`)}
    ${isWriting && html`<${CommentForm} label=${`Comment on line ${number} of ${plain(path)}`} draft=${`comment.${place}`} onDone=${(words) => context.add(path, line, words)} onLeave=${() => context.setWriting(null)} />`}`;
}

/**
 * @param {{ label: string, first?: string, draft?: string, onDone: (text: string) => void,
 *   onLeave: () => void }} props
 */
function CommentForm({ label, first = '', draft, onDone, onLeave }) {
  const [text, setText] = useDraft(draft, first);
  const field = useRef(null);
  const before = useRef(focused());
  useLayoutEffect(() => { // What is typed right behind the click arrives.
    field.current.focus();
    return () => before.current?.isConnected && before.current.focus({ preventScroll: true });
  }, []);
  /** @param {Event} event */
  const done = (event) => {
    event?.preventDefault();
    if (!text.trim()) {
      field.current.focus();
      return;
    }
    setText('');
    onDone(text);
  };
  return html`<form class="comment-form" onSubmit=${done}>
    <label class="field"><span class="unseen">${label}</span><textarea ref=${field} rows="3" value=${text} placeholder="What should it do about this line?" onInput=${(event) => setText(event.target.value)}
      onKeyDown=${(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) done(event);
        else if (event.key === 'Escape') {
          event.stopPropagation();
          onLeave();
        }
      }}></textarea></label>
    <div class="buttons"><button type="button" class="small" onClick=${onLeave}>Not now</button><button class="small primary">Add the comment</button><span class="hint">Ctrl+Enter adds it; all are sent together.</span></div>
  </form>`;
}

/**
 * A comment, which can be changed and deleted.
 * @param {{ comment: Comment, edit: (id: string, text: string) => void, remove: (id: string) => void,
 *   class: string }} props
 */
function CommentBox({ comment, edit, remove, class: name }) {
  const [isEditing, setEditing] = useState(false);
  if (isEditing) {
    return html`<${CommentForm} label="Change the comment" first=${comment.text} onDone=${(text) => {
      edit(comment.id, text);
      setEditing(false);
    }} onLeave=${() => setEditing(false)} />`;
  }
  return html`<div class=${name}><p class="foreign">${plainLines(comment.text)}</p>
    <div class="buttons"><button type="button" class="small" onClick=${() => setEditing(true)}>Change</button><button type="button" class="small" onClick=${() => remove(comment.id)}>Delete</button></div></div>`;
}

/**
 * All comments that were not sent yet, and what is done with them.
 * @param {{ task: string, instance: string, worker: Sent.Worker, comments: Comment[], placed: Placed,
 *   edit: (id: string, text: string) => void, remove: (id: string) => void, clear: () => void }} props
 */
function Tray({ task, instance, worker, comments, placed, edit, remove, clear }) {
  const [isOpen, setOpen] = useState(false);
  const [overall, setOverall] = useDraft(`overall.${task}/${instance}`);
  const once = useOnce(`comments.${task}/${instance}`);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (comments.length) once.held();
  }, [comments]);
  if (!comments.length) return null;
  const live = isLive(worker);
  const canSend = !about.readOnly && (live || worker.driver);
  const message = messageOf(comments, placed.lines, overall);
  const send = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await once.run(async (key) => {
        if (live) await sendText(task, instance, message, key);
        else {
          const name = await resumeWith(task, instance, message, key);
          if (name !== instance) go(workerHref(task, name));
        }
      });
      clear();
      setOverall('');
    } catch (refusal) {
      setError(refusal);
    }
    setBusy(false);
  };
  return html`<section class="tray" aria-label="Comments to be sent">
    <div class="tray-head">
      <button type="button" class="fold" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}><${Arrow} isOpen=${isOpen} />${counted(comments.length, 'comment')}${placed.outdated.length > 0 && html` <span class="blocked">${placed.outdated.length} outdated</span>`}</button>
      <span class="grow"></span>
      <button type="button" onClick=${async () => {
        await copyText(message);
        say('The message was copied.');
      }}>Copy</button>
      ${canSend && html`<button type="button" class="primary" onClick=${send} disabled=${isBusy}>${isBusy ? 'Sending…' : live ? 'Send all' : 'Continue it with all'}</button>`}
    </div>
    ${!canSend && !about.readOnly && html`<p class="hint">A command that has ended takes no message. Copy them instead.</p>`}
    <${Problem} error=${error} />
    ${isOpen && html`<div class="tray-body">
      <ul>${comments.map((comment) => html`<${TrayComment} key=${comment.id} comment=${comment} line=${placed.lines.get(comment.id)} edit=${edit} remove=${remove} />`)}</ul>
      <label class="field"><span>Said before all of them (if you leave it empty, a plain sentence)</span><textarea rows="2" value=${overall} onInput=${(event) => setOverall(event.target.value)}></textarea></label>
      <details><summary>The message</summary><pre class="preview foreign">${plainLines(message)}</pre></details>
    </div>`}
  </section>`;
}

/**
 * @param {{ comment: Comment, line?: number, edit: (id: string, text: string) => void,
 *   remove: (id: string) => void }} props
 */
function TrayComment({ comment, line, edit, remove }) {
  return html`<li><p class="where"><code class="foreign">${plain(comment.path)}:${line ?? comment.line}</code>${line === undefined && html` <span class="tag blocked">outdated</span>`}</p>
    <pre class="foreign">${plain(comment.code.slice(0, 300))}</pre>
    <${CommentBox} comment=${comment} edit=${edit} remove=${remove} class="said-text" /></li>`;
}
