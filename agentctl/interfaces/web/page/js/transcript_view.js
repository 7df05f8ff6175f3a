// The transcript of a worker: what it said and did, as it comes.
import { get, workerPath } from './api.js';
import { argumentName, argumentText, CallLook } from './call_look.js';
import { html, stamped, useEffect, useRef, useState } from './dom.js';
import { useFollowing, usePolling, useScrollKeys } from './following.js';
import { ITEM_SIGNS, itemLabel, telling } from './item_words.js';
import { Markdown, SourceSwitch, useSource } from './markdown_view.js';
import { waitedFor } from './outstanding.js';
import { Arrow, Loading, Problem } from './pieces.js';
import { distinct, oneLine, plain, plainLines, plainOutput } from './safe_text.js';
import { noteQuery, placeIn } from './router.js';
import { ShownRows } from './shown_rows.js';
import { sayRefusal } from './store.js';
import { lookOf, outcomeOf, readsTogether } from './text/known_calls.js';
import { callsIn, holds, stampOf, TranscriptBlocks } from './transcript_blocks.js';
import { clock, counted, duration, secondsSince, table } from './words.js';

/** @import { Block } from './transcript_blocks.js' */

const PAGE = 200;
const FOLDED_LINES = 14;
const FOLDED_CHARACTERS = 1600;
/** More blocks than this make a page slow: what is far above is dropped while one follows. */
const MOST_BLOCKS = 3000;

/**
 * The part of a transcript that is here; `begin` and `end` are bytes of its file.
 * `number`: how often it was fetched anew. Blocks of an earlier time are not those that are here.
 * @typedef {{ blocks: TranscriptBlocks, begin: number, end: number, ended: boolean, isLoading: boolean,
 *   number: number }} Known
 *
 * What was unfolded, what is done to a block, and the one that a search has found.
 * @typedef {{ folds: Map<string, boolean>, fold: (block: Block, value: boolean, ...keys: string[]) => void,
 *   showWhole: (block: Block) => Promise<void>, isSource: boolean, found: Block | null }} Context
 *
 * What stands in a line of its own: a block, or calls that only read.
 * @typedef {{ key: string, blocks: Block[], time: string }} Entry
 */

const PREFIXES = table({ thought: 'thinks', question: 'asks', note: 'note', progress: 'progress', message: '' });
/** Rows whose text somebody has written as Markdown. */
const WRITTEN = new Set(['message', 'thought', 'question']);
/** The headings of a text come below the name of the worker. */
const HOW = { level: 2 };

/**
 * Blocks as they stand below each other: calls that only read are one, and a time is told once a minute.
 * @param {Block[]} blocks
 * @returns {Entry[]}
 */
function entriesOf(blocks) {
  let told = '';
  return readsTogether(blocks).map((one) => {
    const all = Array.isArray(one) ? one : [one];
    const time = clock(all[0].at, false);
    const entry = { key: all[0].key, blocks: all, time: time === told ? '' : time };
    told = time;
    return entry;
  });
}

