// What is known of one worker: its result, its questions, and everything.
import { removeWorktree } from './actions.js';
import { get, workerPath } from './api.js';
import { html, useState } from './dom.js';
import { Markdown, SourceSwitch, useSource } from './markdown_view.js';
import { Command, Foreign, Loading, NotYet, Problem, useFetched } from './pieces.js';
import { ResultFile } from './result_files.js';
import { route, workerHref } from './router.js';
import { distinct, oneLine, plain, plainLines } from './safe_text.js';
import { useLastScroll } from './scrolling.js';
import { ShownRows } from './shown_rows.js';
import { about, isLive } from './store.js';
import { isTelling, labelOf, valueWords } from './text/fact_words.js';
import { textOf } from './text/spans.js';
import { LastLines, outputHref } from './why_view.js';
import { bytes, clock, endWords, signOf, table } from './words.js';

const AGAIN_MS = 3000;
/** The headings of a text come below that of its section. */
const HOW = { level: 3 };
/** What was asked is shown as it was when it was answered. */
const ASKED = { level: 3, safe: distinct, isWholeShown: true };
const SOURCES = table({
  agent: 'its final message', activity: 'what it said last', declared: 'what it declared',
  stdout: 'the end of its output',
});

/** @param {{ task: string, instance: string, worker: Sent.Worker }} props */
export function ResultTab({ task, instance, worker }) {
  const live = isLive(worker);
  /** @returns {Promise<Sent.Result>} */
  const load = () => get(workerPath(task, instance, 'result'));
  const everyMs = live ? AGAIN_MS : 0;
  const { data, error, isLoading, again } = useFetched(load, [task, instance], everyMs, [worker.status]);
  const [isSource, toggle] = useSource('result');
  useLastScroll(Boolean(data));
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  const isOutput = data.source === 'stdout';
  const all = isOutput ? html`<a href=${outputHref(task, instance, 'stdout')}>Output</a>` : html`<${Command} text=${data.path ?? ''} />`;
  /** @param {string} text */
  const written = (text) => (isSource ? html`<div class="pre foreign">${plainLines(text)}</div>` : html`<${Markdown} text=${text} how=${HOW} />`);
  const from = SOURCES[data.source];
  const { files = [], message } = data;
  const isInHead = data.status === 'failed' && oneLine(message) === message;
  return html`<div class="result">
    <p class="facts-line"><span class=${signOf(data).role}>${endWords(data)}</span>${data.exitCode != null && html`<span>exit code ${plain(data.exitCode)}</span>`}${from && html`<span class="quiet">${from}</span>`}${live && html`<span class="quiet">it still works: this may change</span>`}${(data.summary || (data.text && !isOutput)) && html`<${SourceSwitch} isSource=${isSource} toggle=${toggle} />`}</p>
    ${message && !isInHead && html`<p class="failed foreign">${plainLines(message)}</p>`}
    ${data.summary && html`<section><h2>Summary</h2>${written(data.summary)}</section>`}
    ${data.text ? html`<section><h2>${isOutput ? 'Output' : 'Answer'}</h2><div class=${`answer${isOutput ? ' mono' : ''}`}>${isOutput ? html`<${EndOfOutput} task=${task} instance=${instance} size=${bytesIn(data.text)} news=${[data.sha256, data.size]} />` : written(data.text)}</div>
      ${data.truncated && html`<p class="quiet">Cut: all of it (${bytes(data.size)}) is in ${all}</p>`}</section>` : !data.summary && !data.lastLines && html`<p class="quiet">There is no result${live ? ' yet' : ''}.</p>`}
    <${LastLines} lines=${data.lastLines} without=${data.source} task=${task} instance=${instance} />
    ${files.length > 0 && html`<section><h2>Files</h2><ul class="plain-list">${files.map((one) => html`<li key=${one.path}><${ResultFile} task=${task} instance=${instance} file=${one} /></li>`)}</ul></section>`}
    ${data.worktree && html`<section><h2>Worktree</h2><${Worktree} worktree=${data.worktree} task=${task} instance=${instance} again=${again} live=${live} /></section>`}
  </div>`;
}

/** @param {string} text */
const bytesIn = (text) => new TextEncoder().encode(text).length;

