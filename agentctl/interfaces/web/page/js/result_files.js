// The files that a result names: a link is not signed, so each is fetched by the page and then kept by the browser.
import { getBlob, workerPath } from './api.js';
import { html, useState } from './dom.js';
import { plain } from './safe_text.js';
import { sayRefusal } from './store.js';

const KEPT_MS = 10_000;

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

/** @param {{ task: string, instance: string, path: string }} props */
export function FileButton({ task, instance, path }) {
  const [isLoading, setLoading] = useState(false);
  const name = path.split('/').pop() ?? path;
  const download = async () => {
    setLoading(true);
    try {
      keep(await getBlob(workerPath(task, instance, 'file'), { path }), name);
    } catch (refusal) {
      sayRefusal(refusal, 'Download');
    }
    setLoading(false);
  };
  return html`<button type="button" class="small" disabled=${isLoading} onClick=${download} aria-label=${`Download ${plain(name)}`}>Download</button>`;
}
