// The files that a result names: each is looked at here as far as its beginning goes, or kept by the browser. A link is
// not signed, so the page fetches them.
import { getBlob, getBeginning, workerPath } from './api.js';
import { FileDiff } from './diff_lines.js';
import { parseDiff } from './diff_parse.js';
import { html, useEffect, useMemo, useState } from './dom.js';
import { Markdown } from './markdown_view.js';
import { waitedFor } from './outstanding.js';
import { Command, Loading, Problem } from './pieces.js';
import { plain, plainLines } from './safe_text.js';
import { say, sayRefusal } from './store.js';
import { imageType, textOf, viewerOf } from './text/file_kinds.js';
import { bytes, table } from './words.js';

/** @typedef {{ data: Uint8Array, size: number, state: string }} Beginning as `getBeginning` returns it */

const KEPT_MS = 10_000;
/** So much of a text is shown, and so large an image. */
const MOST_TEXT = 256 << 10;
const MOST_IMAGE = 4 << 20;
const STATES = table({ changed: 'Changed since the result was given.', gone: 'It is not there any more.' });
const NOWHERE = { byPlace: new Map(), outdated: [], lines: new Map() };
const NO_COMMENTS = { placed: NOWHERE, writing: null, canComment: false };
const HOW = { level: 3 };

/**
 * Have the browser keep something as a file.
 * @param {Blob} blob
 * @param {string} name
 */
function keep(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/** @param {{ task: string, instance: string, file: Sent.ResultFile }} props */
export function ResultFile({ task, instance, file }) {
  const { path } = file;
  const [isLoading, setLoading] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const name = path.split('/').pop() ?? path;
  const download = async () => {
    setLoading(true);
    try {
      const where = workerPath(task, instance, 'file');
      const { blob, state } = await waitedFor((begins) => getBlob(where, { path }, begins));
      keep(blob, name);
      if (STATES[state]) say(`${plain(name)}: ${STATES[state]}`);
    } catch (refusal) {
      sayRefusal(refusal, 'Download');
    }
    setLoading(false);
  };
  return html`<${Command} text=${path} /> <span class="quiet">${bytes(file.size)}</span>
    ${STATES[file.now ?? ''] && html` <span class="tag blocked">${STATES[file.now ?? '']}</span>`}
    <button type="button" class="small" aria-expanded=${String(isOpen)} aria-label=${`View ${plain(name)}`} onClick=${() => setOpen(!isOpen)}>View</button>
    <button type="button" class="small" disabled=${isLoading} onClick=${download} aria-label=${`Download ${plain(name)}`}>Download</button>
    ${isOpen && html`<${FileView} task=${task} instance=${instance} path=${path} name=${name} />`}`;
}

/** @param {{ task: string, instance: string, path: string, name: string }} props */
function FileView({ task, instance, path, name }) {
  const [found, setFound] = useState(/** @type {Beginning | null} */ (null));
  const [error, setError] = useState(null);
  useEffect(() => {
    const leaving = new AbortController();
    const where = workerPath(task, instance, 'file');
    /** @param {number} most */
    const load = (most) => getBeginning(where, { path }, most, leaving.signal);
    load(MOST_TEXT).then((first) => {
      const isMore = imageType(first.data) && first.size > MOST_TEXT && first.size <= MOST_IMAGE;
      return isMore ? load(MOST_IMAGE) : first;
    }).then(setFound, (refusal) => leaving.signal.aborted || setError(refusal));
    return () => leaving.abort();
  }, [task, instance, path]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!found) return html`<${Loading} what=${`Reading ${plain(name)}`} />`;
  return html`<section class="file-view" aria-label=${plain(name)}>
    ${STATES[found.state] && html`<p class="blocked">${STATES[found.state]}</p>`}
    <${Content} found=${found} path=${path} name=${name} />
  </section>`;
}

/** @param {{ found: Beginning, path: string, name: string }} props */
function Content({ found, path, name }) {
  const { data, size } = found;
  const type = imageType(data);
  const text = useMemo(() => (type ? null : textOf(data)), [data]);
  if (type && data.length === size) return html`<${Picture} data=${data} type=${type} name=${name} />`;
  if (type) return html`<p class="quiet">An image of ${bytes(size)}: too large to be shown here.</p>`;
  if (text === null) return html`<p class="quiet">It is not a text: only a download has it.</p>`;
  return html`<${Text} text=${text} viewer=${viewerOf(path)} />
    ${data.length < size && html`<p class="quiet">The first ${bytes(data.length)} of ${bytes(size)}; a download has all of it.</p>`}`;
}

/** @param {{ text: string, viewer: string }} props */
function Text({ text, viewer }) {
  const files = useMemo(() => (viewer === 'diff' ? parseDiff(text) : []), [text, viewer]);
  const [folds, setFolds] = useState(/** @type {Record<string, boolean>} */ ({}));
  if (viewer === 'markdown') return html`<${Markdown} text=${text} how=${HOW} />`;
  if (!files.length) return html`<div class="pre foreign mono">${plainLines(text)}</div>`;
  return html`<div class="diff">${files.map((file) => html`<${FileDiff} key=${file.path} file=${file} context=${NO_COMMENTS} view="" fold=${folds[file.path]}
    setOpen=${(/** @type {boolean} */ isOpen) => setFolds({ ...folds, [file.path]: isOpen })} />`)}</div>`;
}

/**
 * The type is one of a few that the first bytes have: whatever the file says, nothing in it is run.
 * @param {{ data: Uint8Array, type: string, name: string }} props
 */
function Picture({ data, type, name }) {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (data)], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type]);
  return url && html`<img class="result-image" src=${url} alt=${plain(name)} />`;
}
