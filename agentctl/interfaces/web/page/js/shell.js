// The frame of the page: head, bar, what is said, and the view that the address names.
import { canTell, isForbidden, switchTelling, tells } from './browser_notices.js';
import { focused, html, main, useEffect, useLayoutEffect, useRef, useState } from './dom.js';
import { logout } from './api.js';
import { DialogHost, openDialog, openHelp } from './dialogs.js';
import { Dispatch } from './dispatch_form.js';
import { useKeys } from './keys.js';
import { Outstanding } from './outstanding.js';
import { areMarked, MarkedCount, unmarkAll } from './marking.js';
import { NeedsView } from './needs_view.js';
import { Foreign, Links } from './pieces.js';
import { oneLine } from './safe_text.js';
import { isList } from './places.js';
import { back, go, route, setQuery } from './router.js';
import { toBegin } from './scrolling.js';
import { SearchView } from './search_view.js';
import { MarksBar } from './several.js';
import { about, countOfNeeds, fleet, said, unsay, useConnection, useTopics } from './store.js';
import { TaskView } from './task_view.js';
import { nextTheme, themeNow, themeWords } from './theme.js';
import { TreeView } from './tree_view.js';
import { duration, table } from './words.js';
import { WorkerView } from './worker_view.js';

/** @import { Place } from './places.js' */

/** @param {string | undefined} task */
const openDispatch = (task) => openDialog(Dispatch, { task });

function useNeedsCount() {
  useTopics('fleet', 'connection');
  return countOfNeeds();
}

const TITLES = table({ needs: 'Workers by need', tree: 'Tree', search: 'Search' });

/**
 * The line of a list that something is in.
 * @param {Element | null} element
 * @returns {HTMLElement | null | undefined}
 */
const lineOf = (element) => element?.closest('[data-key]');

/** @param {Place} place */
function titleOf(place) {
  if (place.view === 'worker') return oneLine(place.instance);
  if (place.view === 'task') return oneLine(fleet.tasks.get(place.task)?.title || place.task);
  return TITLES[place.view] ?? 'Not found';
}

export function App() {
  useTopics('route', 'about');
  const { place } = route;
  const frame = useRef(null);
  const isFirst = useRef(true);
  const placeKey = `${place.view} ${place.task ?? ''} ${place.instance ?? ''}`;
  useKeys({
    help: openHelp,
    dispatch: () => (about.readOnly ? 'this page may only look' : openDispatch(place.task)),
    filter: () => {
      const field = document.getElementById('filter') ?? document.getElementById('search-text');
      if (field instanceof HTMLInputElement) field.select();
      else go('/search');
    },
    tree: () => go(place.view === 'tree' ? '/' : '/tree'),
    back: () => {
      if (areMarked()) unmarkAll();
      else if (isList(route.place) && route.filter) setQuery('filter', '');
      else if (focused()?.closest('.question') && !focused()?.matches('[data-key]')) lineOf(focused())?.focus();
      else back();
    },
  });
  useLayoutEffect(() => {
    if (!route.isBack) toBegin();
    // After a change of view the focus is at its beginning, as after a load; a list takes it to its line.
    if (!isFirst.current && focused() === document.body) frame.current.focus({ preventScroll: true });
    isFirst.current = false;
  }, [placeKey]);
  // What was drawn before the root was known is drawn anew, with what is kept of it.
  return html`<${Head} />
    <main id="main" ref=${frame} tabindex="-1" aria-busy=${String(!about.isKnown)} class=${`view-${place.view}`}><${Boundary} key=${`${about.root} ${placeKey}`} place=${place} /></main>
    <${MarksBar} />
    <${Bar} />
    <${Said} />
    <${Title} />
    <${DialogHost} key=${about.root} />`;
}

/** @param {{ place: Place }} props */
function Boundary({ place }) {
  if (place.view === 'needs') return html`<h1 class="unseen">Workers by need</h1><${NeedsView} />`;
  if (place.view === 'tree') return html`<h1 class="unseen">Tree</h1><${TreeView} />`;
  if (place.view === 'search') return html`<${SearchView} place=${place} />`;
  if (place.view === 'task') return html`<${TaskView} place=${place} />`;
  if (place.view === 'worker') return html`<${WorkerView} place=${place} />`;
  return html`<div class="empty"><h1>There is no such page</h1><p><a href="/">All workers</a></p></div>`;
}

/** The title of the window counts who needs a person; that of the view is the name of what is in it. */
function Title() {
  useTopics('route');
  const count = useNeedsCount();
  const name = route.place.view === 'needs' ? '' : `${titleOf(route.place)} · `;
  useEffect(() => {
    document.title = `${count ? `(${count}) ` : ''}${name}agentctl`;
    main().setAttribute('aria-label', titleOf(route.place));
  });
  return null;
}

const LINKS = [['/', 'needs', 'By need', '◉'], ['/tree', 'tree', 'Tree', '≡'], ['/search', 'search', 'Search', '⌕']];

function NavLinks({ isBar = false }) {
  useTopics('route');
  const count = useNeedsCount();
  return LINKS.map(([href, view, words, icon]) => html`<a key=${view} href=${href} aria-current=${route.place.view === view ? 'page' : undefined}>
    ${isBar && html`<span class="icon" aria-hidden="true">${icon}</span>`}<span>${words}</span>${view === 'needs' && count > 0 && html`<span class="badge">${count}<span class="unseen"> need you</span></span>`}</a>`);
}

