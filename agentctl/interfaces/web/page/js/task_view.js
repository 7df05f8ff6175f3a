// One task: its workers, when they did what, what they used, and its events.
import { holdQueue, letQueueGo } from './actions.js';
import { segments } from './api.js';
import { html } from './dom.js';
import { EventsTab } from './events_view.js';
import { useKeys } from './keys.js';
import { NeedsView } from './needs_view.js';
import { Problem, Sign, Tabs, useMissing } from './pieces.js';
import { TASK_TABS } from './places.js';
import { go, taskHref, workerHref } from './router.js';
import { plain } from './safe_text.js';
import { about, fleet, useTopics } from './store.js';
import { TimelineTab } from './timeline_view.js';
import { UsageTab } from './usage_view.js';
import { costWords, counted, duration, holdWords, secondsSince, shortNumber, signOfTask, table } from './words.js';

/** @import { Place } from './places.js' */

const WORDS = table({ workers: 'Workers', timeline: 'Timeline', usage: 'Usage', events: 'Events' });

/** @param {{ place: Place }} props */
export function TaskView({ place }) {
  useTopics('fleet', 'now');
  const { task: id, tab } = place;
  const task = fleet.tasks.get(id);
  const isMissing = fleet.isKnown && !task;
  const { error } = useMissing(`/tasks/${segments(id)}`, isMissing);
  /** @param {string} name */
  const show = (name) => go(taskHref(id, name), { isReplacing: true });
  useKeys({
    tab: (event) => {
      const count = TASK_TABS.length;
      show(TASK_TABS[(TASK_TABS.indexOf(tab) + (event.key === '[' ? count - 1 : 1)) % count]);
    },
    ...(tab === 'workers' ? {} : { digit: (event) => {
      const name = TASK_TABS[Number(event.key) - 1];
      if (name) show(name);
      return Boolean(name);
    } }),
  });
  if (isMissing && error) return html`<div class="empty"><h1 class="foreign">${plain(id)}</h1><${Problem} error=${error} /><p><a href="/">All workers</a></p></div>`;
  const { live = 0, asking = 0, failed = 0, tokens = 0, costUsd = 0, ...totals } = task?.totals ?? {};
  const children = [...fleet.tasks.values()].filter((one) => one.parent === id);
  const until = live ? Date.now() : Date.parse(totals.ended ?? '');
  return html`<div class="worker-head">
      <p class="crumbs"><a href="/">All</a>${task?.parent && html` <span aria-hidden="true">/</span> <a class="foreign" href=${taskHref(task.parent)}>${plain(task.parent)}</a>${task.parentInstance && html` <span aria-hidden="true">/</span> <a class="foreign" href=${workerHref(task.parent, task.parentInstance)}>${plain(task.parentInstance)}</a>`}`}</p>
      <div class="title"><h1>${task && html`<${Sign} sign=${signOfTask(task)} /> `}<span class="foreign">${plain(task?.title || id)}</span></h1>
        <p class="facts-line">${task && html`<span class=${signOfTask(task).role}>${plain(task.status)}</span>`}<code class="foreign">${plain(id)}</code>${task?.own === false && html`<span class="tag">foreign: it can only be looked at</span>`}${task?.held && html`<span class="tag blocked foreign">${holdWords(task)}</span>`}
          ${totals.workers != null && html`<span>${counted(totals.workers, 'worker')}${live ? `, ${live} live` : ''}</span>`}
          ${asking > 0 && html`<span class="blocked">${asking} blocked</span>`}${failed > 0 && html`<span class="failed">${failed} failed</span>`}${tokens > 0 && html`<span>${totals.lacksTokens ? '≥' : ''}${shortNumber(tokens)} tokens</span>`}${costUsd > 0 && html`<span>${totals.lacksCost ? '≥' : ''}${costWords(costUsd)}</span>`}
          ${totals.began && until ? html`<span class="time">${duration(secondsSince(totals.began, until), live > 0)}</span>` : ''}</p>
        ${task?.own && !about.readOnly && html`<div class="buttons">${task.held?.taskId === id
        ? html`<button type="button" onClick=${() => letQueueGo(id)}>Let the queue go</button>`
        : html`<button type="button" onClick=${() => holdQueue(id)}>Hold the queue</button>`}</div>`}</div>
      ${children.length > 0 && html`<p class="children">Below it: ${children.map((one) => html`<a key=${one.taskId} class="tag" href=${taskHref(one.taskId)}><${Sign} sign=${signOfTask(one)} /><span class="foreign">${plain(one.taskId)}</span></a> `)}</p>`}
    </div>
    <${Tabs} label="About the task" names=${TASK_TABS} current=${tab} hrefOf=${(name) => taskHref(id, name)} wordsOf=${(name) => WORDS[name]} />
    <div class="worker-body">${{
      workers: html`<${NeedsView} key=${`needs ${id}`} scope=${id} emptyWords="No worker was started in this task yet." />`,
      timeline: html`<${TimelineTab} key=${`timeline ${id}`} task=${id} />`,
      usage: html`<${UsageTab} key=${`usage ${id}`} task=${id} />`,
      events: html`<${EventsTab} key=${`events ${id}`} task=${id} />`,
    }[tab]}</div>`;
}
