"""The next step of an error, for whoever asks over HTTP: a request, a key of one, or what only a terminal can do."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.domain.names import camel
from agentctl.errors import AgentctlError, Argument, AtTerminal, Next, WithArguments, option
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.errors import Step

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
    "in another task": "{0} is in another task: GET …/workers/{0}",
    "show": f"GET {_WORKER}", "list": "GET …/list", "tasks": "GET /api/v1/tasks lists them",
    "use": "choose another id; GET /api/v1/tasks/{} shows that one", "spawn": "POST …/spawn",
    "diff": f"GET {_WORKER}/diff", "make a worktree": "POST …/spawn with worktree: true makes one",
    "remove worktree": f"POST {_WORKER}/worktree/remove", "look at worktree": f"GET {_WORKER}/worktree",
    "make from template": "POST /api/v1/tasks with template: NAME",
    "trust": "a person looks at it and trusts it, in a terminal: agentctl trust {}",
    "take over": "a person takes it over, if everything in it is theirs, in a terminal: agentctl trust {}",
    "vouch": "or a person reads it and vouches for it, in a terminal: agentctl trust {}",
    "ask a person": "a person answers it: GET …/interact, POST …/interact/ID",
    "deny": "a person answers it: GET …/interact, POST …/interact/ID",
    "paths": "GET /api/v1/openapi.json lists them",
    "described": "GET /api/v1/openapi.json says what {} takes",
    "help": "GET /api/v1/openapi.json says what {} takes",
    "logs": f"GET {_WORKER}/logs", "events": "GET …/events", "usage": "GET …/usage", "worktrees": "GET …/worktrees",
    "templates": "GET /api/v1/templates lists them", "new": "POST /api/v1/tasks",
    "own task": "work in a task of your own (POST /api/v1/tasks)", "name a task": "GET /api/v1/tasks lists them",
    "queue every start": (
        "queue: true in the config of {} makes every start wait (a new task: POST /api/v1/tasks with queue: true)"
    ),
    "name a model": "POST …/spawn with driver: llm and a model, for example {}",
    "spawn an agent": "POST …/spawn with agent and prompt",
    "spawn above": "POST /api/v1/tasks/{}/spawn: the task on top of the tree takes any worker",
    "subtask": "POST /task with subagent_type {}",
    "retry all": "POST …/workers/ID/retry, for these in turn: {}",
    "a person resumes": f"a person has it made again: POST {_WORKER}/resume",
    "wait for any": "POST …/wait-any", "unpause": f"POST {_WORKER}/unpause", "let the queue go": "POST …/unpause",
}  # fmt: skip
#: The arguments that no request has: a server is for one root, and what it is called with decides the rest.
OF_COMMAND_LINES = frozenset({"root", "force"})


def words_over_http(step: Step) -> str | None:
    """Return a next step for whoever asks over HTTP: arguments are keys there.

    >>> words_over_http(Next("send", "a1")), words_over_http(WithArguments("leave ", Argument("after_any"), " out"))
    ('POST …/workers/a1/send', 'leave afterAny out')
    >>> words_over_http(Next("unpause", "a1", task="t")), words_over_http(AtTerminal("agentctl doctor --fix"))
    ('POST /api/v1/tasks/t/workers/a1/unpause', 'in a terminal: agentctl doctor --fix')
    >>> words_over_http(WithArguments("or choose another ", Argument("root")))
    'or in a terminal: choose another --root'
    """
    if isinstance(step, AtTerminal):
        return _in_terminal(step.text)
    if isinstance(step, Next):
        words = step.worded(REQUESTS)
        return words and words.replace("…", f"/api/v1/tasks/{step.task}") if step.task else words
    if isinstance(step, WithArguments):
        is_of_lines = any(one.name in OF_COMMAND_LINES for one in step.arguments)
        return _in_terminal(step.worded(option)) if is_of_lines else step.worded(_key)
    return step


def wrong_over_http(error: AgentctlError) -> str:
    """Return what is wrong, for whoever asks over HTTP.

    >>> wrong_over_http(AgentctlError(WithArguments(Argument("after_any"), " goes with ", Argument("after"))))
    'afterAny goes with after'
    """
    return error.wrong.worded(_key)


def _in_terminal(text: str) -> str:
    before = "or " if text.startswith("or ") else ""
    return text if "terminal" in text else f"{before}in a terminal: {text.removeprefix(before)}"


def in_task(step: Step, task: str) -> Step:
    """Return a next step with the task that it is in, for whoever has named none in the path of a request.

    >>> words_over_http(in_task(Next("show", "a-2"), "t")), words_over_http(in_task(Next("tasks"), "t"))
    ('GET /api/v1/tasks/t/workers/a-2', 'GET /api/v1/tasks lists them')
    """
    if isinstance(step, Next) and not step.task and "…" in REQUESTS.get(step.step, ""):
        return step._replace(task=task)
    return step


def _key(argument: Argument) -> str:
    if argument.name == "task":  # It is in the path.
        return f"/api/v1/tasks/{argument.value or 'TASK'}"
    return camel(argument.name) + (f": {argument.value}" if argument.value else "")