/**
 * The end of what a command printed, as a terminal shows it.
 * @param {{ task: string, instance: string, size: number, news: unknown[] }} props `size`: in bytes; `news`: a large
 *   output has no hash
 */
function EndOfOutput({ task, instance, size, news }) {
  const query = { stream: 'stdout', rows: 'shown', limit: Math.max(4, size) };
  /** @returns {Promise<Sent.LogPage>} */
  const load = () => get(workerPath(task, instance, 'logs'), query);
  const { data, error, isLoading } = useFetched(load, [task, instance], 0, news);
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  if (data.rows.some((row) => textOf(row).trim())) return html`<${ShownRows} rows=${data.rows} />`;
  return html`<p class="quiet">A terminal shows nothing of it. <a href=${outputHref(task, instance, 'stdout')}>Output</a></p>`;
}

/**
 * Everything that is known of a worker, fetched again when `news` change.
 * @param {string} task
 * @param {string} instance
 * @param {readonly unknown[]} news
 */
function useShown(task, instance, news) {
  /** @returns {Promise<Sent.Shown>} */
  const load = () => get(workerPath(task, instance));
  return useFetched(load, [task, instance], 0, news);
}

/** @param {{ worktree: Sent.Worktree, task: string, instance: string, again: () => void, live: boolean }} props */
function Worktree({ worktree, task, instance, again, live }) {
  const { overlaps = [] } = worktree;
  return html`<dl class="facts">
      <div><dt>Folder</dt><dd>${worktree.removed ? html`<span class="quiet">removed</span>` : html`<${Command} text=${worktree.path ?? ''} />`}</dd></div>
      <div><dt>Branch</dt><dd class="foreign">${plain(worktree.branch ?? '')}</dd></div>
      <div><dt>Base</dt><dd class="foreign"><code>${plain(worktree.base ?? '')}</code></dd></div>
      ${overlaps.length > 0 && html`<div><dt>Overlaps</dt><dd>${overlaps.map((one) => html`<p key=${one.instance}><a href=${workerHref(task, one.instance)} class="foreign">${plain(one.instance)}</a>: <span class="foreign">${(one.files ?? []).map(plain).join(', ')}</span></p>`)}</dd></div>`}
      ${worktree.next && html`<div><dt>Next</dt><dd><${Command} text=${worktree.next} /></dd></div>`}
    </dl>
    <p class="buttons"><a class="button" href=${workerHref(task, instance, 'diff')}>See the diff</a>
      ${!worktree.removed && !live && !about.readOnly && html`<button type="button" onClick=${() => removeWorktree(task, instance, again)}>Remove worktree…</button>`}</p>`;
}

/** @param {{ task: string, instance: string, worker: Sent.Worker, asks: Asks }} props */
export function QuestionsTab({ task, instance, worker, asks }) {
  const ids = (worker.questions ?? []).map((one) => one.id).join();
  const { data, error, isLoading } = useShown(task, instance, [ids, worker.status]);
  const all = listed(data?.questions);
  const open = new Set((worker.questions ?? []).map((one) => one.id));
  const before = all.filter((one) => !open.has(one.id));
  return html`${asks}
    ${error && html`<${Problem} error=${error} />`}
    ${!data && isLoading && html`<${Loading} />`}
    ${data && !before.length && !asks && html`<div class="empty"><p>It has asked nothing.</p></div>`}
    ${before.length > 0 && html`<section><h2 class="section">Answered</h2><ul class="answered">${before.map((one) => html`<li key=${one.id}>
      <p class="quiet">${clock(one.askedAt)} ${plain(one.id)}${one.tool ? html` <span class="blocked foreign">${distinct(one.tool)}</span>` : ''}</p>
      ${one.tool || one.means ? html`<p class="pre foreign">${distinct(one.question)}</p>` : html`<${Markdown} text=${String(one.question)} how=${ASKED} />`}
      ${one.arguments != null && html`<details><summary>Arguments</summary><pre class="preview foreign">${distinct(JSON.stringify(one.arguments, null, 1))}</pre></details>`}
      <p class="given">${answerWords(one)}</p></li>`)}</ul></section>`}`;
}

/** @param {unknown} value */
const listed = (value) => (Array.isArray(value) ? value : []);

