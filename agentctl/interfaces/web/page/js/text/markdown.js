// Markdown as a tree of known elements, made of the tokens of a library: whoever wrote it, it holds texts, links that
// say where they lead, and nothing else. No text of it is left out: a block of which something would be is its source.
// Pure.
import { plainLines } from '../safe_text.js';
import { coloured } from './highlight.js';

/** @import { default as Library, StateBlock, Token } from '../../vendor/markdown-it.js' */

/**
 * An element that is about to be drawn, or a text.
 * @typedef {string | MarkElement} Mark
 * @typedef {{ tag: string, attributes: Record<string, string | number>, children: Mark[] }} MarkElement
 *
 * How a text is drawn. `level`: that of its first heading; `safe`: what is done to each text; `isWholeShown`: the
 * whole address of a link is shown, and not only its host.
 * @typedef {{ level: number, safe?: (text: string) => string, isWholeShown?: boolean }} How
 * @typedef {(source: string, how: How) => Mark[]} Reader
 */

/** Each element that comes out of a text. */
export const TAGS = new Set([
  'a', 'blockquote', 'br', 'code', 'div', 'em', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li', 'ol', 'p', 'pre', 's', 'span',
  'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
]);

/** Blocks that lie deeper are shown as their source: nobody writes them, and each costs a frame of the stack. */
const DEEPEST_BLOCK = 20;
/** So many elements may lie in each other within a paragraph. */
const DEEPEST_INLINE = 12;
/** About as much as is drawn at once. */
export const PART = 16_000;
const LONGEST_PART = 4 * PART;
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)/;
/** All but letters, digits and what is beyond ASCII: the marks of Markdown, and blanks. */
const MARKS = /[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\s]+/g;
const TASK = /^\[([ xX])\](?=\s)/;
const ALIGNED = /text-align:(center|right)/;

/** @param {string} text */
const wordsOf = (text) => text.replace(MARKS, '');

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {Mark[]} children
 * @returns {MarkElement}
 */
const element = (tag, attributes, children) => ({ tag, attributes, children });

/**
 * Put marks behind others: there may be more of them than a call takes arguments.
 * @param {Mark[]} marks
 * @param {Mark[]} more
 */
function append(marks, more) {
  for (const one of more) marks.push(one);
}

/**
 * The text of marks, as it is seen.
 * @param {Mark[]} marks
 * @returns {string}
 */
export const textIn = (marks) => marks.map((one) => (typeof one === 'string' ? one : textIn(one.children))).join('');

/**
 * Cut a long text where no block is cut: at blank lines outside of code. A part that goes on with code says so by
 * beginning with the line that has opened it.
 * @param {string} source
 * @returns {string[]}
 */
export function partsOf(source) {
  if (source.length <= PART) return [source];
  const parts = [];
  let part = '';
  let fence = '';
  for (const line of linesOf(source)) {
    if (part.length + line.length > LONGEST_PART || (part.length > PART && !fence && !line.trim())) {
      parts.push(part);
      part = fence && `${fence}\n`;
    }
    part += line;
    const found = FENCE.exec(line);
    if (!fence && found) fence = found[0].trimEnd();
    else if (found && isEnd(found, fence)) fence = '';
  }
  return [...parts, part];
}

/**
 * Whether a line ends the code that another one has opened.
 * @param {RegExpExecArray} found
 * @param {string} opened
 */
const isEnd = (found, opened) => !found[2].trim() && opened.trimStart().startsWith(found[1][0].repeat(3))
  && found[1].length >= (FENCE.exec(opened)?.[1].length ?? 0);

/**
 * The lines with their ends; one that is too long comes in pieces.
 * @param {string} source
 */
function* linesOf(source) {
  let at = 0;
  while (at < source.length) {
    const end = source.indexOf('\n', at) + 1 || source.length;
    const next = Math.min(end, at + PART);
    yield source.slice(at, next);
    at = next;
  }
}

/**
 * Make a reader by the library.
 * @param {typeof Library} MarkdownIt
 * @returns {Reader}
 */
export function readerBy(MarkdownIt) {
  const library = new MarkdownIt('default', { html: false, linkify: true });
  library.block.ruler.before('table', 'too_deep', tooDeep);
  // A definition would be seen nowhere, and a decoded character could not be told from one that was written.
  library.disable(['reference', 'text_join']);
  library.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  for (const schema of ['ftp:', 'mailto:', '//']) library.linkify.add(schema, null);
  library.normalizeLink = library.normalizeLinkText = (url) => url;
  library.validateLink = () => true; // Which ones become links is decided below.
  return (source, how) => {
    const safe = plainLines(source);
    return new Reading(safe.split('\n'), how).blocks(library.parse(safe, {}));
  };
}

/**
 * A rule of the library: what lies too deep is code.
 * @param {StateBlock} state
 * @param {number} begin
 * @param {number} end
 * @param {boolean} isTry
 */