function Head() {
  useTopics('route', 'about');
  return html`<header class="head">
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      main().focus();
    }}>To the content</a>
    <a class="brand" href="/" aria-label="agentctl: all workers"><img src="/static/icons/mark.svg" width="22" height="22" alt="" /><span>agentctl</span></a>
    <nav class="wide-only" aria-label="Views"><${NavLinks} /></nav>
    ${isList(route.place) ? html`<${Filter} />` : html`<span class="grow"></span>`}
    <${MarkedCount} />
    <${Link} />
    ${about.readOnly && html`<span class="tag" title="This page was started to look only">read only</span>`}
    ${!about.readOnly && html`<button type="button" class=${`${isList(route.place) ? 'primary ' : ''}wide-only`} onClick=${() => openDispatch(route.place.task)}>New worker<kbd aria-hidden="true">n</kbd></button>`}
    <button type="button" class="icon-button wide-only" onClick=${openHelp} aria-label="All keys">?</button>
    <button type="button" class="icon-button" onClick=${() => openDialog(Settings)} aria-label="Settings">⚙</button>
  </header>`;
}

function Filter() {
  useTopics('route');
  const field = useRef(null);
  return html`<form class="filter" role="search" onSubmit=${(event) => {
    event.preventDefault();
    field.current.blur();
  }}>
    <input id="filter" ref=${field} type="search" value=${route.filter} placeholder="Filter:  s:failed  a:explore  -t:old" aria-label="Filter the workers" autocomplete="off" autocapitalize="none" spellcheck="false"
      onInput=${(event) => setQuery('filter', event.target.value)}
      onKeyDown=${(event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        if (route.filter) setQuery('filter', '');
        else field.current.blur();
      }} />
  </form>`;
}

/** Whether the page hears the server, and since when it does not. */
function Link() {
  useTopics('now');
  const { state, heardAt } = useConnection();
  if (state === 'open') return html`<span class="link on" title="Live"><span aria-hidden="true">●</span><span class="unseen">live</span></span>`;
  const seconds = heardAt ? (Date.now() - heardAt) / 1000 : null;
  if (seconds === null || state === 'opening' || state === 'heard') return html`<span class="link">connecting…</span>`;
  if (seconds < 1) return html`<span class="link"><span aria-hidden="true">●</span></span>`;
  const words = state === 'silent' ? 'no answer' : 'offline';
  return html`<span class="link off">${words}, last seen ${duration(seconds, true)} ago</span>`;
}

function Bar() {
  useTopics('route', 'about');
  return html`<nav class="bar" aria-label="Views, below">
    <${NavLinks} isBar />
    ${!about.readOnly && html`<button type="button" onClick=${() => openDispatch(route.place.task)}><span class="icon" aria-hidden="true">+</span><span>New</span></button>`}
  </nav>`;
}

function Said() {
  useTopics('said');
  return html`<div class="said"><${Outstanding} />
    <div role="status" aria-live="polite">${said.lines.map((line) => html`<div key=${line.id} class=${`line${line.isError ? ' error' : ''}`}>
      <p><${Foreign} text=${line.text} />${line.hint && html` <span class="hint"><${Foreign} text=${line.hint} /></span>`}${line.links?.length ? html` <${Links} links=${line.links} />` : ''}</p>
      ${line.list?.length ? html`<ul tabindex="0" aria-label="What became of each">${line.list.map((one) => html`<li key=${one.text}><${Foreign} text=${one.text} />${one.links.length ? html` <${Links} links=${one.links} />` : ''}</li>`)}</ul>` : ''}
      <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => unsay(line.id)}>×</button></div>`)}</div>
  </div>`;
}

/** Whether the browser tells of what needs a person while the page is not seen. */
function Telling() {
  const [isOn, setOn] = useState(tells());
  const change = async () => {
    await switchTelling();
    setOn(tells());
  };
  return html`<p><label class="choice"><input type="checkbox" role="switch" checked=${isOn} disabled=${isForbidden()} onChange=${change} /> Notifications of this browser while the page is hidden</label>
    <span class="hint">${isForbidden() ? 'The browser forbids them to this page: allow them in its settings.' : 'Questions, failures, and answers that are ready for review.'}</span></p>`;
}

/** @param {{ close: () => void }} props */
function Settings({ close }) {
  const [theme, setTheme] = useState(themeNow());
  useTopics('about');
  return html`<div class="settings">
    <div class="head"><h2 id="dialog-title">Settings</h2><button type="button" onClick=${close}>Close</button></div>
    <p><button type="button" onClick=${() => setTheme(nextTheme())}>Colours: ${themeWords(theme)}</button></p>
    ${canTell() && html`<${Telling} />`}
    <p><button type="button" onClick=${() => {
      close();
      setTimeout(openHelp, 50);
    }}>All keys</button></p>
    <dl class="facts">
      <div><dt>Version</dt><dd>${about.version || 'unknown'}</dd></div>
      <div><dt>Root</dt><dd class="foreign"><${Foreign} text=${about.root} /></dd></div>
      <div><dt>May</dt><dd>${about.readOnly ? 'look only' : 'look and act'}</dd></div>
    </dl>
    <p><button type="button" class="danger" onClick=${logout}>Log out on this device</button></p>
  </div>`;
}
