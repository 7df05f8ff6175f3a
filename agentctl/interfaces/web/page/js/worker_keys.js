// The keys that act on the worker under the cursor; those that may be about several act on the marked ones instead.
import {
  cancelWorker, copyName, lackOf, markSeen, meantByPauseKey, pauseWorker, retryWorker, sendToWorker, unpauseWorker,
} from './actions.js';
import { useKeys } from './keys.js';
import { areMarked } from './marking.js';
import { go, route, workerHref } from './router.js';
import { actOnMarked, copyMarked, isPossible } from './several.js';
import { about, fleet, partsOf, whyNobody } from './store.js';

/** @import { Several } from './several.js' */

/**
 * @param {() => string | null} keyNow which worker is under the cursor
 */
export function useWorkerKeys(keyNow) {
  /**
   * @param {(task: string, instance: string) => unknown} work
   * @param {(worker: Sent.Worker) => Several} [nameOf]
   */
  const act = (work, nameOf) => () => {
    const key = keyNow();
    const worker = key && fleet.workers.get(key);
    if (!worker) return whyNobody();
    if (nameOf && about.readOnly) return 'this page may only look';
    const [task, instance] = partsOf(key);
    const lack = nameOf && lackOf(nameOf(worker), worker);
    if (lack) return `${instance} is ${lack}`;
    work(task, instance);
    return true;
  };
  /**
   * @param {Several} name
   * @param {(task: string, instance: string) => unknown} work
   */
  const actOnAny = (name, work) => {
    const one = act(work, () => name);
    return () => (areMarked() ? actOnMarked(name) || true : one());
  };
  /** @type {(tab: string) => (task: string, instance: string) => void} */
  const showTab = (tab) => (task, instance) => {
    go(workerHref(task, instance, tab), { isReplacing: route.place.view === 'worker' });
  };
  const pause = act(pauseWorker, () => 'pause');
  const unpause = act(unpauseWorker, () => 'unpause');
  useKeys({
    cancel: actOnAny('cancel', cancelWorker),
    pause: () => {
      if (areMarked()) return actOnMarked(!isPossible('pause') && isPossible('unpause') ? 'unpause' : 'pause') || true;
      return meantByPauseKey(keyNow() ?? '') === 'unpause' ? unpause() : pause();
    },
    send: actOnAny('send', sendToWorker),
    retry: actOnAny('retry', retryWorker),
    seen: actOnAny('seen', (task, instance) => markSeen(task, instance)),
    why: act(showTab('why')),
    diff: act(showTab('diff')),
    copy: () => (areMarked() ? copyMarked() : act(copyName)()),
  });
}
