// A unified diff as files, hunks and lines. Pure.

/**
 * @typedef {{ side: 'new'|'old', kind: 'context'|'add'|'remove', old: number|null, new: number|null, text: string,
 *   isOpen?: boolean }} Line
 * @typedef {{heading: string, lines: Line[]}} Hunk
 * @typedef {{path: string, oldPath: string, notes: string[], hunks: Hunk[], added: number, removed: number}} DiffFile
 */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;

/**
 * The path of a line `--- a/x`: git quotes a name that is not plain, with octal bytes.
 * @param {string} text
 */
function pathOf(text) {
  let [path] = text.split('\t', 1);
  if (path.startsWith('"') && path.endsWith('"')) path = unquoted(path.slice(1, -1));
  return path === '/dev/null' ? '' : path.replace(/^[ab]\//, '');
}

const ESCAPES = new Map(Object.entries({ n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11 }));
/** @param {string} text */
function unquoted(text) {
  const bytes = [];
  const encoder = new TextEncoder();
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== '\\') {
      const one = String.fromCodePoint(text.codePointAt(at) ?? 0);
      bytes.push(...encoder.encode(one));
      at += one.length - 1;
      continue;
    }
    const octal = /^[0-7]{3}/.exec(text.slice(at + 1, at + 4));
    if (octal) {
      bytes.push(parseInt(octal[0], 8));
      at += 3;
    } else {
      bytes.push(ESCAPES.get(text[at + 1]) ?? text.charCodeAt(at + 1));
      at += 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/**
 * @returns {DiffFile[]}
 * @param {string} text
 */
export function parseDiff(text) {
  /** @type {DiffFile[]} */
  const files = [];
  /** @type {DiffFile | null} */
  let file = null;
  /** @type {Hunk | null} */
  let hunk = null;
  let oldLine = 0;
  let newLine = 0;
  let oldLeft = 0;
  let newLeft = 0;
  /** @param {string} path */
  const begin = (path) => {
    /** @type {DiffFile} */
    const made = { path, oldPath: path, notes: [], hunks: [], added: 0, removed: 0 };
    files.push(made);
    hunk = null;
    return made;
  };
  const lines = text.split('\n');
  if (lines[lines.length - 1] === '') lines.pop();
  for (const line of lines) {
    if (file && hunk && (oldLeft > 0 || newLeft > 0)) {
      const sign = line[0] ?? ' ';
      const code = line.slice(1);
      if (sign === '+') {
        hunk.lines.push({ side: 'new', kind: 'add', old: null, new: newLine, text: code });
        newLine += 1;
        newLeft -= 1;
        file.added += 1;
        continue;
      }
      if (sign === '-') {
        hunk.lines.push({ side: 'old', kind: 'remove', old: oldLine, new: null, text: code });
        oldLine += 1;
        oldLeft -= 1;
        file.removed += 1;
        continue;
      }
      if (sign === ' ' || line === '') {
        hunk.lines.push({ side: 'new', kind: 'context', old: oldLine, new: newLine, text: code });
        oldLine += 1;
        newLine += 1;
        oldLeft -= 1;
        newLeft -= 1;
        continue;
      }
    }
    if (line.startsWith('\\') && hunk?.lines.length) {
      hunk.lines[hunk.lines.length - 1].isOpen = true;
      continue;
    }
    const found = HUNK.exec(line);
    if (found && file) {
      oldLine = Number(found[1]);
      newLine = Number(found[3]);
      oldLeft = found[2] === undefined ? 1 : Number(found[2]);
      newLeft = found[4] === undefined ? 1 : Number(found[4]);
      hunk = { heading: found[5].trim(), lines: [] };
      file.hunks.push(hunk);
      continue;
    }
    if (line.startsWith('diff --git ')) {
      const both = line.slice('diff --git '.length);
      const half = both.startsWith('"') ? /^"(?:[^"\\]|\\.)*"/.exec(both)?.[0] : both.slice(0, (both.length - 1) / 2);
      file = begin(pathOf(half ?? both));
    } else if (line.startsWith('--- ')) {
      if (!file || file.hunks.length) file = begin('');
      file.oldPath = pathOf(line.slice(4)) || file.oldPath;
    } else if (line.startsWith('+++ ') && file) file.path = pathOf(line.slice(4)) || file.oldPath || file.path;
    else if (file && /^(new file|deleted file|old mode|new mode|rename |copy |similarity|Binary files|GIT binary patch)/.test(line)) {
      file.notes.push(line);
      if (line.startsWith('rename to ')) file.path = pathOf(`b/${line.slice('rename to '.length)}`);
    }
  }
  return files;
}
