// What is there first: takes the code out of the address, lets the page in, and shows it or the login.
import { askAhead } from './js/asked_ahead.js';
import { comeBack, enter, enterGreeted, isCode, listen, mayComeBack } from './js/session.js';
import { IS_RUNNING, PRINTS_LINK } from './js/text/at_terminal.js';

/**
 * What index.html has under a name.
 * @param {string} id
 */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const form = part('form');
const field = /** @type {HTMLInputElement} */ (part('token'));
const problem = part('problem');
const login = part('login');
const app = part('app');
const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));

/**
 * What follows the `#` of a link, or a text itself.
 * @param {string} text
 */
const secretOf = (text) => text.trim().split('#').pop();

/** Take out of the address what opens the page: it would be in each copy of it. */
function taken() {
  const found = secretOf(location.hash);
  if (location.href.includes('#')) history.replaceState(history.state, '', location.pathname + location.search);
  return found;
}

let isStarted = false;
let isWanted = null;
/**
 * Show the page or the login, each with its own styles.
 * @param {boolean} isIn
 */
async function show(isIn) {
  isWanted = isIn;
  const links = [...document.querySelectorAll('link')].filter((link) => link.dataset.for);
  /** @param {HTMLLinkElement} link */
  const isShown = (link) => (link.dataset.for === 'page') === isIn;
  await Promise.all(links.filter(isShown).map((link) => /** @type {Promise<void>} */ (new Promise((done) => {
    if (link.sheet || !link.disabled) done();
    link.addEventListener('load', () => done());
    link.addEventListener('error', () => done());
    link.disabled = false;
  }))));
  if (isWanted !== isIn) return;
  for (const link of links) link.disabled = !isShown(link);
  const isNew = login.hidden !== isIn;
  app.hidden = !isIn;
  login.hidden = isIn;
  if (!isIn) {
    if (isNew) field.focus();
    return;
  }
  problem.textContent = '';
  field.value = '';
  field.removeAttribute('aria-invalid');
  if (isStarted) return;
  isStarted = true;
  // It fails if the server was restarted with another version since this page was loaded.
  import('./page.js').catch(() => show(false).then(() => tell(OTHER_VERSION)));
}

/** @param {string} text */
function tell(text) {
  problem.textContent = text;
  field.setAttribute('aria-invalid', 'true');
  field.focus();
}

const WRONG = 'That is not the link of this server, or it was used before, or is too old: each works once, and for '
  + `some minutes. ${PRINTS_LINK}`;
const OTHER_VERSION = 'This page is of another version than the server. Load it anew.';
const UNHEARD = `The server cannot be reached. ${IS_RUNNING}`;

/**
 * Enter by a code or a token; if that opens nothing, by what the browser knows.
 * @param {string} text
 */
async function open(text) {
  problem.textContent = '';
  button.disabled = true;
  let said = WRONG;
  try {
    const refused = await enter(text);
    if (refused === null || (mayComeBack() && await comeBack())) said = '';
    else if (refused.status && refused.status !== 401) said = [refused.refused.detail ?? `The server answered ${refused.status}.`, refused.refused.hint].filter(Boolean).join(' ');
  } catch {
    said = UNHEARD;
  }
  button.disabled = false;
  if (!said) return;
  await show(false);
  tell(said);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = secretOf(field.value);
  if (text) open(text);
  else tell('Nothing was pasted yet.');
});

async function openByLink() {
  const text = taken();
  if (!text) return false;
  if (isCode(text)) {
    // Who is in already need not wait for it; but it opens nothing any more once it stands in what a browser remembers.
    if (enterGreeted()) enter(text).catch(() => {});
    else await open(text);
  } else if (app.hidden) {
    await show(false);
    tell(WRONG);
  }
  return true;
}

async function begin() {
  if (await openByLink()) return;
  let isIn = false;
  try {
    isIn = mayComeBack() && await comeBack();
  } catch { /* The login says so, once somebody tries. */ }
  if (!isIn) await show(false);
}

addEventListener('hashchange', openByLink);
// Keys of the page are not for whoever logs in.
addEventListener('keydown', (event) => {
  if (!login.hidden && !login.contains(/** @type {Node | null} */ (event.target))) event.stopImmediatePropagation();
}, true);
listen({
  onIn: () => {
    askAhead();
    show(true);
  },
  onOut: () => show(false),
});
begin();
