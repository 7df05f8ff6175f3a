// Reads the lines of text/event-stream. Pure.

/** A parser: give it pieces of text, and it calls `tell({event, id, data})` for each message. */
export function eventStreamParser(tell) {
  let rest = []; // The pieces of a line whose end is still to come.
  let isAfterReturn = false;
  let event = '';
  let data = [];
  let id;
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
