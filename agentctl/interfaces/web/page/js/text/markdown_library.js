// The library that reads Markdown: asked for as soon as the page runs, but the first frame does not wait for it. Later
// it could come from another program, which has the port by then.
import { changed } from '../store.js';
import { readerBy } from './markdown.js';

/** @import { Reader } from './markdown.js' */

/** `read`: nothing until it is there; what is to be read is its source till then. */
export const markdown = { read: /** @type {Reader | null} */ (null) };

import('../../vendor/markdown-it.js').then(({ default: MarkdownIt }) => {
  markdown.read = readerBy(MarkdownIt);
  changed('markdown');
}, () => {});
