// Starts the page.
import { get } from './api.js';
import { startTelling } from './browser_notices.js';
import { html, render } from './dom.js';
import { App } from './shell.js';
import { about, applyFleet, changed, connection, takeEvent, takeFleet, takeReset } from './store.js';
import { openStream } from './stream.js';
import { applyTheme } from './theme.js';

const ABOUT_MS = 2000;

applyTheme();
startTelling();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
openStream({
  onFleet: takeFleet,
  onEvent: takeEvent,
  onReset: takeReset,
  onState: (state, heardAt) => {
    const isNews = connection.state !== state;
    if (isNews && state === 'open') applyFleet();
    Object.assign(connection, { state, heardAt });
    if (isNews) changed('connection');
  },
  onCount: (count) => {
    connection.hiddenCount = count;
    changed('connection');
  },
});

const asked = get('/about').then((/** @type {Sent.About} */ found) => {
  Object.assign(about, found, { isKnown: true });
  changed('about');
  changed('fleet');
}, () => {});
// What was kept is kept by root; but a server that does not answer does not keep the page away.
await Promise.race([asked, new Promise((done) => setTimeout(done, ABOUT_MS))]);
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
