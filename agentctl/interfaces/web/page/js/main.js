// Starts the page.
import { get } from './api.js';
import { startTelling } from './browser_notices.js';
import { html, render } from './dom.js';
import { keepEarly } from './kept.js';
import { App } from './shell.js';
import { about, changed, takeCount, takeEvent, takeFleet, takeReset, takeState } from './store.js';
import { openStream } from './stream.js';
import { applyTheme } from './theme.js';

const ABOUT_MS = 2000;
/** The first pause before it is asked again of which root this is, and the longest one. */
const AGAIN_MS = 1000;
const RARELY_MS = 30_000;

let isAsking = false;
let pauseMs = AGAIN_MS;
let timer = 0;
/** Ask of which root this is, and what one may do here: until that is known, and at once where the server is heard. */
async function askAbout() {
  if (about.isKnown || isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  try {
    Object.assign(about, await get('/about'), { isKnown: true });
    keepEarly();
    changed('about');
    changed('fleet');
  } catch {
    timer = setTimeout(askAbout, pauseMs);
    pauseMs = Math.min(2 * pauseMs, RARELY_MS);
  }
  isAsking = false;
}

applyTheme();
startTelling();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
openStream({
  onFleet: takeFleet,
  onEvent: takeEvent,
  onReset: takeReset,
  onState: (state, heardAt) => {
    if (takeState(state, heardAt)) askAbout();
  },
  onCount: takeCount,
});

// What was kept is kept by root; but a server that does not answer does not keep the page away.
await Promise.race([askAbout(), new Promise((done) => setTimeout(done, ABOUT_MS))]);
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
