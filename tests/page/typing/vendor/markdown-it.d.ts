// What the page uses of markdown-it, which it carries minified.

export interface Token {
  type: string;
  tag: string;
  attrs: Array<[string, string]> | null;
  map: [number, number] | null;
  nesting: 1 | 0 | -1;
  level: number;
  children: Token[] | null;
  content: string;
  markup: string;
  info: string;
  hidden: boolean;
}

export interface StateBlock {
  level: number;
  line: number;
  blkIndent: number;
  getLines(begin: number, end: number, indent: number, keepsLast: boolean): string;
  push(type: string, tag: string, nesting: 1 | 0 | -1): Token;
}

type BlockRule = (state: StateBlock, begin: number, end: number, isTry: boolean) => boolean;

export default class MarkdownIt {
  constructor(preset: string, options: { html: boolean; linkify: boolean });
  readonly block: { ruler: { before(name: string, own: string, rule: BlockRule): void } };
  readonly linkify: {
    set(options: Record<string, boolean>): MarkdownIt['linkify'];
    add(schema: string, how: null): MarkdownIt['linkify'];
  };
  normalizeLink: (url: string) => string;
  normalizeLinkText: (url: string) => string;
  validateLink: (url: string) => boolean;
  disable(rules: string[]): void;
  parse(source: string, environment: object): Token[];
}