/** @param {{ task: string, instance: string, worker: Sent.Worker, asks: Asks }} props */
export function TranscriptTab({ task, instance, worker, asks }) {
  const box = useRef(null);
  const state = useRef(/** @type {Known | null} */ (null));
  const begun = useRef(0);
  const [revision, setRevision] = useState(0);
  const [error, setError] = useState(null);
  const [folds] = useState(() => new Map());
  const [isSource, toggleSource] = useSource('transcript');
  const draw = () => setRevision((count) => count + 1);
  /**
   * @param {Block} block
   * @param {boolean} value
   * @param {string[]} keys
   */
  const fold = (block, value, ...keys) => {
    for (const key of keys) folds.set(key, value);
    block.revision += 1;
    draw();
  };

  const path = workerPath(task, instance, 'activity');
  const [wanted] = useState(placeIn);
  const isBeginning = useRef(false);
  const begin = async (at = -1) => {
    isBeginning.current = true;
    try {
      const page = await get(path, { limit: PAGE, ...(at >= 0 ? { from: at } : {}) });
      const blocks = new TranscriptBlocks();
      blocks.add(page.rows);
      const { begin: from, end, size } = page;
      begun.current += 1;
      const number = begun.current;
      state.current = { blocks, begin: from, end, ended: page.ended && end >= size, isLoading: false, number };
      setError(null);
      draw();
    } catch (refusal) {
      setError(refusal);
    }
    isBeginning.current = false;
  };
  useEffect(() => {
    // The row of a search is the first one that is here: those above it come as soon as there is room.
    begin(wanted).then(() => {
      const found = state.current?.blocks.blockAt(wanted);
      if (found && Object.values(found.cuts).some((cut) => cut !== null)) showWhole(found);
    });
  }, [path]);
  usePolling(async () => {
    const now = state.current;
    if (!now) {
      if (!isBeginning.current) await begin(wanted);
      return 'nothing';
    }
    if (now.ended) return 'ended';
    if (!following.isFollowing && now.blocks.byKey.size > 2 * MOST_BLOCKS) return 'nothing'; // Until one follows again.
    const page = await get(path, { from: now.end, limit: PAGE });
    if (page.size < now.end) { // It was made again, and is another file.
      state.current = null;
      return 'more';
    }
    const isNew = now.blocks.add(page.rows);
    now.end = page.end;
    now.ended = page.ended && page.end >= page.size;
    if (isNew && following.isFollowing && now.blocks.byKey.size > MOST_BLOCKS) await begin();
    else if (isNew || now.ended) draw();
    return isNew ? 'more' : now.ended ? 'ended' : 'nothing';
  }, [path, worker.attempt]);
  const loadOlder = async () => {
    const now = state.current;
    if (!now || now.isLoading || now.begin <= 0) return;
    now.isLoading = true;
    try {
      const page = await waitedFor(() => get(path, { before: now.begin, limit: PAGE }));
      now.blocks.add(page.rows);
      now.begin = page.begin < now.begin ? page.begin : 0;
      draw();
    } catch (refusal) {
      sayRefusal(refusal, 'Older rows');
    }
    now.isLoading = false;
  };
  const following = useFollowing({
    box, revision, onOlder: loadOlder, hasOlder: (state.current?.begin ?? 0) > 0, startsAtEnd: wanted < 0,
  });
  const toEnd = () => {
    noteQuery('at', '');
    noteQuery('find', '');
    following.toEnd();
  };
  useScrollKeys(toEnd, { first: following.toBegin });
  /** @param {Block} block */
  const showWhole = async (block) => {
    const now = state.current;
    try {
      for (const offset of new Set(Object.values(block.cuts).flatMap((cut) => cut?.offset ?? []))) {
        const { rows } = await waitedFor(() => get(path, { from: offset, limit: 1, whole: true }));
        if (rows[0]) now?.blocks.putWhole(block, rows[0]);
      }
      draw();
    } catch (refusal) {
      sayRefusal(refusal, 'The whole text');
    }
  };
  if (error && !state.current) return html`<${Problem} error=${error} />${asks}`;
  if (!state.current) return html`<${Loading} />${asks}`;
  const { number } = state.current;
  const roots = state.current.blocks.roots();
  const found = state.current.blocks.blockAt(wanted);
  const context = { folds, fold, showWhole, isSource, found };
  return html`<div class="transcript-head">
      ${state.current.begin > 0 ? html`<button type="button" class="small" onClick=${loadOlder}>Show older</button>` : ''}
      ${roots.length > 0 && html`<${SourceSwitch} isSource=${isSource} toggle=${toggleSource} />`}
    </div>
    <div class="transcript" ref=${box} role="log" aria-live="off" aria-label=${`Transcript of ${plain(instance)}`}>
      ${entriesOf(roots).map((entry) => html`<${Root} key=${entry.key} entry=${entry} stamp=${`${number} ${stampOfEntry(entry, isSource)}`} context=${context} />`)}
    </div>
    ${!roots.length && html`<p class="quiet pad">${worker.driver ? 'It has not said or done anything yet.' : 'A command has no transcript, only what it reports itself: see its output.'}</p>`}
    ${state.current.ended && roots.length > 0 && html`<p class="quiet end-line">It has ended.</p>`}
    ${asks}
    ${!following.isFollowing && html`<button type="button" class="to-end" onClick=${toEnd}>↓ To the end</button>`}`;
}

/**
 * @param {Entry} entry
 * @param {boolean} isSource
 */
const stampOfEntry = ({ blocks, time }, isSource) => `${time} ${isSource} ${blocks.map(stampOf).join()}`;

const Root = stamped((props) => html`<${Line} ...${props} />`);

