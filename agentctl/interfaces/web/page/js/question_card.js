// A question, answered in place. A call is allowed only once all of it has been on the screen.
import {
  focused, html, main, onMove, useEffect, useLayoutEffect, useMemo, useRef, useState, within,
} from './dom.js';
import { respond } from './actions.js';
import { useAim } from './aiming.js';
import { Arguments, CallLook } from './call_look.js';
import { sendByKey, useDraft } from './dialogs.js';
import { workerPath } from './api.js';
import { Outstanding } from './outstanding.js';
import { isField } from './keys.js';
import { Markdown } from './markdown_view.js';
import { Problem, Since } from './pieces.js';
import { workerHref } from './router.js';
import { distinct, oneLine, plain } from './safe_text.js';
import { reveal } from './scrolling.js';
import { about, answered, changed, fleet, lostAnswers, noteShown, say, sending, tellWho } from './store.js';
import { askedLook } from './text/known_calls.js';
import { optionWords } from './text/option_words.js';
import { counted } from './words.js';

/** @import { Look } from './text/known_calls.js' */

/** How long a question is on the screen before an answer counts. */
const SETTLES_MS = 300;
const MOST_TEXT = 24_000;
const ONLY_LOOK = 'this page may only look';
/** What an agent asks may be Markdown, and nothing of it is out of sight: no character, and no address. */
const AMONG_OTHERS = { level: 4, safe: distinct, isWholeShown: true };
const ALONE = { ...AMONG_OTHERS, level: 3 };

/**
 * The answers that a button or a digit may give here. The server says which.
 * @param {Sent.Question} question
 * @returns {Array<[id: string, label: string]>}
 */
const optionsOf = (question) => question.offered.map((one) => [one.id, one.label]);

/**
 * What an option of a permission does; empty where nothing is allowed by it.
 * @param {Sent.Question} question
 * @param {string} id
 */
const meaningOf = (question, id) => question.offered.find((one) => one.id === id)?.means ?? '';

/** @param {Sent.Question} question */
const denialOf = (question) => question.offered.find((one) => one.means === 'deny')?.id;

/**
 * The questions that are on the screen: by these a digit finds the one that has the focus.
 * What they return is for `useKeys`.
 * @typedef {string | true} Came
 * @type {Map<string, { digit: (number: number) => Came, write: () => Came, deny: () => Came, showRaw: () => Came }>}
 */
const cards = new Map();
/**
 * @param {string} workerKey
 * @param {Sent.Question} question
 */
export const cardKey = (workerKey, question) => `${workerKey}/${question.id}`;
/** @param {Sent.Question} question */
const stampOf = (question) => JSON.stringify(question);
let made = 0;

/**
 * The open questions of a worker that were not answered here; another one under the same id was not.
 * @param {string} key
 * @param {Sent.Worker | undefined} worker
 */
export const openQuestions = (key, worker) => (worker?.questions ?? []).filter((one) => {
  const given = answered.get(cardKey(key, one));
  return given === undefined || given !== stampOf(one);
});

/**
 * These scroll what has the focus, and are not keys of the list.
 * @param {KeyboardEvent} event
 */
const leaveScrolling = (event) => {
  if (['ArrowDown', 'ArrowUp', 'Home', 'End'].includes(event.key)) event.stopPropagation();
};

/**
 * All of a call, as what it would do or as its arguments; tells when its beginning and its end have been on the screen.
 * @param {{ question: Sent.Question, isRaw: boolean, onWhole: () => void, label: string }} props
 */
