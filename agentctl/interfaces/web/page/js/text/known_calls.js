// Which tool does what: one table of the names and arguments that agent programs use. What a look does not draw of a
// call, at any depth, is named in its `rest`, and a call of which a look would be wrong has none: it is shown as it is.
// Pure. `tests/unit/call_looks.json` has the cases of it, and of the same for a terminal.

import { shellLine } from './shell_line.js';

/**
 * What becomes of a file: an old text and a new one, a new file, or a patch.
 * @typedef {{ path: string, verb: string, old?: string, now?: string, patch?: string }} FileChange
 * @typedef {{ text: string, state: 'open' | 'active' | 'done' | 'dropped' }} Todo
 *
 * How a call looks. `subject`: what it is about, in a line; `title`: what its model calls it; `rest`: the arguments
 * that are not in it, one that lies deeper by where it is: `edits[1].replace_all`.
 * @typedef {{ kind: 'change' | 'command' | 'todos' | 'search' | 'read', verb: string, subject: string, title?: string,
 *   command?: string, changes?: FileChange[], todos?: Todo[], rest: Array<[string, unknown]> }} Look
 * @typedef {Record<string, unknown>} Arguments
 */

/** Takes the arguments that it draws out of a call. */
class Taking {
  /** @param {Arguments} given */
  constructor(given) {
    this.left = new Map(Object.entries(given));
    /** Those that lie deeper, by where they are.
     * @type {Map<string, Taking>} */
    this.inner = new Map();
  }

  /**
   * Whether one of some arguments is there that is not drawn yet.
   * @param {string[]} names
   */
  has(...names) {
    return names.some((name) => this.left.has(name));
  }

  /**
   * The first of some arguments that is there.
   * @param {string[]} names
   * @returns {unknown}
   */
  any(...names) {
    const name = names.find((one) => this.left.has(one));
    if (name === undefined) return undefined;
    const value = this.left.get(name);
    this.left.delete(name);
    return value;
  }

  /**
   * The same, which has to be a text.
   * @param {string[]} names
   */
  text(...names) {
    const value = this.any(...names);
    if (typeof value !== 'string') throw new Unexpected();
    return value;
  }

  /**
   * An argument that is a text; nothing where it is missing, or anything else.
   * @param {string} name
   */
  textIfAny(name) {
    return typeof this.left.get(name) === 'string' ? this.text(name) : undefined;
  }

  /**
   * A list of objects, each as arguments of its own.
   * @param {string} name
   */
  list(name) {
    const value = this.any(name);
    if (!Array.isArray(value) || !value.length || !value.every(isMapping)) throw new Unexpected();
    const all = value.map((one) => new Taking(one));
    all.forEach((one, at) => this.inner.set(`${name}[${at}].`, one));
    return all;
  }

  /**
   * Leave out arguments that say no, as if they were not there.
   * @param {string[]} names
   */
  dropNo(...names) {
    for (const name of names) if (this.left.get(name) === false) this.left.delete(name);
  }

  /** @returns {Array<[string, unknown]>} */
  get rest() {
    const inner = [...this.inner].flatMap(([where, { left }]) => [...left].map(
      /** @returns {[string, unknown]} */
      ([name, value]) => [where + name, value],
    ));
    if (inner.some(([name]) => this.left.has(name))) throw new Unexpected(); // One could be taken for the other.
    return [...this.left, ...inner];
  }
}

/** The arguments are not those that are known of the tool. */
class Unexpected extends Error {}

/**
 * @param {unknown} value
 * @returns {value is Arguments}
 */
const isMapping = (value) => isDeep(value) && !Array.isArray(value);
/** @param {unknown} value */
const isDeep = (value) => typeof value === 'object' && value !== null;

const PATHS = ['file_path', 'path', 'filePath', 'absolute_path'];
const OLDS = ['old_string', 'oldString', 'oldText', 'old_str'];
const NEWS = ['new_string', 'newString', 'newText', 'new_str'];
const CONTENTS = ['content', 'file_text', 'contents'];
const COMMANDS = ['command', 'cmd'];
/** With one of these a text is not what a file, or a part of it, is to be afterwards: added to it, say, or removed. */
const OTHERWISE = ['append', 'edit_mode', 'insert_line', 'mode'];

/**
 * @param {Taking} given
 * @returns {Omit<Look, 'rest'>}
 */
function change(given) {
  if (given.has(...OTHERWISE)) throw new Unexpected();
  if (given.has('changes')) return changed(fileChanges(given));
  const path = given.text(...PATHS);
  if (given.has('edits')) return changed(given.list('edits').map((one) => edited(path, one)));
  if (!given.has(...OLDS) && !given.has(...NEWS)) return changed([written(path, given)]);
  return changed([edited(path, given)]);
}

/**
 * @param {string} path
 * @param {Taking} given
 * @returns {FileChange}
 */