/** @param {{ entry: Entry, context: Context }} props */
function Line({ entry, context }) {
  const { blocks, time } = entry;
  return blocks.length > 1 ? html`<${Reads} entry=${entry} context=${context} />` : html`<${Block} block=${blocks[0]} time=${time} context=${context} />`;
}

/** @param {{ block: Block, time: string }} props */
const At = ({ block, time }) => html`<time class="at" datetime=${block.at} title=${clock(block.at)}>${time}</time>`;

/**
 * Whether a block is the one that a search has found, as `aria-current` says it.
 * @param {Block} block
 * @param {Context} context
 */
const currentOf = (block, { found }) => (found && (block === found || block.call === found) ? 'true' : undefined);

/** @param {{ block: Block, time: string, context: Context }} props */
function Block({ block, time, context }) {
  const { type } = block;
  if (type === 'problem') return html`<div class="block problem-row"><span class="at"></span><div class="body quiet">A row that cannot be read: <span class="foreign">${plain(block.problem)}</span></div></div>`;
  if (type === 'tool') return html`<${Call} block=${block} time=${time} context=${context} />`;
  if (type === 'agent') return html`<${SubAgent} block=${block} time=${time} context=${context} />`;
  const isQuiet = ['thought', 'progress', 'note'].includes(type);
  const isPrompt = type === 'message' && block.name === 'user';
  const prefix = PREFIXES[type] ?? plain(type);
  return html`<div class=${`block ${type in PREFIXES ? type : ''}${isQuiet ? ' dimmed' : ''}${isPrompt ? ' from-person' : ''}`} aria-current=${currentOf(block, context)}>
    <${At} block=${block} time=${time} />
    <div class="body">
      ${prefix && html`<span class="kind">${prefix}${type === 'question' && block.status ? ` (${plain(block.status)})` : ''}</span>`}
      ${block.percent != null && html`<span class="kind">${Math.round(block.percent)}%</span>`}
      ${block.name && html`<span class="kind foreign">${isPrompt ? 'prompt' : oneLine(block.name)}</span>`}
      ${block.text != null && html`<${Long} block=${block} field="text" text=${block.text} context=${context} isMarkdown=${isWritten(block)} />`}
      ${block.text == null && block.detail && html`<${Long} block=${block} field="detail" text=${block.detail} context=${context} isMono />`}
      ${block.text == null && !block.detail && block.percent == null && html`<span class="foreign">${plain(block.label ?? '')}</span>`}
    </div>
  </div>`;
}

/**
 * Whether a text is Markdown: what asks for permission is not, it names a call.
 * @param {Block} block
 */
const isWritten = (block) => WRITTEN.has(block.type) && !(block.type === 'question' && block.name);

/** @param {Block} block */
const amongReads = (block) => `reads ${block.key}`;

/**
 * Whether calls that only read are unfolded: a person has said so of them together, or of one before others came.
 * @param {Block[]} blocks
 * @param {Map<string, boolean>} folds
 * @param {boolean} isFound whether a search has found one of them
 */
function areUnfolded(blocks, folds, isFound) {
  const told = blocks.map((block) => folds.get(amongReads(block))).filter((one) => one !== undefined);
  return told.length ? told.includes(true) : isFound || blocks.some(({ key }) => folds.get(key));
}

/** @param {{ entry: Entry, context: Context }} props */
function Reads({ entry, context }) {
  const { blocks, time } = entry;
  const isOpen = areUnfolded(blocks, context.folds, blocks.some((block) => holds(block, context.found)));
  const last = blocks[blocks.length - 1];
  const names = blocks.map(({ detail, name }) => lookOf(name, detail)?.subject ?? '').join(', ');
  return html`<div class="block call-block">
    <${At} block=${blocks[0]} time=${time} />
    <div class="body">
      <button type="button" class="call-line" aria-expanded=${String(isOpen)} onClick=${() => context.fold(last, !isOpen, ...blocks.map(amongReads))}>
        <${Arrow} isOpen=${isOpen} /><span class="tool-name">Read ${counted(blocks.length, 'file')}</span>
        <span class="telling foreign">${oneLine(names, 220)}</span> ${last.status === 'running' && html`<${Outcome} block=${last} />`}</button>
      ${isOpen && html`<div class="inside">${blocks.map((block) => html`<${Block} key=${block.key} block=${block} time="" context=${context} />`)}</div>`}
    </div>
  </div>`;
}

/** @param {Block} block */
const took = (block) => (block.endedAt && block.at ? duration(secondsSince(block.at, Date.parse(block.endedAt))) : '');

