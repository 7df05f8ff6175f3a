// The parts of a row of an output: how each looks, and where what is searched for is in them. Pure.

/** @typedef {{ text: string, style: string, isHit: boolean }} Part */

const HEX = /^#[0-9a-f]{6}$/;
const LEVELS = [0, 95, 135, 175, 215, 255];
/** @param {number[]} parts */
const hex = (parts) => `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;

/**
 * A colour beyond the first 16, which are the theme's: 16 to 255 as terminals have them.
 * @param {number} number
 */
export function colour(number) {
  if (number >= 232) return hex(Array(3).fill(8 + 10 * (number - 232)));
  const place = number - 16;
  return hex([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((level) => LEVELS[level]));
}

/**
 * The words of a style without `inverse`: text in the colour of its ground, on the colour of its text.
 * @param {string[]} words
 */
function turned(words) {
  if (!words.includes('inverse')) return words;
  const text = words.find((word) => /^f[0-9#]/.test(word));
  const behind = words.find((word) => /^b[0-9#]/.test(word));
  if (!text) return words.filter((word) => word !== behind);
  const swapped = [`b${text.slice(1)}`, ...(behind ? [`f${behind.slice(1)}`] : [])];
  return [...words.filter((word) => word !== text && word !== behind && word !== 'inverse'), ...swapped];
}

/**
 * What the words of a style mean: classes, and colours of its own (`f` of the text, `b` behind it).
 * @param {string} style
 * @returns {{ classes: string, f?: string, b?: string }}
 */
export function looksOf(style) {
  /** @type {{ classes: string, f?: string, b?: string }} */
  const looks = { classes: '' };
  const classes = [];
  for (const word of turned(style.split(' '))) {
    const which = word[0] === 'f' ? 'f' : word[0] === 'b' && word !== 'bold' ? 'b' : null;
    const value = word.slice(1);
    if (which && HEX.test(value)) looks[which] = value;
    else if (which && /^[0-9]{1,3}$/.test(value) && Number(value) >= 16) looks[which] = colour(Number(value));
    else if (word) classes.push(`t-${word}`);
    if (which && looks[which]) classes.push(`t-${which}`);
  }
  looks.classes = classes.join(' ');
  return looks;
}

/** @param {Sent.OutputRow} row */
export const textOf = (row) => row.spans.map(([text]) => text).join('');

/**
 * The places of a text, small letters and capitals alike; only where that changes no length are they known.
 * @param {string} text
 * @param {string} words
 * @returns {number[]}
 */
function placesOf(text, words) {
  const lowered = text.toLowerCase();
  const wanted = words.toLowerCase();
  const places = [];
  if (!wanted || lowered.length !== text.length) return [];
  for (let at = lowered.indexOf(wanted); at >= 0; at = lowered.indexOf(wanted, at + wanted.length)) places.push(at);
  return places;
}

/**
 * The parts of a row, cut where something that is searched for begins or ends.
 * @param {Sent.OutputRow} row
 * @param {string} words
 * @returns {Part[]}
 */
export function partsOf(row, words) {
  const places = words ? placesOf(textOf(row), words) : [];
  /** @type {Part[]} */
  const parts = [];
  let begin = 0;
  let next = 0;
  for (const [text, style = ''] of row.spans) {
    let at = 0;
    while (at < text.length) {
      const place = begin + at;
      while (places[next] + words.length <= place) next += 1;
      const hit = places[next] ?? Infinity;
      const isHit = hit <= place;
      const until = Math.min(text.length, (isHit ? hit + words.length : hit) - begin);
      parts.push({ text: text.slice(at, until), style, isHit });
      at = until;
    }
    begin += text.length;
  }
  return parts;
}
