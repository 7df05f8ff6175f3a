// The login: takes the token out of the link, or out of what a person pastes, and trades it for a session.
const KEY_NAME = 'agentctl.key';
const form = document.getElementById('form');
const field = document.getElementById('token');
const problem = document.getElementById('problem');
const opening = document.getElementById('opening');
const button = form.querySelector('button');

/** The token of a link, or a token itself. */
const tokenOf = (text) => {
  const bare = text.trim();
  const hash = bare.lastIndexOf('#');
  return hash < 0 ? bare : bare.slice(hash + 1);
};

async function open(token) {
  problem.textContent = '';
  button.disabled = true;
  try {
    const response = await fetch('/session', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }), cache: 'no-store',
    });
    if (response.ok) {
      const { key } = await response.json();
      localStorage.setItem(KEY_NAME, key);
      sessionStorage.removeItem('agentctl.reloaded');
      history.replaceState(null, '', location.pathname + location.search);
      location.reload();
      return;
    }
    const told = await response.json().catch(() => ({}));
    const isWrong = response.status === 401;
    problem.textContent = isWrong
      ? 'That is not the link of this server. The newest one is in the terminal in which agentctl serve runs.'
      : [told.detail ?? `The server answered ${response.status}.`, told.hint].filter(Boolean).join(' ');
  } catch {
    problem.textContent = 'The server cannot be reached. Does agentctl serve still run?';
  }
  button.disabled = false;
  form.hidden = false;
  opening.hidden = true;
  field.setAttribute('aria-invalid', 'true');
  field.focus();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const token = tokenOf(field.value);
  if (token) open(token);
  else {
    problem.textContent = 'Nothing was pasted yet.';
    field.focus();
  }
});

function openByLink() {
  const token = tokenOf(location.hash);
  if (!token) {
    field.focus();
    return;
  }
  // A token that stays in the address would be in the history and in every copy of it.
  history.replaceState(null, '', location.pathname + location.search);
  form.hidden = true;
  opening.hidden = false;
  open(token);
}

addEventListener('hashchange', openByLink);
openByLink();
