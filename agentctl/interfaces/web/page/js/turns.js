// Of the hidden tabs of a browser one hears the server: a browser opens few connections to one server. The tabs agree
// by locks of the browser, which are gone with the tab that holds them; where there are none, no hidden tab hears it.
const HEARING = 'agentctl.hears';
const LOOKED_AT = 'agentctl.looked-at';

export const turn = { isMine: false };

/** @type {AbortController | null} */
let asked = null;
/** @type {() => void} */
let giveBack = () => {};

/**
 * Wait for the turn to hear the server while hidden.
 * @param {() => void} onTurn
 */
export function takeTurn(onTurn) {
  if (!navigator.locks || asked) return;
  asked = new AbortController();
  const { signal } = asked;
  navigator.locks.request(HEARING, { signal }, () => {
    if (signal.aborted) return undefined;
    turn.isMine = true;
    onTurn();
    return new Promise((done) => {
      giveBack = () => done(undefined);
    });
  }).catch(() => {}); // It was seen before its turn came.
}

/** Let another tab have it: this one is seen. */
export function leaveTurn() {
  asked?.abort();
  asked = null;
  turn.isMine = false;
  giveBack();
}

/** Whether a person can see the page in another window. */
export const isSeenElsewhere = async () => {
  const { held = [] } = await navigator.locks.query();
  return held.some((one) => one.name === LOOKED_AT);
};

/** Say to the other tabs, while this one is seen, that it is. */
export function showWhetherSeen() {
  if (!navigator.locks) return;
  /** @type {() => void} */
  let end = () => {};
  const tell = () => {
    end();
    if (document.hidden) return;
    navigator.locks.request(LOOKED_AT, { mode: 'shared' }, () => new Promise((done) => {
      end = () => done(undefined);
      if (document.hidden) end();
    }));
  };
  document.addEventListener('visibilitychange', tell);
  tell();
}
