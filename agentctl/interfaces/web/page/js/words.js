// Values in a person's words: durations, numbers, times, and the state of a worker.
import { oneLine, plain } from './safe_text.js';

/**
 * A table that may be asked for any word, also for those that every object has.
 * @template T
 * @param {Record<string, T>} entries
 * @returns {Record<string, T | undefined>}
 */
export const table = (entries) => Object.assign(Object.create(null), entries);

/** @type {Set<string | undefined>} */
export const TERMINAL = new Set(['completed', 'failed', 'cancelled']);
/** @type {Array<[Sent.Need, string]>} */
export const NEEDS = [
  ['needs_you', 'Needs you'], ['review', 'Ready for review'], ['failed', 'Failed'], ['working', 'Working'],
  ['queued', 'Queued'], ['done', 'Done'], ['earlier', 'Earlier tries'],
];
/** The needs that a look ends. */
/** @type {Set<Sent.Need | undefined>} */
export const LOOKED_AT = new Set(['review', 'failed']);
export const NEED_WORDS = table(Object.fromEntries(NEEDS.map(([need, words]) => [need, words.toLowerCase()])));

const GLYPHS = table({ queued: '·', running: '●', blocked: '?', completed: '✓', failed: '✗', cancelled: '-' });
const UNPROVEN = table({ elsewhere: 'on another machine', stranded: 'nothing will start it: its Why says what does',
  held: 'held in the queue: its Why says by whom', unknown: 'its files cannot be read' });
const WINDOWS = table({ five_hour: '5 h', seven_day: '7 d' });
/**
 * The time after which an account may be used again, in words.
 * @param {string} name
 */
export const windowWords = (name) => WINDOWS[name] ?? name;

/**
 * 4.2s, 65s as 1m05s, 2h03m, 3d04h.
 * @param {number | null | undefined} seconds
 */
export function duration(seconds, isLive = false) {
  if (seconds == null || !Number.isFinite(seconds)) return '-';
  if (seconds < 10 && !isLive) return `${seconds.toFixed(1)}s`;
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  /** @param {number} number */
  const two = (number) => String(number).padStart(2, '0');
  if (minutes < 60) return `${minutes}m${two(Math.floor(seconds) % 60)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** @param {number} value */
export function shortNumber(value) {
  for (const { unit, size } of [{ unit: 'M', size: 1e6 }, { unit: 'k', size: 1e3 }]) {
    if (value >= size) return `${(value / size).toFixed(value / size < 100 ? 1 : 0)}${unit}`;
  }
  return String(value);
}

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value == null) return '';
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/**
 * @param {number} number
 * @param {string} what
 */
export const counted = (number, what) => `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`;

/** @param {string | null | undefined} at */
export const secondsSince = (at, now = Date.now()) => {
  const began = Date.parse(at ?? '');
  return Number.isNaN(began) ? null : Math.max(0, (now - began) / 1000);
};

/**
 * The time of day, with the day if that is not today.
 * @param {string | null | undefined} at
 */
export function clock(at, hasSeconds = true) {
  const date = new Date(at ?? NaN);
  if (Number.isNaN(date.getTime())) return '--:--';
  const second = hasSeconds ? '2-digit' : undefined;
  const time = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString('en-GB', { day: '2-digit', month: 'short' })} ${time}`;
}

/**
 * What stands before a worker's name: the sign, its role (a class), and what it means.
 * @param {Sent.Standing} worker
 */
export function signOf(worker) {
  const { status } = worker;
  if (worker.idle) return { glyph: '○', role: 'idle', words: 'waits for a message' };
  if (worker.paused && !TERMINAL.has(status)) return { glyph: '‖', role: 'blocked', words: 'paused' };
  const health = TERMINAL.has(status) ? '' : worker.health ?? '';
  if (health === 'held') return { glyph: '‖', role: 'blocked', words: 'held in the queue' };
  if (['unsupervised', 'unfollowed', 'elsewhere', 'stranded', 'unknown'].includes(health)) {
    return { glyph: '~', role: 'blocked', words: UNPROVEN[health] ?? 'its guard is gone' };
  }
  const glyph = GLYPHS[status ?? ''];
  return { glyph: glyph ?? '·', role: glyph && status ? status : 'queued', words: plain(status ?? 'unknown') };
}

const TASK_SIGNS = table({
  running: ['●', 'running'], blocked: ['?', 'blocked'], completed: ['✓', 'completed'], failed: ['✗', 'failed'],
  cancelled: ['-', 'cancelled'], created: ['·', 'queued'], stranded: ['~', 'blocked'], held: ['‖', 'blocked'],
});
/** @param {Sent.Task} task */
export function signOfTask(task) {
  const [glyph, role] = TASK_SIGNS[task.status] ?? ['·', 'queued'];
  return { glyph, role, words: plain(task.status ?? '') };
}

/**
 * What holds the queue of a task, so that nothing of it is started; empty if nothing does.
 * @param {Sent.Task | undefined} task
 */
export function holdWords(task) {
  if (!task?.held) return '';
  return plain(task.held.by ? `held by ${task.held.by}` : 'held: maxConcurrentAgents is 0');
}

/**
 * How a worker ended: `failed (exit_code 3)`.
 * @param {Sent.Standing} worker
 */
export function endWords(worker) {
  return worker.reason ? plain(`${worker.status} (${reasonWords(worker)})`) : plain(worker.status ?? '');
}

/**
 * What is said of a failure beside its reason, the most telling first: what it wrote last, then a message.
 * @param {Sent.Standing} worker
 */
export const saidAtEnd = ({ lastLine, message }) => [...new Set([lastLine, message])].filter(Boolean);

