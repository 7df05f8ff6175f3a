// How a typed command is executed: directly where a shell would only split it into words. Pure.
const OF_SHELL = /[|&;<>()$`*?[\]{}#~!\\\n\r]/;
const WORD = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;

/**
 * @returns {string[]} argv; throws for a quote that is not closed
 * @param {string} line
 */
export function argvOf(line) {
  const text = line.trim();
  const bare = text.replace(/'[^']*'|"[^"]*"/g, '');
  if (/['"]/.test(bare)) throw new Error('a quote is not closed');
  if (OF_SHELL.test(text) || /^\w+=/.test(text)) return ['/bin/sh', '-c', text];
  return (text.match(WORD) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, (_, one, two) => one ?? two));
}
