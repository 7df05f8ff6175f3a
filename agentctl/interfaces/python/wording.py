"""How an error is worded for Python programs: arguments in place of options, methods in place of commands."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from agentctl.adapters.files import as_storage_error
from agentctl.errors import AgentctlError, Argument, Next, NotFound, WithArguments, at_terminal, steps_in_words
from agentctl.interfaces.python.spawn_options import SpawnOptions
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.start.options import FLAG, OF_AGENTS, OF_WORKERS
from agentctl.world_errors import error_in_words

if TYPE_CHECKING:
    from agentctl.errors import Step

#: The next steps that a terminal takes by an option or a command, and a program by its own means.
_STEPS = {
    "another name": "choose another name=",
    "another key": "choose another key=; Task.show({!r}) is what this one did",
    "another key for a task": "choose another key=; {} is what this one made",
    "another folder": "choose another cwd=",
    "in another task": "{!r} is a worker",
    "another driver": "its definition needs argv; or choose another driver= ({})",
    "look around": "Task.workers() shows them",
    "look at questions": "Task.questions() shows what is open",
    "read result": "Task.result({!r})",
    "spawn": "Task.spawn()",
    "make a worktree": "Task.spawn() with worktree=True makes one",
    "make from template": "Task.create() makes one without; a template is for the command line",
    "another id": "choose another task_id=",
    "new": 'Task.create("TITLE")',
    "own task": "work in a task of your own: Task.create()",
    "name a task": 'Task.create("TITLE"); or agentctl use TASK',
    "queue every start": (
        "queue: true in the config of {} makes every start wait (a new task: Task.create() with queue=True)"
    ),
    "name a model": "for example: Task.spawn(prompt, driver='llm', model={!r})",
    "spawn an agent": "Task.spawn(prompt)",
    "wait for any": "wait_any()",
    "help": "the documentation of Task says what {} takes",
    "spawn above": "Task.find({!r}).spawn(): the task on top of the tree takes any worker",
}
_ARGUMENTS = {*SpawnOptions.__annotations__, "agent", "queue", "root", "task", "timeout_seconds"}
_FLAGS = {"queue", *(option.name for option in (*OF_AGENTS, *OF_WORKERS) if option.kind == FLAG)}


@contextlib.contextmanager
def for_python() -> Iterator[None]:
    """Word an error for the program that gets it, and show the next step in its traceback.

    An error of the system that nothing below has named becomes one of ours, with the file; a mistake of ours stays one.
    """
    try:
        yield
    except AgentctlError as error:
        as_for_python(error)
        raise
    except OSError as error:
        named = _named(error)
        if named is None:
            raise
        raise as_for_python(named) from error


def _named(error: OSError) -> AgentctlError | None:
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and error.filename is not None:
        return NotFound(error_in_words(error), hint="it was removed meanwhile; Task.find() finds what there is")
    return as_storage_error(error)


def as_for_python(error: AgentctlError) -> AgentctlError:
    """Return an error, worded for the program that gets it."""
    wrong, error.hint = worded(error)
    error.wrong = WithArguments(wrong)
    note = f"hint: {error.hint}"
    if error.hint and note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


def worded(error: AgentctlError) -> tuple[str, str | None]:
    """Return the message and the next step of an error.

    >>> there = WithArguments("start it there (", Argument("cwd"), ")")
    >>> worded(AgentctlError(WithArguments(Argument("reuse"), " goes with no ", Argument("key")), hint=there))
    ('reuse=True goes with no key=', 'start it there (cwd=)')
    """
    return error.wrong.worded(_spelled), steps_in_words(error.steps, _words_of)


def _words_of(step: Step) -> str | None:
    """Return a next step for a program; what only a terminal has is a command line for its person."""
    if isinstance(step, Next) and step.step in _STEPS:
        return step.worded(_STEPS, " of Task.find({!r})")
    if not isinstance(step, WithArguments):
        return at_terminal(step)
    return step.worded(_spelled) if all(one.name in _ARGUMENTS for one in step.arguments) else None


def _spelled(argument: Argument) -> str:
    name, value = argument
    if name in _FLAGS:
        return f"{name}=True" + (f" {value}" if value else "")
    return f"{name}={value!r}" if value else f"{name}="
