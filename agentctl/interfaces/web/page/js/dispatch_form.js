// The form that starts a worker. What was typed is kept until it has been started.
import { get, post, segments } from './api.js';
import { sendByKey } from './dialogs.js';
import { EMPTY, namesCompleted, orderOf, taskFor, titleFor } from './dispatch_order.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { keep, kept } from './kept.js';
import { useOnce } from './once.js';
import { Markdown } from './markdown_view.js';
import { waitedFor } from './outstanding.js';
import { Problem } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { fleet, say, useTopics } from './store.js';
import { trusts } from './text/at_terminal.js';
import { TERMINAL } from './words.js';

/** @import { Form } from './dispatch_order.js' */

/** What an agent is for, below the heading of the dialog. */
const HOW = { level: 3 };
const DRAFT = 'dispatch';
const NEW_TASK = '+';
const OTHER = '…';
/** So many names are offered: a browser shows no more of them at once. */
const MOST_NAMES = 200;

/** @param {Form} form */
const hasWork = (form) => Boolean(form.prompt || form.command);

/** @param {{ close: () => void, task?: string }} props */
export function Dispatch({ close, task: first }) {
  useTopics('fleet');
  const [form, setForm] = useState(() => {
    /** @type {Form} */
    const draft = { ...EMPTY, ...kept(DRAFT) };
    const isBegun = hasWork(draft);
    const own = [...fleet.tasks.values()].filter((one) => one.own !== false).map((one) => one.taskId);
    if (draft.task === NEW_TASK && isBegun) return draft;
    return { ...draft, task: taskFor(isBegun ? '' : first, draft.task, own) };
  });
  const [agents, setAgents] = useState(/** @type {Sent.Agent[] | null} */ (null));
  const [drivers, setDrivers] = useState(/** @type {Sent.Driver[]} */ ([]));
  const [others, setOthers] = useState(/** @type {string[]} */ ([]));
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
    keep(DRAFT, now, (was) => hasWork({ ...EMPTY, ...was }));
    if (hasWork(now)) for (const one of [taskOnce, workerOnce]) one.held();
    return now;
  });
  useEffect(() => {
    waitedFor(() => get('/agents')).then((/** @type {Sent.Agent[]} */ found) => {
      setAgents(found);
      const usable = found.filter((one) => one.usable && one.installed);
      if (latest.current.what !== '!' && !found.some((one) => one.name === latest.current.what)) {
        set('what', usable.find((one) => one.name === 'general')?.name ?? usable[0]?.name ?? '!');
      }
    }, setError);
    waitedFor(() => get('/drivers')).then(setDrivers, () => {}); // Without it, its fields take any text.
  }, []);
  // Where this part of the page came only after its dialog had opened.
  useLayoutEffect(() => box.current.querySelector('textarea').focus(), []);
  useEffect(() => {
    if (document.activeElement === document.body) box.current.querySelector('textarea')?.focus();
  }, [form.what]);

  const tasks = useMemo(() => [...fleet.tasks.values()].filter((one) => one.own !== false)
    .sort((a, b) => (b.totals?.began ?? '').localeCompare(a.totals?.began ?? '')), [fleet.tasks, fleet.shape]);
  // The stream may tell of a task that was made here only after another try: that is for it, and makes no second one.
  const made = useRef('');
  const isListed = tasks.some((one) => one.taskId === form.task);
  const known = form.task && (isListed || form.task === made.current) ? form.task : NEW_TASK;
  const names = useMemo(() => [...fleet.workers.values()].filter((one) => one.taskId === known)
    .sort((a, b) => Number(TERMINAL.has(a.status)) - Number(TERMINAL.has(b.status)))
    .map((one) => one.agentInstance), [known, fleet.workers, fleet.shape]);

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
        made.current = task;
        set('task', task);
      }
      const { data } = await workerOnce.run((key) => post(`/tasks/${segments(task)}/spawn`, { ...order, key }));
      say(`${data.agentInstance} ${data.reused ? 'was started before, and ' : ''}is ${data.status}${data.message ? `: ${data.message}` : ''}`, { links: [{ href: workerHref(data.taskId ?? task, data.agentInstance), text: `Open ${data.agentInstance}` }] });
      keep(DRAFT, { ...EMPTY, what: form.what, task, folder: form.folder });
      close();
    } catch (refusal) {
      // It has no worker yet: this one is for it.
      if (refusal.done?.agentInstance === null) {
        made.current = refusal.done.taskId;
        set('task', made.current);
      }
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
  const driver = drivers.find((one) => one.driver === (form.driver || agent?.driver));
  /**
   * An option of the driver: its values to choose from, or a text; nothing where it has no such option.
   * @param {'model' | 'effort' | 'permissions' | 'budget' | 'turns'} name
   * @param {string} option
   * @param {string} label
   */
  const driverField = (name, option, label, more = {}, otherWords = '') => {
    const values = driver?.takes[option];
    if (driver && !values && !form[name]) return null;
    if (name === 'model' || !values?.length) {
      return html`${field(name, label, { ...more, list: values?.length ? `known-${name}` : undefined })}${values?.length ? html`<datalist id=${`known-${name}`}>${values.map((one) => html`<option key=${one} value=${one} />`)}</datalist>` : ''}`;
    }
    const isOther = others.includes(name) || (form[name] !== '' && !values.includes(form[name]));
    return html`<label class="field"><span>${label}</span><select value=${isOther ? OTHER : form[name]} onChange=${(event) => {
      const { value } = event.target;
      setOthers((was) => (value === OTHER ? [...was, name] : was.filter((one) => one !== name)));
      set(name, value === OTHER ? '' : value);
    }}><option value="">by default</option>${values.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
      ${otherWords && html`<option value=${OTHER}>${otherWords}</option>`}</select></label>
      ${isOther && field(name, otherWords, more)}`;
  };
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
    ${agent?.description && html`<div class="hint"><${Markdown} text=${agent.description} how=${HOW} />${!agent.usable && html`<p>It has to be trusted first. ${trusts(agent.source ?? '')}</p>`}</div>`}
    ${known === NEW_TASK && field('title', 'Title of the new task', { placeholder: titleFor(form), autocapitalize: 'sentences' })}
    ${isCommand
      ? html`<label class="field" key="command"><span>Command</span><textarea name="command" autofocus class="commandline" rows="2" value=${form.command} onInput=${(event) => set('command', event.target.value)} placeholder="make test | tee log"
          autocapitalize="none" spellcheck="false" aria-invalid=${error?.field === 'command' ? 'true' : undefined}></textarea></label>`
      : html`<label class="field" key="prompt"><span>What it should do</span><textarea name="prompt" autofocus rows="5" value=${form.prompt} onInput=${(event) => set('prompt', event.target.value)}
          aria-invalid=${error?.field === 'prompt' ? 'true' : undefined}></textarea></label>`}
    <div class="pair">${field('name', 'Name (by default made up)')}${field('folder', 'Folder (by default that of the server)')}</div>
    <details><summary>More options</summary><div>
      <div>${check('worktree', 'In a git worktree and on a branch of its own')}${!isCommand && check('keep', 'Keep it after its answer, for messages')}</div>
      ${!isCommand && html`<div class="pair"><label class="field"><span>Driver</span><select value=${form.driver} onChange=${(event) => set('driver', event.target.value)}>
          <option value="">${agent?.driver ? `by default: ${plain(agent.driver)}` : 'the first that is installed'}</option>
          ${drivers.map((one) => html`<option key=${one.driver} value=${one.driver} disabled=${!one.installed}>${plain(one.driver)}${one.installed ? one.tested === null ? ' (never tried)' : '' : ' (not installed)'}</option>`)}
          ${form.driver && !drivers.some((one) => one.driver === form.driver) && html`<option value=${form.driver}>${plain(form.driver)}</option>`}</select></label>
        ${driverField('model', 'model', 'Model')}${driverField('effort', 'effort', 'Effort')}
        ${driverField('permissions', 'permissions', 'Permissions', {}, 'Rules, in JSON')}
        ${driverField('budget', 'max_budget_usd', 'At most, in US dollars', { inputmode: 'decimal' })}${driverField('turns', 'max_turns', 'At most, in turns', { inputmode: 'numeric' })}</div>`}
      <div class="pair">${field('after', 'After these workers', { list: 'known-names', placeholder: 'their names' })}<datalist id="known-names">${namesCompleted(form.after, names).slice(0, MOST_NAMES).map((one) => html`<option key=${one} value=${one} />`)}</datalist>${field('priority', 'Priority in the queue', { inputmode: 'numeric' })}
        ${field('timeout', 'At most, in seconds', { inputmode: 'decimal' })}${field('retries', 'Further tries where it fails', { inputmode: 'numeric' })}</div>
    </div></details>
    <${Problem} error=${error} />
    <div class="buttons"><span class="hint">Ctrl+Enter starts it. It waits where no slot is free.</span>
      <button type="button" onClick=${close}>Close</button><button class="primary" disabled=${isBusy}>${isBusy ? 'Starting…' : 'Start'}</button></div>
  </form>`;
}
