// Reads the lines of text/event-stream. Pure.

/**
 * @typedef {{ event: string, id: string | undefined, data: string }} Message
 */

/**
 * A parser: give it pieces of text, and it calls `tell` for each message.
 * @param {(message: Message) => void} tell
 * @returns {(text: string) => void}
 */
export function eventStreamParser(tell) {
  /** @type {string[]} */
  let rest = []; // The pieces of a line whose end is still to come.
  let isAfterReturn = false;
  let event = '';
  /** @type {string[]} */
  let data = [];
  /** @type {string | undefined} */
  let id;
  /** @param {string} line */
  const take = (line) => {
    if (line === '') {
      if (data.length || event) tell({ event: event || 'message', id, data: data.join('\n') });
      event = '';
      data = [];
      id = undefined;
      return;
    }
    if (line.startsWith(':')) return;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id') id = value;
  };
  return (text) => {
    const lines = (isAfterReturn && text.startsWith('\n') ? text.slice(1) : text).split(/\r\n|\n|\r/);
    isAfterReturn = text.endsWith('\r');
    lines.forEach((line, at) => {
      rest.push(line);
      if (at === lines.length - 1) return;
      const whole = rest.join('');
      rest = [];
      take(whole);
    });
  };
}
