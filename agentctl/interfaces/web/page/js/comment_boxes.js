// Comments on lines: written in place, changed and deleted there, and sent together as one message.
import { resumeWith, sendText } from './actions.js';
import { messageOf } from './comments.js';
import { useDraft } from './dialogs.js';
import { focused, html, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { useOnce } from './once.js';
import { Arrow, copyText, Problem } from './pieces.js';
import { go, workerHref } from './router.js';
import { plain, plainLines } from './safe_text.js';
import { about, isLive, say } from './store.js';
import { counted } from './words.js';

/** @import { Comment, Placed } from './comments.js' */

/**
 * @param {{ label: string, first?: string, draft?: string, onDone: (text: string) => void,
 *   onLeave: () => void }} props
 */
export function CommentForm({ label, first = '', draft, onDone, onLeave }) {
  const [text, setText] = useDraft(draft, first);
  const field = useRef(null);
  const before = useRef(focused());
  useLayoutEffect(() => { // What is typed right behind the click arrives.
    field.current.focus();
    return () => before.current?.isConnected && before.current.focus({ preventScroll: true });
  }, []);
  /** @param {Event} event */
  const done = (event) => {
    event?.preventDefault();
    if (!text.trim()) {
      field.current.focus();
      return;
    }
    setText('');
    onDone(text);
  };
  return html`<form class="comment-form" onSubmit=${done}>
    <label class="field"><span class="unseen">${label}</span><textarea ref=${field} rows="3" value=${text} placeholder="What should it do about this line?" onInput=${(event) => setText(event.target.value)}
      onKeyDown=${(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) done(event);
        else if (event.key === 'Escape') {
          event.stopPropagation();
          onLeave();
        }
      }}></textarea></label>
    <div class="buttons"><button type="button" class="small" onClick=${onLeave}>Not now</button><button class="small primary">Add the comment</button><span class="hint">Ctrl+Enter adds it; all are sent together.</span></div>
  </form>`;
}

/**
 * A comment, which can be changed and deleted.
 * @param {{ comment: Comment, edit: (id: string, text: string) => void, remove: (id: string) => void,
 *   class: string }} props
 */
export function CommentBox({ comment, edit, remove, class: name }) {
  const [isEditing, setEditing] = useState(false);
  if (isEditing) {
    return html`<${CommentForm} label="Change the comment" first=${comment.text} onDone=${(text) => {
      edit(comment.id, text);
      setEditing(false);
    }} onLeave=${() => setEditing(false)} />`;
  }
  return html`<div class=${name}><p class="foreign">${plainLines(comment.text)}</p>
    <div class="buttons"><button type="button" class="small" onClick=${() => setEditing(true)}>Change</button><button type="button" class="small" onClick=${() => remove(comment.id)}>Delete</button></div></div>`;
}

/**
 * All comments that were not sent yet, and what is done with them.
 * @param {{ task: string, instance: string, worker: Sent.Worker, comments: Comment[], placed: Placed,
 *   edit: (id: string, text: string) => void, remove: (id: string) => void, clear: (sent: Comment[]) => void }} props
 */
export function Tray({ task, instance, worker, comments, placed, edit, remove, clear }) {
  const [isOpen, setOpen] = useState(false);
  const [overall, setOverall] = useDraft(`overall.${task}/${instance}`);
  const once = useOnce(`comments.${task}/${instance}`);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (comments.length) once.held();
  }, [comments]);
  if (!comments.length) return null;
  const live = isLive(worker);
  const canSend = !about.readOnly && (live || worker.driver);
  const message = messageOf(comments, placed.lines, overall);
  const send = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await once.send(message, async (key) => {
        if (live) await sendText(task, instance, message, key);
        else {
          const name = await resumeWith(task, instance, message, key);
          if (name !== instance) go(workerHref(task, name));
        }
      });
      clear(comments);
      setOverall('');
    } catch (refusal) {
      setError(refusal);
    }
    setBusy(false);
  };
  return html`<section class="tray" aria-label="Comments to be sent">
    <div class="tray-head">
      <button type="button" class="fold" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}><${Arrow} isOpen=${isOpen} />${counted(comments.length, 'comment')}${placed.outdated.length > 0 && html` <span class="blocked">${placed.outdated.length} outdated</span>`}</button>
      <span class="grow"></span>
      <button type="button" onClick=${async () => {
        await copyText(message);
        say('The message was copied.');
      }}>Copy</button>
      ${canSend && html`<button type="button" class="primary" onClick=${send} disabled=${isBusy}>${isBusy ? 'Sending…' : live ? 'Send all' : 'Continue it with all'}</button>`}
    </div>
    ${!canSend && !about.readOnly && html`<p class="hint">A command that has ended takes no message. Copy them instead.</p>`}
    <${Problem} error=${error} />
    ${isOpen && html`<div class="tray-body">
      <ul>${comments.map((comment) => html`<${TrayComment} key=${comment.id} comment=${comment} line=${placed.lines.get(comment.id)} edit=${edit} remove=${remove} />`)}</ul>
      <label class="field"><span>Said before all of them (if you leave it empty, a plain sentence)</span><textarea rows="2" value=${overall} onInput=${(event) => setOverall(event.target.value)}></textarea></label>
      <details><summary>The message</summary><pre class="preview foreign">${plainLines(message)}</pre></details>
    </div>`}
  </section>`;
}

/**
 * @param {{ comment: Comment, line?: number, edit: (id: string, text: string) => void,
 *   remove: (id: string) => void }} props
 */
export function TrayComment({ comment, line, edit, remove }) {
  return html`<li><p class="where"><code class="foreign">${plain(comment.path)}:${line ?? comment.line}</code>${line === undefined && html` <span class="tag blocked">outdated</span>`}</p>
    <pre class="foreign">${plain(comment.code.slice(0, 300))}</pre>
    <${CommentBox} comment=${comment} edit=${edit} remove=${remove} class="said-text" /></li>`;
}
