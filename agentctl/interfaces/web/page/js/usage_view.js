// What the workers of a task have used, and what is left.
import { get, segments } from './api.js';
import { html } from './dom.js';
import { useScrollKeys } from './following.js';
import { NotYet, Sign, useFetched } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { VirtualTable } from './virtual_rows.js';
import { clock, costWords, counted, duration, shortNumber, signOf, windowWords } from './words.js';

/** @import { Column } from './virtual_rows.js' */

/** What is not told, or nothing. */
const NOTHING = html`<span class="nothing">–</span>`;
/** @type {Array<[head: string, name: 'input' | 'output' | 'cached']>} */
const FIGURES = [['Input', 'input'], ['Output', 'output'], ['Cached', 'cached']];
const WIDTHS = 'minmax(170px, 2fr) minmax(90px, 1fr) minmax(60px, 1fr) 72px 72px 72px 72px 84px';
/** @param {{ taskId: string, agentInstance: string }} one */
const rowKey = (one) => `${one.taskId}/${one.agentInstance}`;

/** @param {{ task: string }} props */
export function UsageTab({ task }) {
  const { data, error, isLoading, again } = useFetched(/** @returns {Promise<Sent.Usage>} */ () => get(`/tasks/${segments(task)}/usage`), [task], 5000);
  useScrollKeys();
  if (!data) return html`<${NotYet} error=${error} isLoading=${isLoading} />`;
  const { total = {}, accounts = [], breakers = [] } = data;
  const limits = Object.entries(data.limits ?? {}).flatMap(([name, most]) => (most == null ? [] : [{ name, most }]));
  const rows = [...(data.workers ?? [])].sort((a, b) => most(a.tokens, b.tokens) || most(a.wallSeconds, b.wallSeconds));
  // Where some programs tell none, a sum is the least that was used.
  /** @param {string} figure */
  const least = (figure) => (total.atLeast?.includes(figure) ? '≥' : '');
  /** @param {number | null | undefined} count */
  const told = (count) => (count == null ? 'not told' : `${least('tokens')}${shortNumber(count)}`);
  // A bar is as long as the cost; where no program tells one, as the tokens are many.
  const hasCost = rows.some((one) => (one.costUsd ?? 0) > 0);
  /** @param {Sent.Used} one */
  const weigh = (one) => (hasCost ? one.costUsd : one.tokens) ?? 0;
  const models = [...(data.models ?? [])].sort((a, b) => weigh(b) - weigh(a));
  const largest = rows.reduce((found, one) => Math.max(found, weigh(one)), 0);
  /** @type {Column<Sent.UsedBy>[]} */
  const columns = [
    { head: 'Worker', cell: (one) => html`<${Sign} sign=${signOf(one)} /> <a class="foreign" href=${workerHref(one.taskId, one.agentInstance)}>${plain(one.agentInstance)}</a>` },
    { head: 'Agent', cell: (one) => html`<span class="foreign">${plain(one.agent === 'command' ? '' : one.agent)}</span>` },
    { head: 'Share', cell: (one) => html`<${Share} value=${weigh(one)} most=${largest} />` },
    ...FIGURES.map(([head, name]) => /** @type {Column<Sent.UsedBy>} */ ({
      head, isNumber: true, cell: (one) => number(one[name]),
    })),
    { head: 'Cost', isNumber: true, cell: (one) => costWords(one.costUsd) || NOTHING },
    { head: 'Time', isNumber: true, cell: (one) => duration(one.wallSeconds) },
  ];
  const foot = [
    counted(rows.length, 'worker'), '', '', ...FIGURES.map(([, name]) => number(total[name])),
    total.costUsd == null ? NOTHING : `${least('costUsd')}$${total.costUsd.toFixed(2)}`, duration(total.wallSeconds),
  ];
  return html`<div class="usage">
    <dl class="figures">
      ${[['tokens', told(total.tokens)], ['input', told(total.input)], ['output', told(total.output)], ['from cache', told(total.cached)],
        ['cost', total.costUsd == null ? 'not told' : `${least('costUsd')}$${total.costUsd.toFixed(2)}`], ['workers', total.workers ?? 0], ['time', duration(total.wallSeconds)], ...(data.reservedUsd ? [['reserved', costWords(data.reservedUsd)]] : [])]
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
    ${limits.length > 0 && html`<section><h2 class="section">Limits</h2><ul class="meters">${limits.map(({ name, most }) => {
      const left = data.left?.[name];
      const used = left == null ? null : Math.max(0, most - left);
      return html`<li key=${name}><span>${plain(name)}</span><meter min="0" max=${most} value=${used ?? 0} aria-label=${plain(name)}></meter><span class="quiet">${used == null ? '' : `${round(used)} of `}${round(most)}</span></li>`;
    })}</ul></section>`}
    ${accounts.length > 0 && html`<section><h2 class="section">Accounts</h2><ul class="meters">${accounts.flatMap((account) => (account.windows ?? []).map((window) => html`<li key=${`${account.account} ${window.window}`}>
      <span class="foreign">${plain(account.account)} ${plain(windowWords(window.window))}</span>${window.usedPercent != null ? html`<meter min="0" max="100" high="80" value=${window.usedPercent} aria-label=${`${plain(account.account)}, used`}></meter><span class="quiet">${Math.round(window.usedPercent)} %</span>` : html`<span></span><span></span>`}
      <span class="quiet">${window.isRejected ? 'used up' : ''}${window.resetsAt ? ` resets ${clock(window.resetsAt, false)}` : ''}</span></li>`))}
      ${accounts.map((one) => one.held && html`<li key=${`held ${one.account}`}><span class="blocked foreign">${plain(one.account)} is on hold until ${clock(one.held.until, false)}</span></li>`)}</ul></section>`}
    ${breakers.some((one) => one.open) && html`<section><h2 class="section">Stopped agents</h2><ul class="plain-list">${breakers.filter((one) => one.open).map((one) => html`<li key=${one.agent} class="failed foreign">${plain(one.agent)}: ${counted(one.failures, 'failure')} in a row${one.reason ? ` (${plain(one.reason)})` : ''}</li>`)}</ul></section>`}
    ${models.length > 0 && html`<section><h2 class="section">By model</h2><ul class="meters models">${models.map((one) => html`<li key=${one.model ?? ''}>
      <span class=${one.model ? 'foreign' : 'quiet'}>${one.model ? plain(one.model) : 'not told'}</span><${Share} value=${weigh(one)} most=${Math.max(...models.map(weigh))} />
      <span>${costWords(one.costUsd) || html`<span class="quiet">no cost told</span>`}</span><span class="quiet">${counted(one.workers, 'worker')}, ${shortNumber(one.tokens ?? 0)} tokens</span></li>`)}</ul></section>`}
    <section><h2 class="section">By worker</h2>
      <${VirtualTable} label="Usage by worker" rows=${rows} keyOf=${rowKey} columns=${columns} widths=${WIDTHS} foot=${foot} /></section>
    <p><button type="button" class="small" onClick=${again}>Count again</button></p>
  </div>`;
}

/**
 * Larger figures come first; what was not told counts as nothing.
 * @param {number | null | undefined} one
 * @param {number | null | undefined} other
 */
const most = (one, other) => (other ?? 0) - (one ?? 0);

/**
 * A bar beside a figure that says the same.
 * @param {{ value: number, most: number }} props
 */
const Share = ({ value, most: whole }) => html`<span class="share" aria-hidden="true">${whole > 0 && value > 0 && html`<span style=${{ width: `${Math.max(1, 100 * value / whole)}%` }}></span>`}</span>`;

/** @param {number} value */
const round = (value) => (Number.isInteger(value) ? value.toLocaleString('en') : value.toFixed(2));
/** @param {number | null | undefined} value */
const number = (value) => (value ? shortNumber(value) : NOTHING);