/** @param {Sent.AskedQuestion} one */
export function answerWords(one) {
  const given = one.answer && typeof one.answer === 'object' ? one.answer : one;
  const answer = given.answer ?? (typeof one.answer === 'string' ? one.answer : null);
  const by = given.by ?? one.by;
  const at = given.at ?? one.answeredAt;
  if (given.expired && answer == null) return html`<span class="quiet">expired without an answer</span>`;
  if (answer == null) return html`<span class="quiet">not answered</span>`;
  return html`<span class="completed" aria-hidden="true">✓ </span><${Foreign} text=${answer} /> <span class="quiet">${by ? `by ${plain(by)}` : ''}${at ? ` at ${clock(at)}` : ''}${given.reason ? `: ${plain(given.reason)}` : ''}</span>`;
}

/** @param {{ task: string, instance: string, worker: Sent.Worker }} props */
export function DetailsTab({ task, instance, worker }) {
  const { data, error, isLoading, again } = useShown(task, instance, [worker.status]);
  useLastScroll(Boolean(data));
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  return html`<div class="details">
    <p class="facts-line">${data.folder && html`<span>Its folder <${Command} text=${data.folder} /></span>`}<button type="button" class="small" onClick=${again}>Look again</button></p>
    <${Facts} value=${ofWorker(data)} />
    <details><summary>All of it, as JSON</summary><pre class="preview foreign">${plainLines(JSON.stringify(data, null, 1))}</pre></details>
  </div>`;
}

/**
 * What a worker is, without what stands above it. An agent has no command but its prompt, which is whole in its spec.
 * @param {Sent.Shown} data
 */
function ofWorker({ folder: _, ...data }) {
  if (!data.driver) return data;
  const { command, spec, ...more } = data;
  const { prompt = command, ...order } = spec?.order ?? {};
  return { ...more, prompt, ...(spec && { spec: { ...spec, ...(spec.order && { order }) } }) };
}

/**
 * What a document says, in words: single values first, then a section for each part.
 * @param {{ value: object, depth?: number }} props
 */
function Facts({ value, depth = 0 }) {
  const entries = Object.entries(value).filter(([key, one]) => isTelling(key, one));
  /** @param {unknown} one */
  const isPart = (one) => typeof one === 'object' && !Array.isArray(one) && depth < 2;
  return html`<dl class="facts">${entries.filter(([, one]) => !isPart(one)).map(([key, one]) => html`<div key=${key}><dt class="foreign">${plain(labelOf(key))}</dt><dd><${Value} name=${key} value=${one} /></dd></div>`)}</dl>
    ${entries.filter(([, one]) => isPart(one)).map(([key, one]) => html`<section key=${key} class="facts-part"><h2 class="foreign">${plain(labelOf(key))}</h2><${Facts} value=${one} depth=${depth + 1} /></section>`)}`;
}

/** What people and agents have written as Markdown. */
const WRITTEN = new Set(['prompt', 'finalMessage', 'summary']);
/**
 * A text that somebody has written; a long one is folded, unless something is searched for that may be in it.
 * @param {{ text: string }} props
 */
function Written({ text }) {
  const [isFolded, setFolded] = useState(() => !route.place.query.has('find'));
  return html`<${Markdown} text=${text} how=${HOW} isFolded=${isFolded} onFold=${() => setFolded(!isFolded)} />`;
}

const LONG = 2000;
const MANY = 8;
/** @param {{ name: string, value: unknown }} props */
function Value({ name, value }) {
  if (WRITTEN.has(name) && typeof value === 'string') return html`<${Written} text=${value} />`;
  if (typeof value !== 'object' || value === null) {
    const text = plainLines(valueWords(name, value));
    return text.length > LONG ? html`<details><summary>${plain(text.slice(0, 100))}…</summary><span class="pre foreign">${text}</span></details>` : html`<span class="pre foreign">${text}</span>`;
  }
  if (!Array.isArray(value) || value.some((one) => typeof one === 'object')) return html`<span class="pre foreign mono">${plainLines(JSON.stringify(value, null, 1))}</span>`;
  const text = plainLines(value.map((one) => (/[\s"']/.test(one) || one === '' ? JSON.stringify(one) : one)).join(' '));
  return value.length > MANY && name !== 'argv' ? html`<details><summary>${value.length}</summary><span class="pre foreign mono">${text}</span></details>` : html`<span class="pre foreign mono">${text}</span>`;
}