function tooDeep(state, begin, end, isTry) {
  if (isTry || state.level < DEEPEST_BLOCK) return false;
  const token = state.push('code_block', 'code', 0);
  token.content = state.getLines(begin, end, state.blkIndent, false);
  token.map = [begin, end];
  state.line = end;
  return true;
}

/** @type {Record<string, string | undefined>} */
const SIMPLE = Object.assign(Object.create(null), {
  blockquote_open: 'blockquote', bullet_list_open: 'ul', ordered_list_open: 'ol', list_item_open: 'li',
  paragraph_open: 'p', table_open: 'table', thead_open: 'thead', tbody_open: 'tbody', tr_open: 'tr', th_open: 'th',
  td_open: 'td', em_open: 'em', strong_open: 'strong', s_open: 's',
});
/** What scrolls sideways can be reached by the keyboard. */
const SCROLLS = { tabindex: 0, role: 'group' };
/** Links whose text is their address. */
const BARE = new Set(['linkify', 'autolink']);

/**
 * A place for marks, and what comes behind them once it is closed.
 * @typedef {{ inner: Mark[], close?: () => Mark[] }} Frame
 */

/** One text on its way from tokens to elements. */
class Reading {
  /**
   * @param {string[]} lines
   * @param {How} how
   */
  constructor(lines, how) {
    this.lines = lines;
    this.how = how;
    this.safe = how.safe ?? plainLines;
    /** @type {number[]} the levels of the headings above */
    this.outline = [];
    /** What of the source stands in the block so far, as it is written there. */
    this.told = '';
  }

  /**
   * @param {Token[]} tokens
   * @returns {Mark[]}
   */
  blocks(tokens) {
    /** @type {Mark[]} */
    const found = [];
    let line = 0;
    for (let at = 0; at < tokens.length;) {
      let next = at + 1;
      while (next < tokens.length && tokens[next].level > 0) next += 1;
      if (tokens[at].nesting === 1) next += 1; // Its end.
      const [begin, end] = tokens[at].map ?? [line, line];
      this.told = '';
      const drawn = this.tree(tokens.slice(at, next), Infinity);
      const source = this.lines.slice(begin, end).join('\n');
      const isWhole = wordsOf(source) === wordsOf(this.told);
      append(found, this.between(line, begin));
      append(found, isWhole ? drawn : [this.asWritten(source)]);
      [line, at] = [end, next];
    }
    return [...found, ...this.between(line, this.lines.length)];
  }

  /**
   * Lines that belong to no block are blank; if one is not, it is shown.
   * @param {number} begin
   * @param {number} end
   */
  between(begin, end) {
    const source = this.lines.slice(begin, end).join('\n');
    return source.trim() ? [this.asWritten(source)] : [];
  }

  /** @param {string} source */
  asWritten(source) {
    return element('pre', { class: 'as-written' }, [this.safe(source)]);
  }

  /**
   * The elements of tokens, one in the other; one that would lie too deep is left out, and its text is not.
   * @param {Token[]} tokens
   * @param {number} deepest
   * @returns {Mark[]}
   */
  tree(tokens, deepest) {
    /** @type {Frame[]} */
    const open = [{ inner: [] }];
    for (const token of tokens) {
      const { inner } = open[open.length - 1];
      if (token.nesting === 1) open.push(this.opened(token, inner, open.length <= deepest));
      else if (token.nesting === 0) append(inner, this.leaf(token));
      else {
        const closed = open.pop();
        append(open[open.length - 1].inner, closed?.close?.() ?? []);
      }
    }
    return open[0].inner;
  }

  /**
   * @param {Token} token
   * @param {Mark[]} around
   * @param {boolean} isShown
   * @returns {Frame}
   */
  opened(token, around, isShown) {
    if (token.type === 'link_open') return this.link(token, around, isShown);
    const tag = token.type === 'heading_open' ? this.heading(token) : SIMPLE[token.type];
    if (!tag || !isShown || token.hidden) return { inner: around, close: () => [] };
    const made = element(tag, this.attributes(token), []);
    around.push(tag === 'table' ? boxed(made) : made);
    return { inner: made.children };
  }

  /**
   * @param {Token} token
   * @returns {Record<string, string | number>}
   */
  attributes(token) {
    if (token.type === 'heading_open') return { class: `level-${token.tag[1]}` };
    const aligned = ALIGNED.exec(attributeOf(token, 'style'));
    if (aligned) return { class: aligned[1] };
    if (token.type !== 'list_item_open' || !token.info) return {};
    this.told += token.info;
    return { value: Number(token.info) };
  }

  /**
   * A heading is one deeper than the one that it stands below: no level is left out, whatever the text says.
   * @param {Token} token
   */
  heading(token) {
    const level = Number(token.tag[1]);
    while ((this.outline.at(-1) ?? 0) >= level) this.outline.pop();
    this.outline.push(level);
    return `h${Math.min(6, this.how.level + this.outline.length - 1)}`;
  }