/**
 * Why a worker failed: `exit_code 3`.
 * @param {Sent.Standing} worker
 */
function reasonWords(worker) {
  const detail = table({ exit_code: worker.exitCode, signal: worker.signal })[worker.reason ?? ''];
  return [worker.reason, detail].filter((part) => part != null).join(' ');
}

/**
 * A worker's agent, and the driver that runs it: `general:codex`; empty of a command.
 * @param {Sent.Worker} worker
 */
export function agentWords({ agent, driver }) {
  if (!agent || agent === 'command') return '';
  return plain(driver && driver !== agent ? `${agent}:${driver}` : agent);
}

/**
 * What is unusual about a worker, in a few words.
 * @param {Sent.Worker} worker
 */
export function standing(worker) {
  if (worker.unreadable) return plain(`unknown: ${worker.unreadable}`);
  if (worker.reason) return plain(reasonWords(worker));
  const health = worker.health ?? '';
  if (['stranded', 'held'].includes(health)) return UNPROVEN[health] ?? '';
  const account = worker.awaitsAccount;
  if (account) {
    const window = windowWords(account.window);
    return plain(`${worker.parked && window ? 'parked' : 'waits for its account'} until ${clock(account.until, false)}${window ? ` (${window} window)` : ''}`);
  }
  if (worker.survivors?.length) return 'survivors';
  if (worker.paused) return 'paused';
  if (worker.askedBelow) return 'a child asks';
  if (worker.stalled) return 'stalled';
  if (worker.awaitsChildren) return 'awaits children';
  if (worker.uncollected) return `${worker.uncollected} uncollected`;
  if (['unsupervised', 'unfollowed', 'elsewhere', 'observed'].includes(health)) return health;
  return onNode(worker) || (worker.after?.length ? plain(`after ${worker.after.join(', ')}`) : '');
}

/**
 * Where a worker on a node of a cluster is, or why it is not there yet.
 * @param {Sent.Worker} worker
 */
function onNode(worker) {
  const placed = worker.placement;
  if (!placed || worker.endedAt) return '';
  if (placed.problem) return plain(placed.node ? placed.problem : `${placed.runner}: ${placed.problem}`);
  if (placed.state === 'unknown') return plain(`${placed.runner} does not answer`);
  if (placed.node && (!placed.state || placed.state === 'running')) return plain(`on ${placed.node}`);
  if (placed.state === 'running') return plain(`${placed.runner}: it has a node, and waits for a slot`);
  const why = placed.reason && placed.reason !== 'None' ? ` (${placed.reason})` : '';
  return plain(`${placed.runner}: ${placed.words || placed.state || 'submitting'}${why}`);
}

/** @param {Sent.Progress | null | undefined} progress */
export function progressWords(progress) {
  if (!progress) return '';
  const { percent: told } = progress;
  const percent = told != null && Number.isFinite(told) ? `${Math.round(told * 10) / 10}%` : '';
  return [percent, oneLine(progress.text ?? '')].filter(Boolean).join(' ');
}

/**
 * What a row says of a worker, as pieces [text, role].
 * @param {Sent.Worker} worker
 * @param {Sent.Task | undefined} task
 */
export function saidOf(worker, task) {
  const questions = worker.questions ?? [];
  const found = [];
  if (questions.length) {
    const [first] = questions;
    found.push([oneLine(first.line) + (questions.length > 1 ? ` (+${questions.length - 1})` : ''), first.isPermission ? 'blocked' : 'text']);
    return found;
  }
  if (task && task.own === false) found.push(['foreign', 'blocked']);
  found.push([oneLine(saidAtEnd(worker).join('; ')), 'text']); // Why it failed, before how it stands.
  if (agentWords(worker)) found.push([agentWords(worker), 'agent']);
  const isEnded = TERMINAL.has(worker.status);
  if (worker.idle) found.push(['waits for a message', 'idle']);
  else if (isEnded && worker.status !== 'completed') found.push([endWords(worker), worker.status]);
  else if (standing(worker)) found.push([standing(worker), 'blocked']);
  if (worker.changedFiles) found.push([counted(worker.changedFiles, 'changed file'), 'review']);
  if (!isEnded && worker.progress) found.push([progressWords(worker.progress), 'text']);
  if (worker.lastWords && worker.driver) found.push([oneLine(worker.lastWords), isEnded ? 'dim' : 'text']);
  else if (worker.command) found.push([oneLine(worker.command), 'dim']);
  return found.filter(([text]) => text);
}

/** @param {Sent.Worker} worker */
export function tokensOf(worker) {
  return (worker.usage?.input ?? 0) + (worker.usage?.output ?? 0);
}

/** @param {number | null | undefined} cost */
export const costWords = (cost) => (cost != null && cost > 0 ? `$${Number(cost).toFixed(2)}` : '');

/**
 * How long a worker has waited for a person, for a slot, or has worked: seconds, and whether that still grows.
 * @param {Sent.Worker} worker
 * @param {number} now
 * @returns {[seconds: number | null, isGrowing: boolean]}
 */
export function timeOf(worker, now) {
  if (worker.questions?.length) return [secondsSince(worker.questions[0].askedAt, now), true];
  if (worker.status === 'queued') return [secondsSince(worker.queuedAt, now), true];
  if (worker.durationSeconds != null) return [worker.durationSeconds, false];
  const isEnded = TERMINAL.has(worker.status);
  const until = isEnded ? Date.parse(worker.endedAt ?? '') : now;
  return [Number.isNaN(until) ? null : secondsSince(worker.startedAt, until), !isEnded];
}