function Call({ question, isRaw, onWhole, label }) {
  const box = useRef(null);
  const begin = useRef(null);
  const end = useRef(null);
  useEffect(() => {
    const seen = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting && !document.hidden) seen.add(entry.target);
      if (seen.has(begin.current) && seen.has(end.current)) onWhole();
    });
    observer.observe(begin.current);
    observer.observe(end.current);
    return () => observer.disconnect();
  }, []);
  const look = useMemo(() => (isRaw ? null : askedLook(question.tool, question.arguments)), []);
  const entries = useMemo(() => {
    const given = question.arguments;
    const isMapping = given && typeof given === 'object' && !Array.isArray(given);
    /** @type {Array<[string, unknown]>} */
    return isMapping ? Object.entries(given) : given == null ? [] : [['arguments', given]];
  }, []);
  return html`<div class="call foreign" ref=${box} tabindex="0" role="group" aria-label=${label} onKeyDown=${leaveScrolling}>
    <span ref=${begin} class="sentinel"></span>
    ${look ? html`<${CallLook} look=${look} isAsked><${Arguments} entries=${look.rest} /><//>` : html`<${Arguments} entries=${entries} />`}
    ${!entries.length && html`<div class="quiet">without arguments</div>`}
    <span ref=${end} class="sentinel"></span>
  </div>`;
}

/**
 * One question.
 * @typedef {{ workerKey: string, task: string, instance: string, question: Sent.Question, more?: number,
 *   isNamed?: boolean, isTaskNamed?: boolean, box?: object }} Asking `isNamed`: it says which worker asks, in a list of
 *   them, which have a box to mark it
 * @param {Asking} props
 */
export function QuestionCard(props) {
  // Another question under the same id is another card: nothing that was seen of the one before counts for it.
  return html`<${Card} key=${stampOf(props.question)} ...${props} />`;
}

/** @param {Asking} props */
function Card({ workerKey, task, instance, question, more = 0, isNamed = true, isTaskNamed = true, box }) {
  const key = cardKey(workerKey, question);
  const [error, setError] = useState(/** @type {Refused | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isWhole, setWhole] = useState(!question.isPermission);
  const [isSettled, setSettled] = useState(false);
  const [isRaw, setRaw] = useState(false);
  const [chosen, setChosen] = useState(() => new Set());
  const [isDenying, setDenying] = useState(false);
  const [text, setText] = useDraft(`answer.${key}`);
  const options = optionsOf(question);
  // Beside options a text is the exception: its field is folded, unless something is in it already.
  const [isWriting, setWriting] = useState(!options.length || Boolean(text));
  const [reason, setReason] = useState('');
  const root = useRef(null);
  const field = useRef(null);
  const reasonField = useRef(null);
  const isOnScreen = useRef(false);
  const [domId] = useState(() => `question-${made += 1}`);
  const aim = useAim(root);

  useEffect(() => noteShown(task, instance, question.id), [key]);
  useEffect(() => {
    let timer = 0;
    const observer = new IntersectionObserver((entries) => {
      isOnScreen.current = Boolean(entries.at(-1)?.isIntersecting) && !document.hidden;
      clearTimeout(timer);
      if (isOnScreen.current) timer = setTimeout(() => setSettled(true), SETTLES_MS);
      else setSettled(false);
    });
    observer.observe(root.current);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
    };
  }, []);

  const denial = denialOf(question);
  /** @param {string} id */
  const isAllowing = (id) => meaningOf(question, id).startsWith('allow');
  /** @param {string} id */
  const mayGive = (id) => !isAllowing(id) || (isSettled && isWhole);

  const toLine = () => (root.current.closest('[data-key]') ?? root.current).focus();

  /**
   * @param {string} answer
   * @param {string} words
   * @param {string} [why]
   */
  const give = async (answer, words, why) => {
    if (sending.has(key)) return;
    sending.add(key);
    // A field that is sent takes no more, and the focus is to stay here.
    if (root.current.contains(focused()) && focused()?.matches('input, textarea, .call')) toLine();
    setBusy(true);
    setError(null);
    try {
      await respond(task, instance, question, answer, why);
      answered.set(key, stampOf(question));
      setText('');
      say(`Answered ${instance}: ${oneLine(words, 80)}`);
    } catch (refusal) {
      const isLost = !refusal.status; // Then it may have been taken.
      if (isLost) lostAnswers.set(key, answer);
      // A card that nobody sees, or that is about to go, tells nothing.
      const isOpen = fleet.workers.get(workerKey)?.questions?.some((one) => one.id === question.id);
      if (refusal.status === 409 || !isOpen || !root.current || !isOnScreen.current) say(`${isLost ? `It is not known whether ${instance} was answered` : 'Not answered'}: ${refusal.message}`, { isError: true, hint: refusal.hint, links: refusal.links });
      if (isLost && !isOpen) setTimeout(() => tellWho(key), 400);
      setError(refusal);
      setBusy(false);
    }
    sending.delete(key);
    changed('fleet');
  };
  /**
   * @param {string} id
   * @param {string} label
   */
  const tap = (id, label) => {
    if (isSettled) give(id, label);
    else say('This question has only just come up: press again.');
  };
  /** @param {string} id */
  const choose = (id) => setChosen((was) => {
    const now = new Set(was);
    if (!now.delete(id)) now.add(id);
    return now;
  });
  const giveChosen = () => {
    const ids = optionsOf(question).map(([id]) => id).filter((id) => chosen.has(id));
    if (!ids.length) setError({ message: 'nothing is chosen yet' });
    else give(ids.join(','), ids.join(', '));
  };
  /** @param {Event} [event] */
  const giveText = (event) => {
    event?.preventDefault();
    if (!text.trim()) {
      setError({ message: 'there is no answer in it yet', hint: question.default ? `the default is: ${plain(question.default)}` : '' });
      field.current?.focus();
      return;
    }
    give(text, text);
  };
  /** @param {Event} event */
  const deny = (event) => {
    event.preventDefault();
    if (denial) give(denial, `denied${reason ? `: ${reason}` : ''}`, reason.trim() || undefined);
  };

  useLayoutEffect(() => {
    const card = {
      digit: (/** @type {number} */ number) => {
        const option = options[number - 1];
        if (about.readOnly) return ONLY_LOOK;
        if (!option) return `there is no answer ${number}: the question has ${options.length ? counted(options.length, 'option') : 'no options'}`;
        if (!isOnScreen.current) {
          reveal(root.current, 'center');
          say('This is what it asks: press the digit again.');
        } else if (question.multiple) choose(option[0]);
        else if (isSettled && !mayGive(option[0])) {
          root.current.querySelector('.call').focus();
          say('Not all of the call has been on the screen yet: scroll it to its end.');
        } else tap(option[0], option[1]);
        return true;
      },
      write: () => {
        if (about.readOnly) return ONLY_LOOK;
        if (!question.takesText) return 'the question takes none but its options';
        startWriting();
        return true;
      },
      showRaw: () => {
        if (!hasLook) return `${instance} asks for nothing that is shown in two ways`;
        setRaw((was) => !was);
        return true;
      },
      deny: () => {
        if (about.readOnly) return ONLY_LOOK;
        if (!denial) return `${instance} asks for no permission`;
        setDenying(true);
        return true;
      },
    };
    cards.set(key, card);
    return () => {
      if (cards.get(key) === card) cards.delete(key);
    };
  });
  useLayoutEffect(() => {
    if (isDenying) reasonField.current?.focus();
  }, [isDenying]);
  const isCalled = useRef(false);
  const startWriting = () => {
    isCalled.current = true;
    setWriting(true);
    field.current?.focus();
  };
  useLayoutEffect(() => {
    if (isWriting && isCalled.current) field.current?.focus();
  }, [isWriting]);

  /** @param {KeyboardEvent} event */
  const leave = (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    setDenying(false);
    if (options.length && !text) setWriting(false);
    toLine();
  };
  const by = question.askedBy ? ` (${oneLine(question.askedByType || 'a sub-agent', 40)})` : '';
  const isExplained = !question.isPermission && options.some(([id, label]) => optionWords(id, label)[1]);
  const other = question.takesText && !isWriting && html`<button type="button" class="other" onClick=${startWriting} disabled=${isBusy}>Other… <kbd aria-hidden="true">i</kbd></button>`;
  const asked = askedText(question);
  const tool = distinct(question.tool ?? '');
  const look = askedLook(question.tool, question.arguments);
  const hasLook = look !== null;
  const isSaid = look !== null && saysNoMore(asked, tool, look);

  return html`<article class="question" ref=${root} tabindex="-1" ...${aim} data-question=${key} aria-labelledby=${domId}>
    <header>
      ${box}
      <${isNamed ? 'h3' : 'h2'} id=${domId} class="heading">
        ${isNamed ? html`<a class="name foreign" href=${workerHref(task, instance)}>${plain(instance)}</a>` : html`<span class="unseen">${plain(instance)} </span>`}
        <span class="what">${by} ${question.isPermission ? 'asks for permission' : isNamed ? 'asks' : 'It asks'}</span>
      <//>
      ${isNamed && isTaskNamed && html`<span class="task foreign">${plain(task)}</span>`}
      <span class="waiting">waiting <${Since} at=${question.askedAt} />${more > 0 && `, ${more} more after it`}</span>
    </header>
    ${question.isPermission ? isSaid || html`<p class="asked foreign">${distinct(asked)}</p>` : html`<div class="asked"><${Markdown} text=${asked} how=${isNamed ? AMONG_OTHERS : ALONE} /></div>`}
    ${question.described && question.described !== look?.title && html`<p class="described quiet foreign">In its own words: ${oneLine(question.described, 200)}</p>`}
    ${question.isPermission && html`${!isSaid && !wordsIn(asked).includes(tool) && html`<p class="tool foreign">${tool}</p>`}
      <${Call} key=${isRaw} question=${question} isRaw=${isRaw} onWhole=${() => setWhole(true)} label=${`Arguments of ${oneLine(question.tool ?? '', 60)}`} />
      ${hasLook && html`<button type="button" class="small plain raw-switch" aria-pressed=${String(isRaw)} onClick=${() => setRaw(!isRaw)}>Raw arguments <kbd aria-hidden="true">a</kbd></button>`}`}
    ${question.isPermission && !question.isWhole && html`<p class="cut">This is not the whole call, so it cannot be allowed here. <a href=${workerHref(task, instance, 'output')}>Its output</a> has all of it.</p>`}
    ${about.readOnly ? html`<ul class="answers quiet" aria-label="Possible answers">${options.map(([id, label]) => html`<li key=${id} class="tag foreign">${distinct(label)}</li>`)}</ul>`
    : question.multiple ? html`<fieldset disabled=${isBusy} class="choices"><legend class="unseen">Answers</legend>
        ${options.map(([id, label], index) => html`<label key=${id} class="choice"><input type="checkbox" checked=${chosen.has(id)} onChange=${() => choose(id)} />
          ${index < 9 && html`<kbd aria-hidden="true">${index + 1}</kbd>`}<${OptionWords} question=${question} id=${id} label=${label} /></label>`)}
        <div class="buttons"><button type="button" class="primary" onClick=${giveChosen} disabled=${isBusy}>Answer with ${chosen.size || 'the'} chosen</button>${other}</div>
      </fieldset>`
    : options.length > 0 && html`<div class=${`answers${isExplained ? ' explained' : ''}`} role="group" aria-label="Answers">
        ${options.map(([id, label], index) => html`<button key=${id} type="button" onClick=${() => tap(id, label)} disabled=${isBusy || !mayGive(id)}
            class=${isAllowing(id) ? 'allow' : meaningOf(question, id) === 'deny' ? 'deny' : ''}
            aria-describedby=${isAllowing(id) && !isWhole ? `${domId}-unseen` : undefined}>
          ${index < 9 && html`<kbd aria-hidden="true">${index + 1}</kbd>`}<${OptionWords} question=${question} id=${id} label=${label} /></button>`)}
        ${denial && !isDenying && html`<button type="button" class="deny" onClick=${() => setDenying(true)} disabled=${isBusy}>Deny with a reason… <kbd aria-hidden="true">D</kbd></button>`}
        ${other}
      </div>`}
    ${question.isPermission && question.isWhole && !isWhole && !about.readOnly && html`<p class="hint" id=${`${domId}-unseen`}>Scroll the call to its end: it can be allowed once all of it has been on the screen.</p>`}
    ${isDenying && html`<form class="write" onSubmit=${deny}>
      <label class="field"><span>Why it is denied (the agent reads it)</span>
        <input ref=${reasonField} value=${reason} onInput=${(event) => setReason(event.target.value)} onKeyDown=${leave} autocomplete="off" disabled=${isBusy} /></label>
      <div class="buttons"><button type="button" onClick=${() => setDenying(false)}>Not now</button><button class="danger" disabled=${isBusy}>Deny</button></div>
    </form>`}
    ${question.takesText && isWriting && !about.readOnly && html`<form class="write" onSubmit=${giveText}>
      <label class="field"><span class="unseen">${options.length ? 'Another answer' : 'Answer'}</span>
        <textarea ref=${field} rows="1" value=${text} placeholder=${options.length ? 'Another answer' : question.default ? `Answer (by default: ${oneLine(question.default, 80)})` : 'Answer'} onInput=${(event) => setText(event.target.value)} disabled=${isBusy}
          aria-invalid=${error ? 'true' : undefined} aria-describedby=${error ? `${domId}-problem` : undefined}
          onKeyDown=${(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && !event.ctrlKey && !event.metaKey) {
              event.preventDefault();
              if (!event.repeat) giveText();
            } else if (event.key === 'Escape') leave(event);
            else sendByKey(event);
          }}></textarea></label>
      <div class="buttons"><button class=${options.length ? '' : 'primary'} disabled=${isBusy}>Answer</button></div>
    </form>`}
    <${Problem} error=${error} id=${`${domId}-problem`} />
    <${Outstanding} of=${workerPath(task, instance, 'interact', question.id)} />
  </article>`;
}

/**
 * The label of an option, whole; what a question says about it is its second line.
 * @param {{ question: Sent.Question, id: string, label: string }} props
 */
function OptionWords({ question, id, label }) {
  const [name, about] = question.isPermission ? [label, ''] : optionWords(id, label);
  return html`<span class="option"><span class="foreign">${distinct(name)}</span>${question.default === id && html` <span class="quiet">default</span>`}
    ${about && html`<span class="about foreign">${distinct(about)}</span>`}</span>`;
}

/** @param {Sent.Question} question */
function askedText(question) {
  const text = String(question.question ?? '');
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}\n… (this is not all of it)` : text;
}

