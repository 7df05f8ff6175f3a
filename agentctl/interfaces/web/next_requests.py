"""The next step of an error, for whoever asks over HTTP: a request, a key of one, or what only a terminal can do."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentctl.domain.names import camel
from agentctl.errors import Next

_WORKER = "…/workers/{}"
#: Step -> the request; the page has words of its own for the same steps (`next_steps.js`). Of some there is none: what
#: they are about is of no use over HTTP.
REQUESTS: Mapping[str, str] = {
    "another name": "choose another name", "another folder": "choose another cwd", "another id": "choose another id",
    "another key": f"choose another key; GET {_WORKER} shows what it did",
    "another key for a task": "choose another key; GET /api/v1/tasks/{} shows what it made",
    "another driver": "its definition needs argv; or choose another driver ({})",
    "look around": "GET …/list shows them", "look at questions": "GET …/interact shows what is open",
    "read result": f"GET {_WORKER}/result", "send": f"POST {_WORKER}/send", "cancel": f"POST {_WORKER}/cancel",
    "retry": f"POST {_WORKER}/retry", "resume": f"POST {_WORKER}/resume", "wait": f"POST {_WORKER}/wait",
    "show": f"GET {_WORKER}", "list": "GET …/list", "tasks": "GET /api/v1/tasks lists them",
    "use": "choose another id; GET /api/v1/tasks/{} shows that one", "spawn": "POST …/spawn",
    "diff": f"GET {_WORKER}/diff", "make a worktree": "POST …/spawn with worktree: true makes one",
    "remove worktree": f"POST {_WORKER}/worktree/remove", "look at worktree": f"GET {_WORKER}/worktree",
    "make from template": "POST /api/v1/tasks with template: NAME",
    "trust": "a person looks at it and trusts it, in a terminal: agentctl trust {}",
    "ask a person": "a person answers it: GET …/interact, POST …/interact/ID",
    "deny": "a person answers it: GET …/interact, POST …/interact/ID",
    "paths": "GET /api/v1/openapi.json lists them",
    "described": "GET /api/v1/openapi.json says what {} takes",
}  # fmt: skip
#: Commands of which there is no request: what they decide is decided at a terminal of the person's.
OF_TERMINALS = frozenset({"archive", "doctor", "install", "rm", "serve", "trust"})
_COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)")
_OPTION = re.compile(r"(?<![\w'\"-])--([a-z][a-z-]*)")


def request_in_words(step: Next) -> str | None:
    """Return a next step as a request; None if there is none."""
    return step.worded(REQUESTS)


def without_commands(hint: str | None) -> str | None:
    """Return what a hint that was worded for a terminal says to whoever asks over HTTP.

    Of its parts, those that name a command are left out, unless only a terminal has what that does; options are keys.

    >>> without_commands("agentctl list shows them; or choose another --cwd"), without_commands("known: a, b")
    ('choose another cwd', 'known: a, b')
    >>> without_commands("agentctl doctor --fix"), without_commands("agentctl use T")
    ('in a terminal: agentctl doctor --fix', None)
    """
    kept: list[str] = []
    for part in (hint or "").split("; "):
        commands = _COMMAND.findall(part)
        if not commands:
            kept.append(_OPTION.sub(lambda found: camel(found[1].replace("-", "_")), part))
        elif OF_TERMINALS.issuperset(commands):
            kept.append(part if "terminal" in part else f"in a terminal: {part}")
    return "; ".join(filter(None, kept)).removeprefix("or ") or None