  /**
   * A link to a page of the web, or only its text; either says where it leads.
   * @param {Token} token
   * @param {Mark[]} around
   * @param {boolean} isShown
   * @returns {Frame}
   */
  link(token, around, isShown) {
    const address = attributeOf(token, 'href');
    const url = isShown ? webAddress(address) : null;
    const made = url && element('a', { href: url.href, target: '_blank', rel: 'noreferrer noopener' }, []);
    if (made) around.push(made);
    const isBare = BARE.has(token.markup);
    const where = isBare && (!url || isPlainly(url, address)) ? '' : address;
    return {
      inner: made ? made.children : around,
      close: () => this.aside(isBare ? '' : address, where, url, attributeOf(token, 'title')),
    };
  }

  /**
   * What stands behind the text of a link or an image: where it leads, and its title.
   * @param {string} told the address, if it stands there in the source
   * @param {string} where the address, if it is to be shown
   * @param {URL | null} url
   * @param {string} title
   * @returns {Mark[]}
   */
  aside(told, where, url, title) {
    this.told += told + title;
    const shown = [where && url && !this.how.isWholeShown ? url.host : where, title && `“${title}”`].filter(Boolean);
    return shown.length ? [element('span', { class: 'leads-to' }, [this.safe(` (${shown.join(' ')})`)])] : [];
  }

  /**
   * @param {Token} token
   * @returns {Mark[]}
   */
  leaf(token) {
    const { content } = token;
    if (token.type === 'inline') return this.inline(token);
    if (token.type === 'fence' || token.type === 'code_block') return [this.code(content, token.info.trim())];
    if (token.type === 'image') return this.image(token);
    if (token.type === 'hr') return [element('hr', {}, [])];
    if (token.type === 'hardbreak') return [element('br', {}, [])];
    if (token.type === 'softbreak') return ['\n'];
    this.told += token.type === 'text_special' ? token.markup : content;
    if (token.type === 'code_inline') return [element('code', {}, [this.safe(content)])];
    return content ? [this.safe(content)] : [];
  }

  /**
   * The text of a block; the box of a task is a sign, and nothing that could be clicked.
   * @param {Token} token
   * @returns {Mark[]}
   */
  inline(token) {
    const children = token.children ?? [];
    const task = children[0]?.type === 'text' ? TASK.exec(children[0].content) : null;
    if (!task) return this.tree(children, DEEPEST_INLINE);
    const isDone = task[1] !== ' ';
    this.told += task[1];
    const label = isDone ? 'done' : 'to do';
    const sign = element('span', { class: 'task-sign', role: 'img', 'aria-label': label }, [isDone ? '☑' : '☐']);
    const rest = { ...children[0], content: children[0].content.slice(task[0].length) };
    return [sign, ...this.tree([rest, ...children.slice(1)], DEEPEST_INLINE)];
  }

  /**
   * @param {string} content
   * @param {string} about what its fence says: mostly the language
   */
  code(content, about) {
    this.told += about + content;
    const [language] = about.split(/\s/, 1);
    const pieces = coloured(this.safe(content.replace(/\n$/, '')), language);
    const drawn = pieces.map(({ text, role }) => (role ? element('span', { class: `code-${role}` }, [text]) : text));
    const name = about && [element('span', { class: 'language' }, [this.safe(about)])];
    const box = element('pre', { ...SCROLLS, 'aria-label': 'Code' }, [element('code', {}, drawn)]);
    return element('div', { class: 'code-block' }, [...(name || []), box]);
  }

  /**
   * A picture is not loaded: it is what it says of itself.
   * @param {Token} token
   * @returns {Mark[]}
   */
  image(token) {
    const address = attributeOf(token, 'src');
    this.told += token.content;
    const title = attributeOf(token, 'title');
    const named = element('span', { class: 'picture-text' }, [this.safe(`picture: ${token.content}`)]);
    return [named, ...this.aside(address, address, webAddress(address), title)];
  }
}

/** @param {MarkElement} table */
const boxed = (table) => element('div', { class: 'table-box', ...SCROLLS, 'aria-label': 'Table' }, [table]);

/**
 * @param {Token} token
 * @param {string} name
 */
const attributeOf = (token, name) => token.attrs?.find(([one]) => one === name)?.[1] ?? '';

/**
 * The address of a page of the web; of nothing else.
 * @param {string} text
 */
function webAddress(text) {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/**
 * Whether an address as it is written leads where it seems to lead.
 * @param {URL} url
 * @param {string} address
 */
const isPlainly = (url, address) => {
  const begin = `${url.protocol}//${url.host}`;
  return address.startsWith(begin) && /^([/?#]|$)/.test(address.slice(begin.length));
};