/** @param {{ block: Block }} props */
function Outcome({ block }) {
  const [glyph, role] = ITEM_SIGNS[block.status ?? ''] ?? ['●', 'running'];
  const words = plain(block.status ?? 'running');
  return html`<span class=${`outcome ${role}`}><span aria-hidden="true">${glyph}</span> <span class=${words === 'completed' ? 'unseen' : ''}>${words}</span></span>
    ${took(block) && took(block) !== '0.0s' && html`<span class="quiet time">${took(block)}</span>`}`;
}

/** @param {{ block: Block, time: string, context: Context }} props */
function Call({ block, time, context }) {
  const look = lookOf(block.name, block.detail);
  const isTelling = ['failed', 'denied'].includes(block.status ?? '') || look?.kind === 'todos';
  const isOpen = context.folds.get(block.key) ?? (isTelling || block === context.found);
  const toggle = () => context.fold(block, !isOpen, block.key);
  const short = oneLine(look ? look.title || look.subject : telling(block.detail), 220);
  const came = look ? outcomeOf(look, block.text, block.status, Boolean(block.cuts.text)) : '';
  const isSaid = block.text || block.cuts.text;
  const isSilent = look?.kind === 'todos' && block.status === 'completed'; // All that it returns is that it is done.
  const sign = look?.kind === 'command' ? '$' : oneLine(look?.verb ?? block.name ?? 'tool', 80);
  return html`<div class=${`block call-block ${look ? `look-${look.kind}` : ''}`} aria-current=${currentOf(block, context)}>
    <${At} block=${block} time=${time} />
    <div class="body">
      <button type="button" class="call-line" aria-expanded=${String(isOpen)} onClick=${toggle}>
        <${Arrow} isOpen=${isOpen} /><span class="tool-name foreign" title=${oneLine(block.name ?? '', 80)}>${sign}</span>
        <span class=${`telling foreign${look?.title ? ' titled' : ''}`}>${short}</span>${came && html`<span class="came">${came}</span>`} <${Outcome} block=${block} /></button>
      ${isOpen && html`<div class="call-parts">
        ${look ? html`<${CallLook} look=${look}><${CallArguments} block=${block} entries=${look.rest} context=${context} /><//>` : html`<${CallArguments} block=${block} entries=${argumentsOf(block)} context=${context} />`}
        ${isSaid && !isSilent && html`<div class="returned"><${Long} block=${block} field="text" text=${block.text} rows=${block.shown} context=${context} isMono isOutput /></div>`}
        ${!isSaid && block.status && block.status !== 'running' && html`<p class="quiet">It returned nothing.</p>`}
      </div>`}
    </div>
  </div>`;
}

/**
 * @param {Block | undefined} block
 * @returns {Array<[string, any]>}
 */
const argumentsOf = (block) => (block?.detail && typeof block.detail === 'object' ? Object.entries(block.detail) : []);

/**
 * Arguments of a call, a long one folded. What the server has cut is told at the argument that it has cut, or below all
 * if that is not one of them.
 * @param {{ block: Block, entries: Array<[string, any]>, context: Context, others?: string[] }} props `others`: the
 *   names of those that are told elsewhere
 */
function CallArguments({ block, entries, context, others = [] }) {
  const names = new Set([...entries.map(([name]) => name), ...others]);
  const cut = block.cuts.detail?.names ?? [];
  return html`${entries.length > 0 && html`<div class="arguments">${entries.map(([name, value]) => html`<div class="argument" key=${name}><span class="name foreign">${distinct(argumentName(name))}</span><${Long} block=${block} field=${`detail ${name}`} text=${value} context=${context} isMono isCut=${cut.includes(name)} /></div>`)}</div>`}
    ${cut.some((name) => name === undefined || !names.has(name)) && html`<p class="quiet">Only its beginning. <button type="button" class="small plain" onClick=${() => context.showWhole(block)}>Show all</button></p>`}`;
}

