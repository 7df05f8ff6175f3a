// Dialogs: one at a time, closed by Escape; what had the focus gets it back.
import { focused, html, useLayoutEffect, useRef, useState } from './dom.js';
import { keep, kept } from './kept.js';
import { isActive, KEYS, keyName } from './keys.js';
import { useOnce } from './once.js';
import { Outstanding } from './outstanding.js';
import { Problem } from './pieces.js';
import { plain } from './safe_text.js';
import { changedNow, useTopics } from './store.js';

/**
 * @typedef {(props: any) => unknown} Content
 * @typedef {{ content: Content, props: { class?: string }, number: number }} Entry
 */

const shown = { content: /** @type {Entry | null} */ (null), number: 0 };

/**
 * Show a dialog; `content` is a component that gets `close`.
 * @param {Content} content
 */
export function openDialog(content, props = {}) {
  shown.number += 1;
  shown.content = { content, props, number: shown.number };
  changedNow('dialog');
}

export function DialogHost() {
  useTopics('dialog');
  if (!shown.content) return null;
  return html`<${Dialog} key=${shown.content.number} entry=${shown.content} />`;
}

/**
 * The line of a list with such a key.
 * @param {string} [key]
 * @returns {HTMLElement | null}
 */
const lineOf = (key) => (key ? document.querySelector(`[data-key="${CSS.escape(key)}"]`) : null);

/** @param {{ entry: Entry }} props */
function Dialog({ entry }) {
  const { content, props } = entry;
  const box = useRef(null);
  const before = useRef(focused());
  // It gives the focus to what has `autofocus`.
  useLayoutEffect(() => {
    const was = before.current;
    /** @type {HTMLElement | null | undefined} */
    const line = was?.closest('[data-key]');
    const key = line?.dataset.key;
    box.current.showModal();
    return () => {
      const target = was?.isConnected ? was : lineOf(key);
      requestAnimationFrame(() => {
        if (!document.querySelector('dialog[open]') && document.activeElement === document.body) target?.focus();
      });
    };
  }, []);
  const close = () => box.current?.close();
  const onClose = () => {
    if (shown.content !== entry) return; // The next one is there already.
    shown.content = null;
    changedNow('dialog');
  };
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target === box.current || target.closest('a[href^="/"]')) close();
  };
  return html`<dialog ref=${box} onClose=${onClose} onClick=${onClick} class=${props.class ?? ''} aria-labelledby="dialog-title">
    <${content} ...${props} close=${close} />
    <${Outstanding} of="" />
  </dialog>`;
}

/**
 * A draft of a text that survives errors and reloads.
 * @param {string | undefined} name
 */
export function useDraft(name, first = '') {
  const [text, setText] = useState(() => (name && kept(`draft ${name}`)) || first);
  /** @param {string} value */
  const set = (value) => {
    setText(value);
    if (name) keep(`draft ${name}`, value);
  };
  return [text, set];
}

/**
 * Send a form by Ctrl+Enter or Cmd+Enter.
 * @param {On<KeyboardEvent, HTMLTextAreaElement>} event
 */
export const sendByKey = (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    event.target.form?.requestSubmit();
  }
};

/**
 * Ask before something is done, or for a text that it needs. It stays open while it runs, and shows what was refused.
 * @typedef {{ title: string, body?: object | null, field?: { label: string, draft?: string, isNeeded?: boolean,
 *   hint?: string }, ok: string, doing?: string, isDanger?: boolean, once?: string,
 *   run: (text: string, key: string) => Promise<unknown> }} Asked `once` is under what the key of the request is kept
 * @param {Asked & { close: () => void }} props
 */
function Ask({ title, body, field, ok, doing, isDanger, once: name, run, close }) {
  const [text, setText] = useDraft(field?.draft);
  const once = useOnce(name ?? field?.draft);
  const [error, setError] = useState(/** @type {Refused | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const first = useRef(null);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    if (field?.isNeeded && !text.trim()) {
      setError({ message: 'there is nothing in it yet' });
      first.current?.focus();
      return;
    }
    setBusy(true);
    setError(null);
    try {
      if (field) await once.send(text, (key) => run(text, key));
      else await once.run((key) => run(text, key));
      setText('');
      close();
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit} class="ask">
    <h2 id="dialog-title" class="foreign">${plain(title)}</h2>
    ${body}
    ${field && html`<label class="field"><span>${field.label}</span>
      <textarea ref=${first} autofocus rows="6" value=${text} onInput=${(event) => {
        setText(event.target.value);
        once.held();
      }} onKeyDown=${sendByKey}
        aria-describedby="ask-hint ask-problem" spellcheck="true"></textarea></label>
      <p class="hint" id="ask-hint">${field.hint ? `${field.hint} ` : ''}Ctrl+Enter sends.</p>`}
    <${Problem} error=${error} id="ask-problem" />
    <div class="buttons">
      <button type="button" onClick=${close}>${field ? 'Close' : 'No'}</button>
      <button autofocus=${!field} class=${isDanger ? 'danger' : 'primary'} disabled=${isBusy}>${isBusy ? doing ?? 'Sending…' : ok}</button>
    </div>
  </form>`;
}

/** @param {Asked} props */
export const ask = (props) => openDialog(Ask, props);

/** @param {{ close: () => void }} props */
function Help({ close }) {
  /** @type {Map<string, Array<[keys: string[], action: string, words: string]>>} */
  const groups = new Map();
  for (const [group, keys, action, words] of KEYS) {
    groups.set(group, [...(groups.get(group) ?? []), [keys, action, words]]);
  }
  return html`<div class="help">
    <div class="head"><h2 id="dialog-title">Keys</h2><button type="button" onClick=${close} autofocus>Close</button></div>
    <p class="hint">Dimmed keys do nothing where you are now. No key works while you type in a field.</p>
    <div class="groups">${[...groups].map(([group, rows]) => html`<section key=${group}><h3>${group}</h3>
      <dl>${rows.map(([keys, action, words]) => html`<div class=${action && !isActive(action) ? 'off' : ''}>
        <dt>${keys.length === 9 ? html`<kbd>1</kbd>–<kbd>9</kbd>` : keys.map((key) => html`<kbd>${keyName(key)}</kbd> `)}</dt><dd>${words}</dd></div>`)}
      </dl></section>`)}
      <section><h3>Filter</h3><dl>
        <div><dt><code>s:</code></dt><dd>state: s:blocked, s:needs, s:failed</dd></div>
        <div><dt><code>a:</code></dt><dd>agent and program</dd></div>
        <div><dt><code>t:</code></dt><dd>id and title of the task</dd></div>
        <div><dt><code>n:</code></dt><dd>name and command</dd></div>
        <div><dt><code>-</code></dt><dd>before a word: without it</dd></div>
        <div><dt><code>"…"</code></dt><dd>holds several words together</dd></div>
      </dl></section>
      <section><h3>Signs</h3><dl>
        ${[['?', 'asks', 'blocked'], ['●', 'runs', 'running'], ['‖', 'paused', 'blocked'], ['○', 'an agent waits for a message', 'idle'],
          ['~', 'its guard is gone, or it is on another machine', 'blocked'], ['·', 'queued', 'queued'],
          ['✓', 'completed', 'completed'],
          ['✗', 'failed', 'failed'], ['-', 'cancelled', 'cancelled']].map(([glyph, words, role]) => html`<div><dt class=${`sign ${role}`}>${glyph}</dt><dd>${words}</dd></div>`)}
      </dl></section>
    </div>
  </div>`;
}

export const openHelp = () => openDialog(Help, { class: 'wide' });
