// What a worker has changed: files, lines, and the comments of a person that go back to it as one message.
import { removeWorktree } from './actions.js';
import { get, workerPath } from './api.js';
import { Tray } from './comment_boxes.js';
import { lineNumber, placeComments } from './comments.js';
import { FileList } from './diff_files.js';
import { FileDiff } from './diff_lines.js';
import { parseDiff } from './diff_parse.js';
import { focused, html, main, onMove, useLayoutEffect, useMemo, useRef, useState, within } from './dom.js';
import { useKept } from './kept.js';
import { useKeys } from './keys.js';
import { Loading, Problem, useFetched } from './pieces.js';
import { noteQuery, route } from './router.js';
import { plain } from './safe_text.js';
import { isAtEnd, reveal, toBegin, topOf, upperEdge, useScrolled } from './scrolling.js';
import { about, isLive } from './store.js';
import { marked, viewOf } from './viewed_marks.js';
import { counted } from './words.js';

/**
 * @import { Comment } from './comments.js'
 * @import { DiffFile, Line } from './diff_parse.js'
 * @import { Marks } from './viewed_marks.js'
 */

const AGAIN_MS = 3000;
/** What stays at the top while one scrolls: the tabs, the tools, the name of a file. */
const COVERED_PX = 94;
const WRAP = 'agentctl.wrap-diff';
/** @type {Comment[]} */
const NO_COMMENTS = [];
/** @type {Marks} */
const NO_MARKS = {};

/**
 * @param {Element} one
 * @param {Element | null} other
 */
const isBefore = (one, other) => Boolean(
  other && one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING,
);

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
  const { data, error, isLoading, again } = useFetched(load, [path, since], everyMs, [live]);
  // A diff that is fetched again is drawn again only if it is another one.
  const files = useMemo(() => parseDiff(data?.diff ?? ''), [data?.diff]);
  const notes = useComments(workerKey, files);

  if (!data && isLoading) return html`<${Loading} what="Comparing" />`;
  if (data === NOTHING) return html`<div class="empty"><p>It has no worktree of its own, and touched no files that its program told of.</p></div>`;
  const tray = html`<${Tray} task=${task} instance=${instance} worker=${worker} comments=${notes.comments} placed=${notes.placed} edit=${notes.edit} remove=${notes.remove} clear=${notes.clear} />`;
  if (!data) return html`<${Problem} error=${error} />${tray}`;
  return html`<${Changes} key=${since} workerKey=${workerKey} data=${data} files=${files} notes=${notes} since=${since} setSince=${setSince} again=${again} error=${error} />
    ${tray}
    ${worker.status && !live && data.since !== null && !about.readOnly && html`<p class="after-review"><button type="button" class="small" onClick=${() => removeWorktree(task, instance, again)}>Remove the worktree…</button></p>`}`;
}

/**
 * The comments of a person on what a worker has changed, kept until they are sent.
 * @param {string} workerKey
 * @param {DiffFile[]} files
 */
function useComments(workerKey, files) {
  const name = `comments ${workerKey}`;
  const [comments, change] = useKept(name, NO_COMMENTS);
  const [writing, setWriting] = useState(/** @type {string | null} */ (null));
  const placed = useMemo(() => placeComments(comments, files), [comments, files]);
  return {
    comments,
    placed,
    writing,
    setWriting,
    canComment: !about.readOnly,
    /**
     * @param {string} path
     * @param {Line} line
     */
    write: (path, line) => setWriting(`${line.side} ${lineNumber(line)} ${path}`),
    /**
     * @param {string} path
     * @param {Line} line
     * @param {string} text
     */
    add: (path, line, text) => {
      const made = { id: `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`, path, side: line.side, line: lineNumber(line), code: line.text, text };
      change((now) => [...now, made]);
      setWriting(null);
    },
    /**
     * @param {string} id
     * @param {string} text
     */
    edit: (id, text) => change((now) => now.map((one) => (one.id === id ? { ...one, text } : one))),
    /** @param {string} id */
    remove: (id) => change((now) => now.filter((one) => one.id !== id)),
    /**
     * Take away what was sent, and not what was written or changed meanwhile.
     * @param {Comment[]} sent
     */
    clear: (sent) => change((now) => {
      const isSent = (/** @type {Comment} */ { id, text }) => sent.some((one) => one.id === id && one.text === text);
      return now.filter((one) => !isSent(one));
    }),
  };
}

