"""The files of a root, a task and a worker: the only module that knows their names."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agentctl.adapters.paths import FilePath
from agentctl.domain.names import is_name
from agentctl.lean import TYPE_CHECKING

ROOT_NAME = ".agentctl"


class _Entry:
    """A file or folder of a fixed name; its path is made when it is asked for (a queue of 10,000 asks for few)."""

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name

    def __set_name__(self, owner: type[_Folder], name: str) -> None:
        self._name = name

    def __get__(self, folder: _Folder, owner: type[_Folder]) -> FilePath:
        path = folder.__dict__[self._name] = folder.path / self._file_name
        return path


if TYPE_CHECKING:
    from functools import cached_property as _once
else:

    class _once:  # noqa: N801 - it is used as a decorator
        """What is found out when it is asked for, and then kept: `cached_property` without its lock."""

        def __init__(self, make):
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, folder, owner):
            value = folder.__dict__[self._name] = self._make(folder)
            return value


class _Folder:
    """A folder whose entries have fixed names."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = FilePath(os.fspath(path))


class Root(_Folder):
    """`.agentctl/`: where the tasks of a project are."""

    tasks = _Entry("tasks")
    current = _Entry("current")
    lock = _Entry("root.lock")
    templates = _Entry("templates")
    worktrees = _Entry("worktrees")
    #: Keeps what is ours out of the repository that the root may lie in.
    gitignore = _Entry(".gitignore")

    def task(self, task_id: str) -> TaskDir:
        """Return the directory of a task, which need not exist."""
        return TaskDir(self.tasks / task_id)

    def task_ids(self) -> list[str]:
        """Return the ids of all tasks, oldest name first."""
        try:
            names = os.listdir(self.tasks)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if is_name(name) and (self.tasks / name / "task.yaml").exists())


class TaskDir(_Folder):
    """One job on disk."""

    task_file = _Entry("task.yaml")
    task_lock = _Entry("task.lock")
    #: There while the roster in task.yaml is known to be behind the log.
    stale_roster = _Entry("roster.stale")
    config_cache = _Entry("config.json")
    events = _Entry("events.jsonl")
    agents = _Entry("agents")
    keys = _Entry("keys")
    slots = _Entry("slots")
    queue = _Entry("queue")
    queue_lock = _Entry("queue.lock")
    cursors = _Entry("cursors")
    #: Calls over MCP that answer later, by a name that cannot be guessed.
    handles = _Entry("handles")
    template = _Entry("template")
    shim_log = _Entry("shim.log")
    #: Sub-agents of programs that a person runs by hand, as these tell of them.
    observed = _Entry("observed.jsonl")
    #: What `join` writes, where no other folder is named.
    report_text = _Entry("report.md")
    report_data = _Entry("report.json")
    #: Of the root task: a lock for each rate-limited account that one of its shims waits for.
    cooling = _Entry("cooling")
    #: Of the root task: when agents failed last.
    failures = _Entry("failures")
    #: Tells that this person made the task, and that it did not come with somebody else's files.
    origin = _Entry("origin")

    @_once
    def id(self) -> str:
        """The task's id."""
        return self.path.name

    @_once
    def root(self) -> Root:
        """The root that this task lies in."""
        return Root(self.path.parent.parent)

    @property
    def exists(self) -> bool:
        """Tell whether there is such a task."""
        return self.task_file.exists()

    def sibling(self, task_id: str) -> TaskDir:
        """Return the directory of a task of the same root."""
        return self if task_id == self.id else TaskDir(self.path.parent / task_id)

    def agent(self, instance: str) -> AgentDir:
        """Return the directory of a worker, which need not exist."""
        return AgentDir(self.agents / instance, self)

    def instances(self) -> list[str]:
        """Return the names of all agent folders."""
        try:
            return sorted(name for name in os.listdir(self.agents) if is_name(name))
        except FileNotFoundError:
            return []

    def folders(self) -> Iterator[FilePath]:
        """Yield the folders that a task has from the start."""
        yield from (self.path, self.agents, self.slots, self.queue, self.cursors)


class AgentDir(_Folder):
    """`agents/<instance>/`: what a worker is to do, who guards it, what came of it."""

    spec = _Entry("spec.json")
    #: The identity of its shim; the liveness lock is on this file.
    shim = _Entry("shim.json")
    worker = _Entry("worker.json")
    control = _Entry("control")
    cancel = _Entry("cancel.json")
    pause = _Entry("pause.json")
    stdout = _Entry("stdout.log")
    stderr = _Entry("stderr.log")
    activity = _Entry("activity.jsonl")
    progress = _Entry("progress.json")
    interactions = _Entry("interactions")
    inbox = _Entry("inbox")
    result = _Entry("result.json")
    #: The vendor's session of an agent: what `resume` needs.
    session = _Entry("session.json")
    #: That an agent runs another way than its driver's own, and why.
    fallback = _Entry("fallback.json")
    #: How the agent ended, as its driver saw it: what the shim decides by.
    outcome = _Entry("outcome.json")
    #: The tokens and the money that an agent has used up, over all of its attempts.
    spent = _Entry("spent.json")
    #: What was said to the agent's program, beside its raw output in stdout.log.
    dialogue = _Entry("dialogue.jsonl")
    exit = _Entry("exit.json")
    #: Its git worktree, and what it changed there.
    worktree = _Entry("worktree.json")
    #: A name for each worker that it started: `TASK.INSTANCE`.
    children = _Entry("children")
    patch = _Entry("changes.patch")

    def __init__(self, path: str | os.PathLike[str], task: TaskDir | None = None) -> None:
        super().__init__(path)
        #: The task that this worker belongs to.
        self.task = task or TaskDir(self.path.parent.parent)

    @_once
    def instance(self) -> str:
        """The worker's name."""
        return self.path.name

    @property
    def lock(self) -> FilePath:
        """What guards its end, its questions and its inbox: the folder is its own lock."""
        return self.path / ""  # With the slash: where somebody removed it, to lock it must not make a file of its name.

    @property
    def has_ended(self) -> bool:
        """Tell whether its end is decided."""
        return self.exit.exists()

    def attempt_exit(self, attempt: int) -> FilePath:
        """Return the file that keeps the exit of an attempt which was tried again."""
        return self.path / f"exit.{attempt}.json"

    def question(self, question_id: str) -> FilePath:
        """Return the file of a question; its answer and its asker's lock lie beside it."""
        return self.interactions / f"{question_id}.json"

    def answer(self, question_id: str) -> FilePath:
        """Return the file of an answer."""
        return self.interactions / f"{question_id}.answer.json"

    def asker_lock(self, question_id: str) -> FilePath:
        """Return the file whose liveness lock a waiting asker holds."""
        return self.interactions / f"{question_id}.lock"

    def question_ids(self) -> list[str]:
        """Return the ids of all its questions, oldest first."""
        try:
            names = os.listdir(self.interactions) if self.interactions.exists() else []
        except FileNotFoundError:
            return []
        return sorted(
            (name[:-5] for name in names if name.endswith(".json") and is_name(name[:-5])),
            key=lambda name: (len(name), name),
        )