/**
 * Whether what is asked is in the look of its call too: the tool, and the beginning of what it is about.
 * @param {string} asked
 * @param {string} tool
 * @param {Look} look
 */
function saysNoMore(asked, tool, look) {
  const about = /^Allow ([^:?]*)(?:: (.*?)(…?))?\?$/s.exec(asked);
  if (!about || about[1] !== tool) return false;
  const [, , subject = '', isCut] = about;
  return isCut ? look.subject.startsWith(subject) : !subject || look.subject === subject;
}

/** @param {string} text */
const wordsIn = (text) => text.split(/[\s?:,"']+/);

/** For so long a question that is not drawn yet may get the focus: later it would come out of the blue. */
const WANTED_MS = 10_000;
/** The card that is to have the focus, also if it is drawn late or anew; empty once the reader has gone on. */
let wanted = '';
let timer = 0;

const forgetWanted = () => {
  clearTimeout(timer);
  wanted = '';
};
onMove(forgetWanted);

/** Put the focus on the card that is to have it, if it is drawn: its digits, `i` and `D` are about that. */
function showWanted() {
  const card = within(main(), `.worker-body [data-question="${CSS.escape(wanted)}"]`);
  reveal(card, 'center');
  card?.focus({ preventScroll: true });
}

/**
 * The focus goes to the first question of the worker that is shown, now or once it is drawn.
 * @param {string} workerKey
 */
export function toQuestion(workerKey) {
  forgetWanted();
  const [first] = openQuestions(workerKey, fleet.workers.get(workerKey));
  if (!first) return;
  wanted = cardKey(workerKey, first);
  timer = setTimeout(forgetWanted, WANTED_MS);
  showWanted();
}

/**
 * The questions of a worker are drawn: if one of them is to have the focus, it gets it, but from no field.
 * @param {string} workerKey
 */
export function takeWanted(workerKey) {
  if (wanted.startsWith(`${workerKey}/`) && !isField(focused())) showWanted();
}

/**
 * The keys of the question that has the focus, or else of the first one of a worker.
 * @param {() => string | null | undefined} keyNow
 * @param {() => string} whyNone says why there is none
 */
export function questionKeys(keyNow, whyNone) {
  const cardNow = () => {
    /** @type {HTMLElement | null | undefined} */
    const card = focused()?.closest('[data-question]');
    return cards.get(card?.dataset.question ?? keyNow() ?? '');
  };
  return {
    /** @param {KeyboardEvent} event */
    digit: (event) => cardNow()?.digit(Number(event.key)) ?? whyNone(),
    write: () => cardNow()?.write() ?? whyNone(),
    deny: () => cardNow()?.deny() ?? whyNone(),
    showRaw: () => cardNow()?.showRaw() ?? whyNone(),
  };
}
