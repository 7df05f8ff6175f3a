// Where words stand in a text, and what a search says it has found. Pure.
import { counted } from '../words.js';

/** More places than these are not marked: nobody looks at them all. */
export const MOST_PLACES = 1000;
const SPECIAL = /[.*+?^${}()|[\]\\/-]/g;

/**
 * Where any of several texts stands, small letters and capitals alike; any white space within one is as good as
 * another, since an excerpt has it in one line. Of two that begin at one place the longer one counts.
 * @param {string} text
 * @param {string[]} wanted
 * @returns {Array<[begin: number, end: number]>}
 */
export function placesIn(text, wanted) {
  const patterns = wanted.toSorted((a, b) => b.length - a.length).map(patternOf).filter(Boolean);
  /** @type {Array<[number, number]>} */
  const places = [];
  if (!patterns.length) return places;
  for (const { index, 0: found } of text.matchAll(new RegExp(patterns.join('|'), 'gi'))) {
    places.push([index, index + found.length]);
    if (places.length >= MOST_PLACES) break;
  }
  return places;
}

/** @param {string} words */
const patternOf = (words) => words.split(/\s+/).filter(Boolean).map((part) => part.replace(SPECIAL, '\\$&')).join('\\s+');

/**
 * What hits are: `37 lines in 4 workers`. The title of a task is a line of it.
 * @param {Pick<Sent.Hit, 'taskId' | 'agentInstance' | 'more'>[]} hits
 */
export function foundWords(hits) {
  const lines = hits.reduce((total, hit) => total + (hit.more || 1), 0);
  const [workers, tasks] = [new Set(), new Set()];
  for (const { taskId, agentInstance } of hits) {
    if (agentInstance == null) tasks.add(taskId);
    else workers.add(`${taskId}/${agentInstance}`);
  }
  const where = [];
  if (workers.size) where.push(counted(workers.size, 'worker'));
  if (tasks.size) where.push(counted(tasks.size, 'task'));
  return `${counted(lines, 'line')} in ${where.join(' and ')}`;
}