/**
 * The files that somebody has viewed, kept with the worker: what has changed since its last turn is another view.
 * @param {string} workerKey
 * @param {string} since
 * @param {DiffFile[]} files
 */
function useViewed(workerKey, since, files) {
  const name = `viewed ${workerKey} ${since}`;
  const [marks, change] = useKept(name, NO_MARKS);
  const views = useMemo(() => new Map(files.map((one) => [one.path, viewOf(marks, one)])), [marks, files]);
  return {
    views,
    /** @param {string} path */
    of: (path) => views.get(path) ?? '',
    /**
     * @param {DiffFile} file
     * @param {boolean} isViewed
     */
    set: (file, isViewed) => change((now) => marked(now, file, isViewed)),
  };
}

/**
 * The files, and their lines beside or below them.
 * @param {{ workerKey: string, data: Sent.Diff, files: DiffFile[], notes: ReturnType<typeof useComments>,
 *   since: string, setSince: (since: string) => void, again: () => void, error: Refused | null }} props
 */
function Changes({ workerKey, data, files, notes, since, setSince, again, error }) {
  const [folds, setFolds] = useState(() => /** @type {Map<string, boolean>} */ (new Map()));
  const [isWrapped, setWrapped] = useState(localStorage.getItem(WRAP) !== 'no');
  const [current, setCurrent] = useState('');
  const box = useRef(null);
  const viewed = useViewed(workerKey, since, files);
  const stats = new Map((data.files ?? []).map((one) => [one.path, one]));

  /** @param {string} path */
  const section = (path) => within(box.current, `[data-file="${CSS.escape(path)}"]`);
  /** The file that the reader went to: it may not get to the top, so it is the current one until they scroll. */
  const goal = useRef({ path: '', isLeft: false });
  // Else the one whose lines are at the top of the screen; at the end of the page the last one.
  const look = () => {
    const all = [...(box.current?.children ?? [])];
    const { path, isLeft } = goal.current;
    const edge = main().scrollTop && isAtEnd() ? Infinity : upperEdge() + COVERED_PX + 8;
    const passed = all.filter((one) => (topOf(one) ?? 0) <= edge);
    const seen = passed[passed.length - 1]?.dataset.file ?? files[0]?.path ?? '';
    setCurrent(!isLeft && path && section(path) ? path : seen);
  };
  /** @param {string} path */
  const aim = (path) => {
    goal.current = { path, isLeft: false };
    look();
  };
  const frame = useRef(0);
  useScrolled(() => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      look();
    });
  });
  useLayoutEffect(look, [files]);
  useLayoutEffect(() => {
    const over = new AbortController();
    onMove(() => {
      goal.current.isLeft = true;
    }, over.signal);
    return () => {
      over.abort();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  /**
   * @param {string} path
   * @param {boolean} isOpen
   */
  const setOpen = (path, isOpen) => setFolds((was) => new Map(was).set(path, isOpen));
  /** @param {string} path */
  const show = (path) => {
    reveal(section(path), 'start');
    noteQuery('file', path);
    aim(path);
  };
  /** @param {string} path */
  const open = (path) => {
    setOpen(path, true);
    requestAnimationFrame(() => box.current && show(path));
  };
  // What the address names is at the top when one comes.
  const wanted = useRef(route.place.query.get('file'));
  useLayoutEffect(() => {
    if (!wanted.current || !section(wanted.current)) return;
    reveal(section(wanted.current), 'start');
    aim(wanted.current);
    wanted.current = null;
  }, [files]);

  /** @param {number} by */
  const moveFile = (by) => {
    const at = files.findIndex((one) => one.path === current) + by;
    if (!files[at]) return by > 0 ? 'this is the last file' : 'this is the first file';
    show(files[at].path);
    return true;
  };
  /**
   * @param {DiffFile} file
   * @param {boolean} isViewed
   */
  const setViewed = (file, isViewed) => {
    viewed.set(file, isViewed);
    // Folded for as long as the mark counts: what changes again is there to be looked at.
    setFolds((was) => new Map([...was].filter(([path]) => path !== file.path)));
  };
  const toggleWrap = () => {
    localStorage.setItem(WRAP, isWrapped ? 'no' : 'yes');
    setWrapped(!isWrapped);
  };
  /** @param {number} by */
  const moveLine = (by) => {
    const all = [...(box.current?.querySelectorAll('.line-button') ?? [])];
    if (!all.length) return false;
    const file = section(current);
    const at = file?.contains(focused()) ? all.findIndex((one) => one === focused()) : -1;
    const seen = all.findIndex((one) => (topOf(one) ?? 0) >= upperEdge() + COVERED_PX && !isBefore(one, file));
    if (at < 0 && seen < 0) return 'there is no line from here on';
    const next = at >= 0 ? at + by : seen;
    const element = all[Math.max(0, Math.min(all.length - 1, next))];
    element.focus({ preventScroll: true });
    reveal(element);
    aim(element.closest('[data-file]').dataset.file);
    return true;
  };
  useKeys({
    since: () => setSince(since === 'base' ? 'turn' : 'base'),
    wrap: toggleWrap,
    down: () => moveLine(1),
    up: () => moveLine(-1),
    first: () => {
      toBegin();
      aim('');
    },
    file: (event) => moveFile(event.key === 'J' ? 1 : -1),
    viewed: () => {
      const file = files.find((one) => one.path === current);
      if (!file) return 'there is no file';
      setViewed(file, viewed.of(file.path) !== 'viewed');
      requestAnimationFrame(() => {
        reveal(section(current), 'start');
        aim(current);
      });
      return true;
    },
    comment: () => {
      const place = focused()?.dataset.place;
      if (about.readOnly) return 'this page may only look';
      if (!place) return 'no line is under the cursor: j goes to one';
      notes.setWriting(place);
      return true;
    },
  });
  // The place of the reader changes with each scroll: that draws no line anew.
  const drawn = useMemo(() => files.map((file) => html`<${FileDiff} key=${file.path} file=${file} stat=${stats.get(file.path)} context=${notes} view=${viewed.of(file.path)} fold=${folds.get(file.path)}
    setOpen=${(/** @type {boolean} */ isOpen) => setOpen(file.path, isOpen)} setViewed=${(/** @type {boolean} */ isViewed) => setViewed(file, isViewed)} />`), [data, files, notes.placed, notes.writing, viewed.views, folds]);
  const { leftOut = [] } = data;
  const listed = data.files ?? [];
  const at = files.findIndex((one) => one.path === current);
  return html`<div class="diff-tools">
      <div class="switch" role="group" aria-label="Compared with">
        <button type="button" aria-pressed=${String(since === 'base')} onClick=${() => setSince('base')}>Since the base</button>
        <button type="button" aria-pressed=${String(since === 'turn')} onClick=${() => setSince('turn')}>Since the last turn</button>
      </div>
      <span class="quiet">${counted(data.fileCount ?? listed.length, 'file')}
        ${data.until === 'end' ? ', as it was at its end' : ''}${data.origin ? html`, from <code class="foreign">${plain(data.origin).slice(0, 12)}</code>` : ''}</span>
      <span class="grow"></span>
      ${files.length > 1 && html`<span class="steps"><button type="button" class="small" disabled=${at <= 0} onClick=${() => moveFile(-1)}><span class="unseen">File before</span><span aria-hidden="true">↑</span><kbd aria-hidden="true">K</kbd></button><span class="quiet">${at + 1} of ${files.length}</span><button type="button" class="small" disabled=${at >= files.length - 1} onClick=${() => moveFile(1)}><span class="unseen">Next file</span><span aria-hidden="true">↓</span><kbd aria-hidden="true">J</kbd></button></span>`}
      <button type="button" class="small" aria-pressed=${String(isWrapped)} onClick=${toggleWrap}>Wrap<kbd aria-hidden="true">w</kbd></button>
      <button type="button" class="small" onClick=${again}>Compare again</button>
    </div>
    ${error && html`<${Problem} error=${error} />`}
    ${data.cut && html`<p class="quiet">The diff is too large to be shown whole: its beginning is below.</p>`}
    ${leftOut.length > 0 && html`<p class="quiet">Left out: ${leftOut.map((one) => `${plain(one.path)} (${plain(one.why)})`).join(', ')}</p>`}
    ${!listed.length && !files.length ? html`<div class="empty"><p>${since === 'turn' ? 'Nothing has changed since its last turn.' : 'It has changed nothing.'}</p></div>` : html`<div class="diff-body">
      <${FileList} files=${listed} current=${current} viewOf=${viewed.of} open=${open} />
      <div class=${`files${isWrapped ? ' wrapped' : ''}`} ref=${box}>${drawn}</div>
    </div>`}`;
}
