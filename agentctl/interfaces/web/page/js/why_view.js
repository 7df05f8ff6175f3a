// Why a worker is in its state: the sentences, what it wrote last, and what would change it.
import {
  cancelWorker, letQueueGo, retryTogether, retryWorker, sendToWorker, startWithEnvironment, unpauseWorker,
} from './actions.js';
import { get, workerPath } from './api.js';
import { html } from './dom.js';
import { Command, Foreign, NotYet, Problem, useFetched } from './pieces.js';
import { workerHref } from './router.js';
import { plain, plainLines } from './safe_text.js';
import { about, isLive } from './store.js';
import { inPage, isToBeTyped } from './text/ways_out.js';
import { clock } from './words.js';

/** @import { Deed } from './text/ways_out.js' */

const AGAIN_MS = 3000;

/** @param {{ task: string, instance: string, worker: Sent.Worker }} props */
export function WhyTab({ task, instance, worker }) {
  /** @returns {Promise<Sent.Why>} */
  const load = () => get(workerPath(task, instance, 'why'));
  const everyMs = isLive(worker) ? AGAIN_MS : 0;
  const { data, error, isLoading, again } = useFetched(load, [task, instance], everyMs, [worker.status]);
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} what="Looking" />`;
  const { waysOut = [], statements = [], lastLines } = data;
  return html`<div class="why">
    <p class="facts-line"><strong>${plain(data.state ?? data.status)}</strong>${data.since && html`<span>since ${clock(data.since)}</span>`}${data.judged === false && html`<span class="quiet">judged by its files alone</span>`}<button type="button" class="small" onClick=${again}>Look again</button></p>
    ${error && html`<${Problem} error=${error} />`}
    <ol class="statements">${statements.map((one, at) => html`<li key=${at}><p class="foreign">${plainLines(one.text)}</p>
      ${at === 0 && html`<${LastLines} lines=${lastLines} task=${task} instance=${instance} />`}
      ${one.agentInstance && html`<${LastLines} lines=${one.lastLines} task=${one.taskId} instance=${one.agentInstance} isOther />`}
      ${one.evidence && one.evidence.length > 0 && html`<ul>${one.evidence.map((from, index) => html`<li key=${index} class="evidence"><span class="tag">${plain(from.kind)}</span> <code class="foreign">${plain(from.where)}</code>${from.says != null && html` <span class="foreign">${plain(typeof from.says === 'string' ? from.says : JSON.stringify(from.says))}</span>`}${from.at && html` <span class="quiet">${clock(from.at)}</span>`}</li>`)}</ul>`}</li>`)}</ol>
    ${waysOut.length > 0 && html`<section><h2>What would change it</h2><ul class="plain-list">${waysOut.map((one, at) => html`<li key=${at}><span class="foreign">${plainLines(one.text)}</span> <${NextStep} way=${one} task=${task} instance=${instance} lines=${lastLines} /></li>`)}</ul></section>`}
  </div>`;
}

/**
 * The last lines that a failed worker wrote, each stream with the way to all of it. Of another root, `task` is a path.
 * @param {{ lines?: Sent.LastLines, without?: string, task: string, instance: string, isOther?: boolean }} props
 */
export function LastLines({ lines, without = '', task, instance, isOther = false }) {
  const isHere = !task.startsWith('/');
  /** @type {Array<['stderr' | 'stdout', string[] | undefined]>} */
  const streams = [['stderr', lines?.stderr], ['stdout', lines?.stdout]];
  return streams.map(([stream, said]) => said && stream !== without && html`<section key=${stream} class="last-lines">
    <div class="stream-head"><h2>The end of ${isOther ? html`<${Foreign} text=${instance} />’s` : 'its'} ${stream}</h2>
    ${isHere && html`<a class="button small" href=${outputHref(task, instance, stream)} aria-label=${`All of it: ${stream}${isOther ? ` of ${plain(instance)}` : ''}`}>All of it</a>`}</div>
    <pre class="preview foreign" tabindex="0" aria-label=${`The end of ${stream} of ${plain(instance)}`}>${plainLines(said.join('\n'))}</pre></section>`);
}

/**
 * @param {string} task
 * @param {string} instance
 * @param {string} stream
 */
export const outputHref = (task, instance, stream) => `${workerHref(task, instance, 'output')}?stream=${stream}`;

/**
 * What would change a state, as the page does it; as a command where only a terminal does it.
 * @param {{ way: Sent.WayOut, task: string, instance: string, lines?: Sent.LastLines }} props
 */
function NextStep({ way, task, instance, lines }) {
  const stream = lines?.stderr ? 'stderr' : lines?.stdout && 'stdout';
  const found = inPage(way.step, { task, instance, stream });
  if (isToBeTyped(way, found)) return html`<${Command} text=${way.command ?? ''} />`;
  if (found?.kind === 'open') {
    const query = new URLSearchParams(found.query).toString();
    return html`<a class="button small" href=${`${workerHref(found.task, found.instance, found.tab)}${query && `?${query}`}`}>${plain(found.words)}</a>`;
  }
  if (!found || about.readOnly) return null;
  return html`<button type="button" class="small" onClick=${() => carryOut(found)}>${found.words}</button>`;
}

/** @param {Deed} deed */
function carryOut({ action, task, instances }) {
  const [instance] = instances;
  if (action === 'letQueueGo') letQueueGo(task);
  else if (action === 'giveEnvironment') startWithEnvironment(task);
  else if (action === 'retry' && instances.length > 1) retryTogether(task, instances);
  else if (action === 'retry') retryWorker(task, instance);
  else if (action === 'cancel') cancelWorker(task, instance);
  else if (action === 'send') sendToWorker(task, instance);
  else unpauseWorker(task, instance);
}