/** @param {{ block: Block, time: string, context: Context }} props */
function SubAgent({ block, time, context }) {
  const isOpen = context.folds.get(block.key) ?? holds(block, context.found);
  const toggle = () => context.fold(block, !isOpen, block.key);
  const calls = callsIn(block);
  // What it tells itself is later than its call. A prompt that is not a text is an argument as any other.
  const own = argumentsOf(block);
  const told = new Set(own.map(([name]) => name));
  const parts = [{ of: block, entries: own }];
  const before = argumentsOf(block.call).filter(([name]) => !told.has(name));
  if (block.call) parts.unshift({ of: block.call, entries: before });
  const asked = parts.find(({ entries }) => entries.some(isToDo));
  const answer = !block.text && block.call?.text ? block.call : block;
  return html`<div class="block sub-agent" aria-current=${currentOf(block, context)}>
    <${At} block=${block} time=${time} />
    <div class="body">
      <button type="button" class="call-line" aria-expanded=${String(isOpen)} onClick=${toggle}>
        <${Arrow} isOpen=${isOpen} /><span class="tag foreign">${oneLine(block.agentType || 'agent', 40)}</span>
        <span class="telling foreign">${itemLabel(block)}</span> ${calls > 0 && html`<span class="quiet">${counted(calls, 'call')}</span>`} <${Outcome} block=${block} /></button>
      ${isOpen && html`<div class="inside">
        ${asked && html`<div class="block message from-person"><span class="at"></span><div class="body"><span class="kind">is to</span><${Long} block=${asked.of} field="prompt" text=${asked.entries.find(isToDo)?.[1]} context=${context} isMarkdown isCut=${asked.of.cuts.detail?.names.includes('prompt') ?? false} /></div></div>`}
        ${parts.map(({ of, entries }) => html`<${CallArguments} key=${of.key} block=${of} entries=${entries.filter((one) => !isToDo(one))} context=${context} others=${['prompt', ...(of === block ? [] : told)]} />`)}
        ${entriesOf(block.children).map((entry) => html`<${Line} key=${entry.key} entry=${entry} context=${context} />`)}
        ${answer.text && html`<div class="block message"><span class="at"></span><div class="body"><span class="kind">answered</span><${Long} block=${answer} field="text" text=${answer.text} context=${context} isMarkdown /></div></div>`}
        ${!block.children.length && !answer.text && html`<p class="quiet">Nothing of it is known yet.</p>`}
      </div>`}
    </div>
  </div>`;
}

/** @param {[string, unknown]} entry */
const isToDo = ([name, value]) => name === 'prompt' && typeof value === 'string' && value !== '';

/**
 * A text, folded where it is long; what the server has cut is fetched when one wants to see it.
 * @param {{ block: Block, field: string, text: unknown, context: Context, isMono?: boolean,
 *   isOutput?: boolean, isMarkdown?: boolean, isCut?: boolean, rows?: Sent.OutputRow[] }} props
 *   `text`: anything else is shown as JSON; `rows`: the text as a terminal shows it
 */
function Long({ block, field, text, context, isMono, isOutput, isMarkdown, isCut = block.cuts[field] != null, rows }) {
  const key = `${block.key} ${field} all`;
  const isWhole = context.folds.get(key) ?? (currentOf(block, context) !== undefined);
  const string = text == null && isCut ? '' : argumentText(text);
  const isLong = string.length > FOLDED_CHARACTERS || lineCount(string) > FOLDED_LINES;
  const shown = isLong && !isWhole ? beginning(string) : string;
  const toggle = async () => {
    if (isCut) await context.showWhole(block);
    context.fold(block, isCut || !isWhole, key);
  };
  if (isMarkdown && !context.isSource) return html`<${Markdown} text=${string} how=${HOW} isFolded=${!isWhole} isCut=${isCut} onFold=${toggle} />`;
  const drawn = rows && html`<${ShownRows} rows=${isLong && !isWhole ? rows.slice(0, FOLDED_LINES) : rows} />`;
  return html`<span class=${`long foreign${isMono ? ' mono' : ''}`}>${drawn ? drawn : isOutput ? plainOutput(shown) : plainLines(shown)}${isLong && !isWhole ? '…' : ''}</span>
    ${(isLong || isCut) && html`<button type="button" class="small plain" onClick=${toggle}>${isWhole && !isCut ? 'Show less' : isCut ? 'Show all' : `Show all (${lineCount(string) > FOLDED_LINES ? counted(lineCount(string), 'line') : counted(string.length, 'character')})`}</button>`}`;
}

/** @param {string} text */
const lineCount = (text) => {
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
};

/** @param {string} text */
function beginning(text) {
  let end = -1;
  for (let line = 0; line < FOLDED_LINES; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  return text.slice(0, Math.min(end < 0 ? text.length : end, FOLDED_CHARACTERS));
}
