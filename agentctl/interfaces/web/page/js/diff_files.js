// The list of changed files: beside their lines where there is room, else above them and folded.
import { html, useLayoutEffect, useRef, useState, within } from './dom.js';
import { Arrow } from './pieces.js';
import { plain } from './safe_text.js';
import { counted, table } from './words.js';

/** More files than a person looks through; their lines are below all the same. */
const MOST = 1000;
/** What became of a file. */
const SIGNS = table({ added: '+', deleted: '−', modified: '±', touched: '·' });

/** @param {{ added?: number | null, removed?: number | null }} props */
export function Numbers({ added, removed }) {
  if (added == null && removed == null) return html`<span class="quiet">not text</span>`;
  return html`<span class="numbers"><span class="plus">+${added ?? 0}</span> <span class="minus">−${removed ?? 0}</span><span class="unseen"> lines</span></span>`;
}

/**
 * A path whose name stays whole where it is cut: the folders in front of it are what may go.
 * @param {{ path: string }} props
 */
export function FilePath({ path }) {
  const at = path.lastIndexOf('/') + 1;
  return html`<span class="path foreign" title=${plain(path)}>${at > 0 && html`<span class="folders">${plain(path.slice(0, at))}</span>`}<span class="base">${plain(path.slice(at))}</span></span>`;
}

/**
 * @param {{ files: Sent.ChangedFile[], current: string, viewOf: (path: string) => string,
 *   open: (path: string) => void }} props
 */
export function FileList({ files, current, viewOf, open }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef(null);
  const viewed = files.filter((one) => viewOf(one.path) === 'viewed').length;
  // Beside the lines, the list goes with them; it has a height of its own, and never scrolls the page.
  useLayoutEffect(() => {
    const item = within(box.current, '[aria-current=true]');
    if (!item) return;
    const [seen, its] = [box.current.getBoundingClientRect(), item.getBoundingClientRect()];
    if (its.top < seen.top) box.current.scrollTop -= seen.top - its.top;
    else if (its.bottom > seen.bottom) box.current.scrollTop += its.bottom - seen.bottom;
  }, [current]);
  return html`<nav class=${`file-list${isOpen ? ' open' : ''}`} aria-label="Changed files">
    <button type="button" class="plain fold" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}><${Arrow} isOpen=${isOpen} />${counted(files.length, 'file')}${viewed > 0 && html` <span class="quiet">${viewed} viewed</span>`}</button>
    <ul ref=${box}>${files.slice(0, MOST).map((one) => {
      const view = viewOf(one.path);
      return html`<li key=${one.path}><button type="button" class=${`plain ${view}`} aria-current=${one.path === current ? 'true' : undefined} onClick=${() => {
        setOpen(false);
        open(one.path);
      }}>
        <span class=${`status ${one.status}`} title=${plain(one.status)}><span aria-hidden="true">${SIGNS[one.status] ?? '±'}</span><span class="unseen">${plain(one.status)}</span></span><${FilePath} path=${one.path} />
        <${Numbers} added=${one.added} removed=${one.removed} />
        <span class="view">${view === 'viewed' && html`<span aria-hidden="true">✓</span><span class="unseen">viewed</span>`}${view === 'changed' && html`<span class="tag blocked">changed</span>`}</span></button></li>`;
    })}</ul>
  </nav>`;
}
