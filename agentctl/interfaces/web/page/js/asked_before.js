// What became of a question that an address names and that is not open any more: a notice's link may be old.
import { get, workerPath } from './api.js';
import { html } from './dom.js';
import { Loading, useFetched } from './pieces.js';
import { workerHref } from './router.js';
import { plain } from './safe_text.js';
import { isLive } from './store.js';
import { answerWords } from './worker_facts.js';

/** @param {{ task: string, instance: string, id: string, worker: Sent.Worker }} props */
export function AskedBefore({ task, instance, id, worker }) {
  /** @returns {Promise<Sent.Shown>} */
  const load = () => get(workerPath(task, instance));
  const { data, isLoading } = useFetched(load, [task, instance, id], 0, [worker.status]);
  if (!data) return isLoading ? html`<${Loading} what="Looking for the question" />` : null;
  const one = data.questions?.find((question) => question.id === id);
  if (!one) return html`<p class="asked-before" role="status">${plain(instance)} has no question <strong>${plain(id)}</strong>.</p>`;
  const given = one.answer && typeof one.answer === 'object' ? one.answer : one;
  const isAnswered = given.answer != null;
  if (!isAnswered && !given.expired && isLive(worker)) return null; // The fleet is about to tell of it.
  return html`<p class="asked-before" role="status"><strong>${plain(id)}</strong> ${isAnswered ? 'was answered:' : 'is over:'} ${answerWords(one)} <a class="button small" href=${workerHref(task, instance, 'questions')}>See the question</a></p>`;
}
