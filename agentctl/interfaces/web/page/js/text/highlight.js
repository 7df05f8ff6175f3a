// Code with its colours: comments, texts, numbers and the words of a language. It knows no grammar, and looks at each
// character once, whatever that is. Pure.

/** @typedef {{ text: string, role: '' | 'comment' | 'string' | 'number' | 'word' | 'name' }} Coloured */

/** Longer code is not coloured: each piece of it is an element. */
const LONGEST = 20_000;

const C_LIKE = 'break case catch class const continue default do else enum export extends false finally for function '
  + 'if implements import in instanceof interface let new null of package private protected public return static '
  + 'super switch this throw true try typeof undefined var void while with yield async await as from type '
  + 'readonly abstract declare namespace keyof satisfies override struct func fn impl trait mut pub use mod match '
  + 'where loop move ref self Self crate dyn unsafe go chan defer map range select fallthrough goto nil int char '
  + 'float double long short unsigned signed bool boolean string auto sizeof typedef union virtual template '
  + 'typename using operator inline extern volatile constexpr nullptr delete friend final throws synchronized val '
  + 'when object internal data sealed';
const PYTHON = ''
  + 'False None True and as assert async await break class continue def del elif else except finally for from '
  + 'global if import in is lambda match case nonlocal not or pass raise return try while with yield self';
const SHELL = ''
  + 'if then else elif fi for while until do done case esac in function return local export readonly set unset '
  + 'exit cd echo source sudo true false';
const SQL = ''
  + 'select from where and or not insert into values update set delete create table index view drop alter add '
  + 'column primary key foreign references join left right inner outer full on as group by order having limit '
  + 'offset union all distinct case when then else end null is in like between exists default begin commit '
  + 'rollback with returning true false';
const RUBY = ''
  + 'alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo '
  + 'rescue retry return self super then true undef unless until when while yield require';
const DATA = 'true false null yes no on off';

const STRINGS = String.raw`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?`;
const BACKTICKS = '|`(?:[^`\\\\]|\\\\[^])*`?';
const TRIPLE = '"""(?:[^"\\\\]|\\\\[^]|"(?!""))*(?:"""|$)|\'\'\'(?:[^\'\\\\]|\\\\[^]|\'(?!\'\'))*(?:\'\'\'|$)|';
const SLASHES = String.raw`\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/|$)`;
const HASH = '#[^\\n]*';
const AFTER_BLANK = String.raw`(?<![^\s;])#[^\n]*`;
const NUMBER = String.raw`(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)[a-zA-Z]*`;
const WORD = String.raw`[\p{L}_$][\p{L}\p{N}_$]*`;

/**
 * @param {string} comments
 * @param {string} strings
 * @param {string} words
 * @param {boolean} [isAnyCase]
 */
const language = (comments, strings, words, isAnyCase = false) => ({
  pieces: new RegExp(`(?<comment>${comments})|(?<string>${strings})|(?<number>${NUMBER})|(?<word>${WORD})|[^]`, 'uy'),
  words: new Set(words.split(' ')),
  isAnyCase,
});

const LANGUAGES = {
  braces: language(SLASHES, STRINGS + BACKTICKS, C_LIKE),
  python: language(HASH, TRIPLE + STRINGS, PYTHON),
  shell: language(AFTER_BLANK, String.raw`"(?:[^"\\]|\\[^])*"?|'[^']*'?|\$\w+|\$\{[^}\n]*\}?`, SHELL),
  sql: language(`--[^\\n]*|${SLASHES}`, STRINGS, SQL, true),
  ruby: language(HASH, STRINGS, RUBY),
  data: language(AFTER_BLANK, STRINGS, DATA),
  markup: language('<!--(?:[^-]|-(?!->))*(?:-->|$)', STRINGS, ''),
};

/** Which language a name means; of any other one nothing is coloured. */
const NAMES = new Map(Object.entries({
  braces: 'js javascript jsx mjs cjs ts typescript tsx java kotlin kt scala c h cpp c++ cc hpp cs csharp go golang '
    + 'rust rs swift php dart json json5 jsonc css scss less proto groovy zig',
  python: 'python py python3 pyi starlark',
  shell: 'sh bash zsh shell console fish shell-session dockerfile docker make makefile',
  sql: 'sql postgres postgresql mysql sqlite',
  ruby: 'ruby rb elixir ex perl r julia',
  data: 'yaml yml toml ini conf cfg env properties hcl terraform tf nix',
  markup: 'html xml svg vue svelte htm',
}).flatMap(([kind, names]) => {
  const known = LANGUAGES[/** @type {keyof typeof LANGUAGES} */ (kind)];
  return names.split(' ').map((name) => [name, known]);
}));

const FILE_END = /(?:^|[./])([\w+]{1,12})$/;
/** The languages of files, by the ends of their names. */
export const languageOf = (/** @type {string} */ path) => FILE_END.exec(path)?.[1].toLowerCase() ?? '';

/**
 * Code in pieces, each with what it is; together they are the code.
 * @param {string} code
 * @param {string} name the language, as a fence or the end of a file's name says it
 * @returns {Coloured[]}
 */
export function coloured(code, name) {
  const known = NAMES.get(name.toLowerCase());
  if (!known || code.length > LONGEST) return [{ text: code, role: '' }];
  /** @type {Coloured[]} */
  const found = [];
  known.pieces.lastIndex = 0;
  for (let match = known.pieces.exec(code); match; match = known.pieces.exec(code)) {
    const role = roleOf(match, known, code);
    const last = found.at(-1);
    if (last?.role === role) last.text += match[0];
    else found.push({ text: match[0], role });
  }
  return found;
}

/**
 * @param {RegExpExecArray} match
 * @param {typeof LANGUAGES.braces} known
 * @param {string} code
 * @returns {Coloured['role']}
 */
function roleOf({ 0: text, index, groups = {} }, known, code) {
  if (groups.comment) return 'comment';
  if (groups.string) return 'string';
  if (groups.number) return 'number';
  if (!groups.word) return '';
  if (known.words.has(known.isAnyCase ? text.toLowerCase() : text)) return 'word';
  return code[index + text.length] === '(' ? 'name' : '';
}