function edited(path, given) {
  if (given.has(...OTHERWISE)) throw new Unexpected();
  given.dropNo('replace_all', 'replaceAll');
  return { path, verb: 'Edit', old: given.text(...OLDS), now: given.text(...NEWS) };
}

/**
 * @param {string} path
 * @param {Taking} given
 * @returns {FileChange}
 */
const written = (path, given) => ({ path, verb: 'Write', old: '', now: given.text(...CONTENTS) });

const KINDS = new Map([['add', 'Write'], ['update', 'Edit'], ['delete', 'Delete'], ['move', 'Move to']]);
const WRITTEN = new Set(['add', 'update']);

/**
 * The files of a call that names them as Codex and ACP do.
 * @param {Taking} given
 * @returns {FileChange[]}
 */
const fileChanges = (given) => given.list('changes').map((file) => {
  const path = file.text('path');
  if (file.has(...OTHERWISE)) throw new Unexpected();
  if (file.has('kind')) return toldFile(path, file, given);
  const old = file.any(...OLDS) ?? '';
  if (typeof old !== 'string') throw new Unexpected();
  return { path, verb: old ? 'Edit' : 'Write', old, now: file.text(...NEWS) };
});

/**
 * What becomes of a file by the kind of its change; what is written into it is an argument of its own.
 * @param {string} path
 * @param {Taking} file
 * @param {Taking} given
 * @returns {FileChange}
 */
function toldFile(path, file, given) {
  const kind = file.text('kind');
  const verb = KINDS.get(kind);
  if (!verb || file.has(...OLDS, ...NEWS)) throw new Unexpected();
  if (!WRITTEN.has(kind)) return { path, verb };
  const patch = given.text(`diff of ${path}`);
  return kind === 'add' ? { path, verb, old: '', now: patch } : { path, verb, patch };
}

/**
 * @param {FileChange[]} changes
 * @returns {Omit<Look, 'rest'>}
 */
const changed = (changes) => {
  const paths = [...new Set(changes.map(({ path }) => path))];
  const verbs = new Set(changes.map(({ verb }) => verb));
  return { kind: 'change', verb: verbs.size === 1 ? changes[0].verb : 'Change', subject: paths.join(', '), changes };
};

/**
 * @param {Taking} given
 * @returns {Omit<Look, 'rest'>}
 */
function run(given) {
  const value = given.any(...COMMANDS);
  const isList = Array.isArray(value) && value.length && value.every((one) => typeof one === 'string');
  if (!value || (typeof value !== 'string' && !isList)) throw new Unexpected();
  const command = typeof value === 'string' ? value : shellLine(value);
  return { kind: 'command', verb: '$', subject: command, command, title: given.textIfAny('description') };
}

/** @type {Map<unknown, Todo['state']>} */
const STATES = new Map([
  ['pending', 'open'], ['in_progress', 'active'], ['inProgress', 'active'], ['completed', 'done'], ['done', 'done'],
  ['cancelled', 'dropped'],
]);
/** The text of a thing to do in other words, and the program's own number for it. */
const SAID_AGAIN = ['activeForm', 'id'];

/**
 * @param {Taking} given
 * @returns {Omit<Look, 'rest'>}
 */
function plan(given) {
  const todos = given.list(given.has('todos') ? 'todos' : 'plan').map(todo);
  const done = todos.filter(({ state }) => state === 'done').length;
  return { kind: 'todos', verb: 'Plan', subject: `${done} of ${todos.length} done`, todos, title: given.textIfAny('explanation') };
}

/**
 * @param {Taking} one
 * @returns {Todo}
 */
function todo(one) {
  const text = one.text('content', 'step', 'description');
  const priority = one.textIfAny('priority');
  for (const name of SAID_AGAIN) if (!isDeep(one.left.get(name))) one.any(name);
  const state = STATES.get(one.left.get('status'));
  if (state) one.any('status');
  return { text: priority ? `${text} (${priority})` : text, state: state ?? 'open' };
}

/**
 * @param {Taking} given
 * @returns {Omit<Look, 'rest'>}
 */
function search(given) {
  const pattern = given.text('pattern', 'query');
  const path = given.textIfAny('path') ?? given.textIfAny('dir_path');
  return { kind: 'search', verb: 'Search', subject: path ? `${pattern} in ${path}` : pattern };
}

/**
 * @param {Taking} given
 * @returns {Omit<Look, 'rest'>}
 */
const read = (given) => ({ kind: 'read', verb: 'Read', subject: given.text(...PATHS) });

/**
 * The tools by their names, in small letters and without what separates words.
 * @type {Array<[names: string, look: (given: Taking) => Omit<Look, 'rest'>]>}
 */
