// What an item of an activity is, in one line.
import { oneLine } from './safe_text.js';
import { shellLine } from './text/shell_line.js';
import { table } from './words.js';

/** The sign of an item's status: [glyph, role]. */
export const ITEM_SIGNS = table({
  running: ['●', 'running'], completed: ['✓', 'completed'], answered: ['✓', 'completed'], failed: ['✗', 'failed'],
  denied: ['✗', 'failed'], cancelled: ['-', 'cancelled'], interrupted: ['-', 'cancelled'],
});

const TELLING = ['command', 'cmd', 'file_path', 'path', 'pattern', 'query', 'url', 'description', 'prompt', 'message'];

/** @param {unknown} detail */
export function telling(detail) {
  if (!detail || typeof detail !== 'object') return '';
  for (const key of TELLING) {
    const value = /** @type {Record<string, unknown>} */ (detail)[key];
    if (typeof value === 'string' && value) return value;
    if (Array.isArray(value) && value.length && value.every((one) => typeof one === 'string')) return shellLine(value);
  }
  return Object.keys(detail).length ? JSON.stringify(detail) : '';
}

/**
 * In one line what an item is: of what an agent says, its words as the server has made them.
 * @param {Pick<Sent.Item, 'type' | 'name' | 'detail' | 'text' | 'line' | 'agentType' | 'percent'>} item
 */
export function itemLabel(item) {
  if (item.type === 'tool') {
    return [oneLine(item.name ?? 'tool', 60), oneLine(telling(item.detail), 160)].filter(Boolean).join(' ');
  }
  const said = item.line ?? item.text;
  if (item.type === 'agent') return oneLine(item.name || said || item.agentType || 'agent', 160);
  const words = [item.percent != null ? `${item.percent}%` : '', item.name ? `${item.name}:` : '', said || telling(item.detail)].filter(Boolean).join(' ');
  return oneLine(words || item.type, 200);
}
