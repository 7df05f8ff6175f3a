// The form that starts a worker. What was typed is kept until it has been started.
import { get, post, segments } from './api.js';
import { sendByKey } from './dialogs.js';
import { EMPTY, orderOf, titleFor } from './dispatch_order.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { keep, kept } from './kept.js';
import { useOnce } from './once.js';
import { Foreign, Problem } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { fleet, say, useTopics } from './store.js';

/** @import { Form } from './dispatch_order.js' */

const DRAFT = 'dispatch';
const NEW_TASK = '+';

/** @param {Form} form */
const hasWork = (form) => Boolean(form.prompt || form.command);

/** @param {{ close: () => void, task?: string }} props */
export function Dispatch({ close, task: first }) {
  useTopics('fleet');
  const [form, setForm] = useState(() => {
    /** @type {Form} */
    const draft = { ...EMPTY, ...kept(DRAFT) };
    return first && !hasWork(draft) ? { ...draft, task: first } : draft;
  });
  const [agents, setAgents] = useState(/** @type {Sent.Agent[] | null} */ (null));
  const [error, setError] = useState(/** @type {Refused | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isFirst] = useState(() => !hasWork({ ...EMPTY, ...kept(DRAFT) }));
  const [taskOnce, workerOnce] = [useOnce(`${DRAFT}.task`, isFirst), useOnce(DRAFT, isFirst)];
  const box = useRef(null);
  const latest = useRef(form);
  latest.current = form;
  /**
   * @param {keyof Form} name
   * @param {string | boolean} value
   */
  const set = (name, value) => setForm((was) => {
    const now = { ...was, [name]: value };
    keep(DRAFT, now);
    if (hasWork(now)) for (const one of [taskOnce, workerOnce]) one.held();
    return now;
  });
  useEffect(() => {
    get('/agents').then((/** @type {Sent.Agent[]} */ found) => {
      setAgents(found);
      const usable = found.filter((one) => one.usable && one.installed);
      if (latest.current.what !== '!' && !found.some((one) => one.name === latest.current.what)) {
        set('what', usable.find((one) => one.name === 'general')?.name ?? usable[0]?.name ?? '!');
      }
    }, setError);
  }, []);
  // Where this part of the page came only after its dialog had opened.
  useLayoutEffect(() => box.current.querySelector('textarea').focus(), []);
  useEffect(() => {
    if (document.activeElement === document.body) box.current.querySelector('textarea')?.focus();
  }, [form.what]);

  const tasks = useMemo(() => [...fleet.tasks.values()].filter((one) => one.own !== false)
    .sort((a, b) => (b.totals?.began ?? '').localeCompare(a.totals?.began ?? '')), [fleet.tasks, fleet.shape]);
  const latestTask = form.task === NEW_TASK ? NEW_TASK : tasks[0]?.taskId ?? NEW_TASK;
  const known = tasks.some((one) => one.taskId === form.task) ? form.task : latestTask;

  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    setError(null);
    let task = known;
    try {
      const order = orderOf(form);
      setBusy(true);
      if (task === NEW_TASK) {
        const title = form.title.trim() || titleFor(form);
        const { data } = await taskOnce.run((key) => post('/tasks', { title, key }));
        task = data.taskId;
        set('task', task); // Another try starts it there, and makes no second task.
      }
      const { data } = await workerOnce.run((key) => post(`/tasks/${segments(task)}/spawn`, { ...order, key }));
      say(`${data.agentInstance} ${data.reused ? 'was started before, and ' : ''}is ${data.status}${data.message ? `: ${data.message}` : ''}`, { link: { href: workerHref(data.taskId ?? task, data.agentInstance), text: `Open ${data.agentInstance}` } });
      keep(DRAFT, { ...EMPTY, what: form.what, task, folder: form.folder });
      close();
    } catch (refusal) {
      // It has no worker yet: this one is for it.
      if (refusal.done?.agentInstance === null) set('task', refusal.done.taskId);
      setError(refusal);
      setBusy(false);
      if (refusal.field) box.current.querySelector(`[name=${refusal.field}]`)?.focus();
    }
  };
  /**
   * @param {keyof Form} name
   * @param {string} label
   */
  const field = (name, label, more = {}) => html`<label class="field"><span>${label}</span>
    <input name=${name} value=${form[name]} onInput=${(event) => set(name, event.target.value)} autocomplete="off" autocapitalize="none" spellcheck="false"
      aria-invalid=${error?.field === name ? 'true' : undefined} ...${more} /></label>`;
  /**
   * @param {keyof Form} name
   * @param {string} label
   */
  const check = (name, label) => html`<label class="check"><input type="checkbox" checked=${form[name]} onChange=${(event) => set(name, event.target.checked)} /><span>${label}</span></label>`;
  const isCommand = form.what === '!';
  const agent = agents?.find((one) => one.name === form.what);
  return html`<form ref=${box} class="dispatch" onSubmit=${submit} onKeyDown=${sendByKey}>
    <h2 id="dialog-title">New worker</h2>
    <div class="pair">
      <label class="field"><span>Agent</span><select value=${form.what} onChange=${(event) => set('what', event.target.value)}>
        ${agents === null && html`<option value=${isCommand ? '' : form.what}>${isCommand || !form.what ? '…' : plain(form.what)}</option>`}
        ${(agents ?? []).map((one) => html`<option key=${one.name} value=${one.name} disabled=${!one.usable}>${plain(one.name)}${one.usable ? one.installed === false ? ' (not installed)' : '' : ' (not trusted)'}</option>`)}
        <option value="!">a command</option>
      </select></label>
      <label class="field"><span>Task</span><select value=${known} onChange=${(event) => set('task', event.target.value)}>
        <option value=${NEW_TASK}>a new task</option>
        ${tasks.map((one) => html`<option key=${one.taskId} value=${one.taskId}>${plain(one.taskId)}${one.title && one.title !== one.taskId ? ` · ${plain(one.title).slice(0, 60)}` : ''}</option>`)}
      </select></label>
    </div>
    ${agent?.description && html`<p class="hint"><${Foreign} text=${agent.description} />${agent.usable ? '' : ' It has to be trusted first: agentctl trust'}</p>`}
    ${known === NEW_TASK && field('title', 'Title of the new task', { placeholder: titleFor(form), autocapitalize: 'sentences' })}
    ${isCommand
      ? html`<label class="field" key="command"><span>Command</span><textarea name="command" autofocus class="commandline" rows="2" value=${form.command} onInput=${(event) => set('command', event.target.value)} placeholder="make test | tee log"
          autocapitalize="none" spellcheck="false" aria-invalid=${error?.field === 'command' ? 'true' : undefined}></textarea></label>`
      : html`<label class="field" key="prompt"><span>What it should do</span><textarea name="prompt" autofocus rows="5" value=${form.prompt} onInput=${(event) => set('prompt', event.target.value)}
          aria-invalid=${error?.field === 'prompt' ? 'true' : undefined}></textarea></label>`}
    <div class="pair">${field('name', 'Name (by default made up)')}${field('folder', 'Folder (by default that of the server)')}</div>
    <details><summary>More options</summary><div>
      <div>${check('worktree', 'In a git worktree and on a branch of its own')}${!isCommand && check('keep', 'Keep it after its answer, for messages')}</div>
      ${!isCommand && html`<div class="pair">${field('model', 'Model')}${field('effort', 'Effort (low, medium, high)')}
        ${field('permissions', 'Permissions (ask, allow, deny, or rules in JSON)')}${field('driver', 'Driver (claude, codex)')}
        ${field('budget', 'At most, in US dollars', { inputmode: 'decimal' })}${field('turns', 'At most, in turns', { inputmode: 'numeric' })}</div>`}
      <div class="pair">${field('after', 'After these workers')}${field('priority', 'Priority in the queue', { inputmode: 'numeric' })}
        ${field('timeout', 'At most, in seconds', { inputmode: 'decimal' })}${field('retries', 'Further tries where it fails', { inputmode: 'numeric' })}</div>
    </div></details>
    <${Problem} error=${error} />
    <div class="buttons"><span class="hint">Ctrl+Enter starts it. It waits where no slot is free.</span>
      <button type="button" onClick=${close}>Close</button><button class="primary" disabled=${isBusy}>${isBusy ? 'Starting…' : 'Start'}</button></div>
  </form>`;
}