const TOOLS = [
  ['edit editfile multiedit replace strreplace applypatch delete move write writefile', change],
  ['bash shell runshellcommand execcommand commandexecution', run],
  ['todowrite updateplan writetodos', plan],
  ['grep search searchfilecontent grepsearch glob find', search],
  ['read readfile', read],
];
const BY_NAME = new Map(TOOLS.flatMap(([names, look]) => names.split(' ').map((name) => [name, look])));
/** What such a call would do can be seen in its look; of any other one its arguments say more. */
const ACTING = new Set(['change', 'command']);
/** A change of more lines is its arguments: each line of a look is an element, and all of them have to be there. */
const MOST_LINES = 3000;

/**
 * How a call looks; nothing where it is not known, or is other than expected.
 * @param {unknown} tool
 * @param {unknown} given
 * @returns {Look | null}
 */
export function lookOf(tool, given) {
  const name = String(tool ?? '');
  const look = /^[A-Za-z_]+$/.test(name) ? BY_NAME.get(name.toLowerCase().replaceAll('_', '')) : undefined;
  if (!look || !isMapping(given)) return null;
  const taking = new Taking(given);
  try {
    const found = look(taking);
    return { ...found, rest: taking.rest };
  } catch (error) {
    if (error instanceof Unexpected) return null;
    throw error;
  }
}

/**
 * How a call looks that asks to be allowed; nothing where its arguments say more.
 * @param {unknown} tool
 * @param {unknown} given
 */
export function askedLook(tool, given) {
  const look = lookOf(tool, given);
  return look && ACTING.has(look.kind) && linesOf(look) <= MOST_LINES ? look : null;
}

/** @param {Look} look */
const linesOf = ({ changes = [] }) => changes.reduce(
  (sum, { old = '', now = '', patch = '' }) => sum + `${old}\n${now}\n${patch}`.split('\n').length, 0,
);

/** What stands behind a part of what was found: of a driver, of a tool of ours, of a program that has searched. */
const NOT_ALL = /(?:\[cut: \d+ characters\]|\(Results are truncated[^\n]*\)|\[Showing results with pagination[^\n]*\])$/;
/** It is looked for in so many characters at the end: the text is a tool's, and may have any length. */
const LONGEST_NOTE = 300;
/** A line that was found, with its number. */
const MATCH = /^.+?:\d+:/;

/**
 * What came of a call, in a few words; nothing where that cannot be known.
 * @param {Look} look
 * @param {string | undefined} text what it has returned
 * @param {string | undefined} status
 * @param {boolean} [isCut] there is more of the text
 */
export function outcomeOf(look, text, status, isCut = false) {
  if (look.kind === 'command') {
    const told = look.rest.find(([name]) => name === 'exitCode')?.[1] ?? /^Exit code (\d+)\b/.exec(text ?? '')?.[1];
    return told != null && Number(told) !== 0 ? `exit ${Number(told)}` : '';
  }
  if (look.kind !== 'search' || status !== 'completed' || text == null) return '';
  const found = /^Found (\d+) (file|match|line)(?:e?s)?( limit: \d)?/.exec(text);
  if (found) return counted(Number(found[1]), found[2], found[3] !== undefined);
  const all = text.trimEnd();
  const note = NOT_ALL.exec(all.slice(-LONGEST_NOTE));
  const matches = note ? all.slice(0, all.length - note[0].length) : all;
  return foundIn(matches, /^No (files|matches)\b/.test(text), isCut || note !== null);
}

/**
 * What was found, counted. The first line says whether it is matches: the last one need not be whole.
 * @param {string} text
 * @param {boolean} isNothing
 * @param {boolean} isPart
 */
function foundIn(text, isNothing, isPart) {
  const lines = text.split('\n').filter((line) => line.trim());
  if (isNothing || !lines.length) return isPart && !isNothing ? '' : 'no matches';
  if (MATCH.test(lines[0])) return counted(lines.filter((line) => MATCH.test(line)).length, 'match', isPart);
  return isPart && lines.length === 1 ? '' : counted(lines.length, 'line', isPart);
}

/**
 * @param {number} number
 * @param {string} what
 * @param {boolean} isPart there are more
 */
function counted(number, what, isPart) {
  const ending = number === 1 ? '' : what === 'match' ? 'es' : 's';
  return `${number.toLocaleString('en')}${isPart ? '+' : ''} ${what}${ending}`;
}

/** @param {{ type: string, name?: string, detail?: unknown, status?: string }} one */
const isRead = ({ type, name, detail, status }) => type === 'tool' && status !== 'failed' && status !== 'denied'
  && lookOf(name, detail)?.kind === 'read';

/**
 * Runs of calls that only read, as one: what is between them ends a run, and so does one that has failed.
 * @template {{ type: string, name?: string, detail?: unknown, status?: string }} One
 * @param {One[]} all
 * @returns {Array<One | One[]>}
 */
export function readsTogether(all) {
  /** @type {Array<One | One[]>} */
  const found = [];
  for (const one of all) {
    const last = found.at(-1);
    if (!isRead(one)) found.push(one);
    else if (Array.isArray(last)) last.push(one);
    else found.push([one]);
  }
  return found.map((one) => (Array.isArray(one) && one.length === 1 ? one[0] : one));
}
