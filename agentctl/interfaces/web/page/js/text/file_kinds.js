// How a file of a result is looked at: by what it begins with, and else by its name. Nothing here trusts a media type.

/** What a browser draws, and nothing in it is run: by the first bytes. SVG is a text here. */
const IMAGES = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]], ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
];
const DIFF = /\.(diff|patch)$/i;
const MARKDOWN = /\.(md|markdown)$/i;

/**
 * @param {Uint8Array} data
 * @returns {string} the media type; empty of anything else
 */
export function imageType(data) {
  const found = IMAGES.find(([, begin]) => /** @type {number[]} */ (begin).every((byte, at) => data[at] === byte));
  return found ? String(found[0]) : '';
}

/**
 * The text of the beginning of a file, without a character that is cut at its end; null of anything else.
 * @param {Uint8Array} data
 */
export function textOf(data) {
  if (data.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(data, { stream: true });
  } catch {
    return null;
  }
}

/**
 * @param {string} path
 * @returns {'diff' | 'markdown' | 'text'}
 */
export function viewerOf(path) {
  if (DIFF.test(path)) return 'diff';
  return MARKDOWN.test(path) ? 'markdown' : 'text';
}
